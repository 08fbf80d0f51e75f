import { parseDurationMs } from "../../src/base/duration.ts";
import { UsageError } from "../io/exit.ts";
import { DEFAULT_ADDR, type Target } from "../io/target.ts";
import type { FlagSpecs } from "./flag-parser.ts";

/** Every command accepts these flags, before or after its words. */
export const GLOBAL_FLAGS = {
  addr: {
    kind: "text",
    hint: "host:port",
    summary: "Server to call (default: where the configuration says that it listens, else 127.0.0.1:7001)",
  },
  timeout: {
    kind: "text",
    hint: "duration",
    summary: "How long to wait for an answer, such as 250ms, 30s, 5m (default 30s; not applied to streams)",
  },
  verbose: { kind: "switch", summary: "Show the HTTP exchange on stderr, without its secrets" },
} as const satisfies FlagSpecs;

/** The flags that a command accepts, its own first; it may describe a global one in its own words. */
export const flagsOf = (leaf: { readonly flags: FlagSpecs } | undefined): FlagSpecs => ({
  ...leaf?.flags,
  ...GLOBAL_FLAGS,
  ...leaf?.flags,
});

/**
 * The flags that help shows: a command that calls no server does not need the global ones, and a stream needs no timeout.
 */
export function shownFlagsOf(
  leaf: { readonly flags: FlagSpecs; readonly routes: readonly unknown[]; readonly stream: boolean } | undefined,
): FlagSpecs {
  if (!leaf) return GLOBAL_FLAGS;
  const { timeout, ...others } = GLOBAL_FLAGS;
  const globals = leaf.routes.length === 0 ? {} : leaf.stream ? others : { ...others, timeout };
  return { ...leaf.flags, ...globals, ...leaf.flags };
}

const DEFAULT_TIMEOUT_MS = 30_000;

export interface GlobalValues {
  addr?: string;
  timeout?: string;
  verbose?: boolean;
}

/** The server a command talks to: `--addr`, else what the server's own configuration says. */
export async function targetOf(values: GlobalValues): Promise<Target> {
  const timeoutMs = values.timeout === undefined ? DEFAULT_TIMEOUT_MS : timeoutMsOf(values.timeout);
  return { ...(await addressOf(values.addr)), timeoutMs, verbose: values.verbose ?? false };
}

async function addressOf(flag: string | undefined): Promise<Pick<Target, "addr" | "source">> {
  if (flag !== undefined) return { addr: connectAddr(flag), source: undefined };
  const { findServerAddress } = await import("../io/server-address.ts");
  return findServerAddress();
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
  // Timers take at most 31 bits of milliseconds.
  if (!timeoutMs || timeoutMs > 0x7fffffff) {
    throw new UsageError(`--timeout takes a duration such as 250ms, 30s or 5m, not ${JSON.stringify(text)}`);
  }
  return timeoutMs;
}
