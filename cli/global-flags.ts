import { parseDurationMs } from "../src/base/duration.ts";
import { UsageError } from "./exit.ts";
import type { FlagSpecs } from "./flag-parser.ts";
import { DEFAULT_ADDR, type Target } from "./target.ts";

/** Accepted by every command, before or after its words. */
export const GLOBAL_FLAGS = {
  addr: {
    kind: "text",
    hint: "host:port",
    summary: "Server to call (default 127.0.0.1:7001; SVC_LISTEN_ADDR is the server's setting and not read here)",
  },
  timeout: {
    kind: "text",
    hint: "duration",
    summary: "How long to wait for an answer, such as 250ms, 30s, 5m (default 30s; not applied to streams)",
  },
  verbose: { kind: "switch", summary: "Show the HTTP exchange on stderr, without its secrets" },
} as const satisfies FlagSpecs;

/** What a command accepts, its own flags first; it may describe a global one in its own words. */
export const flagsOf = (leaf: { flags: FlagSpecs } | undefined): FlagSpecs => ({
  ...leaf?.flags,
  ...GLOBAL_FLAGS,
  ...leaf?.flags,
});

const DEFAULT_TIMEOUT_MS = 30_000;

export interface GlobalValues {
  addr?: string;
  timeout?: string;
  verbose?: boolean;
}

/** The server a command talks to. */
export function targetOf(values: GlobalValues): Target {
  return {
    addr: connectAddr(values.addr ?? DEFAULT_ADDR),
    timeoutMs: values.timeout === undefined ? DEFAULT_TIMEOUT_MS : timeoutMsOf(values.timeout),
    verbose: values.verbose ?? false,
  };
}

function connectAddr(addr: string): string {
  const [, host, port] = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(addr) ?? [];
  if (!host || Number(port) < 1 || Number(port) > 65_535) {
    throw new UsageError(`--addr takes host:port, such as ${DEFAULT_ADDR}, not ${JSON.stringify(addr)}`);
  }
  return addr;
}

function timeoutMsOf(text: string): number {
  const timeoutMs = parseDurationMs(text);
  // Timers hold 31 bits of milliseconds.
  if (!timeoutMs || timeoutMs > 0x7fffffff) {
    throw new UsageError(`--timeout takes a duration such as 250ms, 30s or 5m, not ${JSON.stringify(text)}`);
  }
  return timeoutMs;
}
