/**
 * Starts the freshly built `dist/svc` (never the sources) as a child process with its own data root, and always
 * reaps it. What a server wrote to stderr is kept and shown when a test that used it fails (see `client.ts` and
 * `showLogsOnFailure`).
 */
import { existsSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { documentedErrors } from "../api/documented-errors.ts";
import { type ScratchDir, scratchDir } from "../scratch.ts";
import { type Client, createClient } from "./client.ts";

/** The executable under test: the build's output, or the one named by SVC_TEST_BINARY. */
export const BINARY = process.env["SVC_TEST_BINARY"] ?? resolve(import.meta.dir, "../../../dist/svc");

export interface ServerOptions {
  /** Default: a fresh scratch directory, removed when the server is disposed of. */
  dataDir?: string;
  /** Extra arguments after `run`. */
  args?: string[];
  env?: Record<string, string>;
  /** YAML written to a file that is passed as `--config`. */
  config?: string;
  /** `host:port` for `--addr`; default `127.0.0.1:0`; `null` passes no `--addr`. */
  addr?: string | null;
  stdin?: string;
  /** Creates an account with `POST /v1/auth {}` unless one is there already. Default true. */
  account?: boolean;
  /** Waits until the boot pass has ended. Default true when an account is there. */
  bootstrapped?: boolean;
  /** Another executable than the one under test. */
  binary?: string;
  /** Words before the executable, such as a tracer and its options. */
  wrapper?: string[];
  startTimeoutMs?: number;
  /** Called as soon as the process exists, before it listens. */
  onSpawn?: (child: { readonly pid: number; kill(): void }) => void;
}

export interface RunningServer extends AsyncDisposable {
  /** Resolved `host:port`. */
  readonly address: string;
  readonly port: number;
  /** `http://host:port`. */
  readonly base: string;
  readonly pid: number;
  readonly dataDir: string;
  readonly client: Client;
  /** Of the runtime's control API; throws when the runtime is turned off. */
  readonly control: Client;
  stdout(): string;
  stderr(): string;
  /** Resolves with the exit code (null when a signal ended it). */
  readonly exited: Promise<number | null>;
  signal(name: NodeJS.Signals): void;
  /** SIGTERM, then waits; SIGKILL after `graceMs`. */
  stop(graceMs?: number): Promise<number | null>;
  /** SIGKILL, then waits. */
  kill(): Promise<void>;
}

export interface FailedStart {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new Set<Bun.Subprocess>();
const recentServers: { label: string; stderr: () => string }[] = [];
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/**
 * The environment of every child: nothing of the developer's own configuration, no traffic beyond loopback, no
 * fixed ports.
 */
export function childEnv(homeDir: string, extra: Record<string, string> = {}): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: homeDir,
    TMPDIR: process.env["TMPDIR"] ?? "/tmp",
    NO_COLOR: "1",
    SVC_P2P_ENABLED: "false",
    SVC_RUNTIME_ENABLED: "false",
    SVC_RUNTIME_ADDR: "127.0.0.1:0",
    SVC_INDEX_EMBEDDER: "none",
    ...extra,
  };
}

/** Starts a server and waits for its LISTENING line. Throws, with what it wrote, when it ends before that. */
export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const started = await launch(options);
  if ("code" in started) {
    throw new Error(`the server ended (${started.code}) before LISTENING\n${started.stderr || started.stdout}`);
  }
  const wantsAccount = options.account !== false;
  if (wantsAccount) {
    const state = await started.client.get<{ authorized: boolean }>("/v1/auth");
    if (!state.authorized) await started.client.post("/v1/auth", {}, 200);
    if (options.bootstrapped !== false) await started.client.untilBootstrapped();
  }
  return started;
}

/** Starts a server that is expected to refuse; resolves with what it said. Throws when it serves after all. */
export async function refusedStart(options: ServerOptions = {}): Promise<FailedStart> {
  const started = await launch(options);
  if ("code" in started) return started;
  await started.kill();
  throw new Error(`the server was expected to refuse to start but listens on ${started.address}`);
}

async function launch(options: ServerOptions): Promise<RunningServer | FailedStart> {
  if (options.binary === undefined && !existsSync(BINARY))
    throw new Error(`${BINARY} is missing: run \`bun run build\` first`);
  const home: ScratchDir = scratchDir("svc-home");
  const ownRoot = options.dataDir === undefined ? scratchDir("svc-data") : undefined;
  const dataDir = options.dataDir ?? ownRoot!.path;
  const args = ["run", "--data-dir", dataDir];
  const addr = options.addr === undefined ? "127.0.0.1:0" : options.addr;
  if (addr !== null) args.push("--addr", addr);
  if (options.config !== undefined) {
    const path = join(home.path, "svc-config.yaml");
    writeFileSync(path, options.config);
    args.push("--config", path);
  }
  args.push(...(options.args ?? []));

  const child = Bun.spawn([...(options.wrapper ?? []), options.binary ?? BINARY, ...args], {
    cwd: home.path,
    env: childEnv(home.path, options.env),
    stdin: options.stdin === undefined ? "ignore" : Buffer.from(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(child);
  options.onSpawn?.({ pid: child.pid, kill: () => child.kill("SIGKILL") });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  recentServers.push({ label: dataDir, stderr: stderr.text });
  if (recentServers.length > 8) recentServers.shift();

  const exited = child.exited.then(async () => {
    running.delete(child);
    await Promise.all([stdout.done, stderr.done]);
    return child.exitCode;
  });
  const cleanUp = (): void => {
    home[Symbol.dispose]();
    ownRoot?.[Symbol.dispose]();
  };

  const startTimeoutMs = options.startTimeoutMs ?? 30_000;
  const address = await waitForListening(stdout, exited, startTimeoutMs);
  if (address === undefined) {
    const timedOut = child.exitCode === null && child.signalCode === null;
    if (timedOut) signalTree(child.pid, "SIGKILL");
    const code = await exited;
    const failed = { code, stdout: stdout.text(), stderr: stderr.text() };
    cleanUp();
    if (timedOut) throw new Error(`no LISTENING within ${startTimeoutMs} ms\n${failed.stdout}\n${failed.stderr}`);
    return failed;
  }

  const { wrapper, binary = BINARY } = options;
  return createServerHandle({
    child,
    address,
    dataDir,
    stdout,
    stderr,
    exited,
    cleanUp,
    binary,
    isWrapped: wrapper !== undefined,
  });
}

interface Launched {
  readonly child: Bun.Subprocess;
  readonly address: string;
  readonly dataDir: string;
  readonly stdout: Collected;
  readonly stderr: Collected;
  readonly exited: Promise<number | null>;
  readonly binary: string;
  readonly isWrapped: boolean;
  cleanUp(): void;
}

function createServerHandle({
  child,
  address,
  dataDir,
  stdout,
  stderr,
  exited,
  cleanUp,
  ...launched
}: Launched): RunningServer {
  // A wrapper passes no signals on, and ends by itself when the server has ended; one that became the server is the server.
  const isBehind = launched.isWrapped && !isRunning(child.pid, launched.binary);
  const serverPid = isBehind ? (childrenOf(child.pid)[0] ?? child.pid) : child.pid;
  const signal = (name: NodeJS.Signals): void => {
    if (child.exitCode === null && child.signalCode === null) sendSignal(serverPid, name);
  };
  const kill = async (): Promise<void> => {
    signal("SIGKILL");
    await exited;
  };
  const stop = async (graceMs = 15_000): Promise<number | null> => {
    signal("SIGTERM");
    const timer = setTimeout(() => signal("SIGKILL"), graceMs);
    const code = await exited;
    clearTimeout(timer);
    return code;
  };
  const base = `http://${address}`;
  const client = createClient(base, {
    serverLog: stderr.text,
    faultOfRefusal: async (...refusal) => (await documentedErrors(client)).faultOf(...refusal),
  });
  return {
    address,
    port: Number(address.slice(address.lastIndexOf(":") + 1)),
    base,
    pid: serverPid,
    dataDir,
    client,
    get control() {
      const address = /^CONTROL (\S+)$/m.exec(stdout.text())?.[1];
      if (address === undefined) throw new Error("the server has no control API: its runtime is turned off");
      return createClient(`http://${address}`, { serverLog: stderr.text });
    },
    stdout: stdout.text,
    stderr: stderr.text,
    exited,
    signal,
    stop,
    kill,
    [Symbol.asyncDispose]: async () => {
      await stop(3_000);
      cleanUp();
    },
  };
}

/** Direct children of a process (Linux). */
export function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split(/\s+/)
    .filter((text) => text !== "")
    .map(Number);
}

/** Whether a process runs this executable now. Its children may run it too: the server starts itself for its helpers. */
function isRunning(pid: number, binary: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) === realpathSync(binary);
  } catch {
    return false; // no such file system
  }
}

function signalTree(pid: number, name: NodeJS.Signals): void {
  for (const child of childrenOf(pid)) sendSignal(child, name);
  sendSignal(pid, name);
}

function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // ESRCH: it has ended meanwhile
  }
}

interface Collected {
  text(): string;
  done: Promise<void>;
  /** Called after every chunk until it returns true. */
  watch(listener: () => boolean): void;
}

function collect(stream: ReadableStream<Uint8Array>): Collected {
  let text = "";
  let listener: (() => boolean) | undefined;
  const decoder = new TextDecoder();
  const done = (async () => {
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      if (listener?.()) listener = undefined;
    }
  })();
  return {
    text: () => text,
    done,
    watch: (next) => {
      if (!next()) listener = next;
    },
  };
}

function waitForListening(stdout: Collected, exited: Promise<unknown>, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolveAddress) => {
    const timer = setTimeout(() => resolveAddress(undefined), timeoutMs);
    stdout.watch(() => {
      const line = /^LISTENING (\S+)\r?\n/m.exec(stdout.text());
      if (!line) return false;
      clearTimeout(timer);
      resolveAddress(line[1]);
      return true;
    });
    void exited.then(() => {
      clearTimeout(timer);
      resolveAddress(undefined);
    });
  });
}

/** The last lines that the servers of this process wrote, for the report of a failed test. */
export function recentServerLogs(linesEach = 25): string {
  return recentServers
    .slice(-2)
    .map(({ label, stderr }) => `── stderr of ${label}\n${stderr().trimEnd().split("\n").slice(-linesEach).join("\n")}`)
    .join("\n");
}
