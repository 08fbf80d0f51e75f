import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect as dial } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { skipGroupUnless } from "../skip.ts";
import { freePort } from "./free-port.ts";

/**
 * Real nats-servers for tests: each in a directory of its own, on loopback, killed with the test process. The binary is
 * `NATS_SERVER` or `nats-server` on the PATH.
 */
const natsServerPath: string | undefined = process.env["NATS_SERVER"] ?? Bun.which("nats-server") ?? undefined;

/** `describe` for tests that need a nats-server. */
export const describeWithNats = skipGroupUnless(
  natsServerPath !== undefined,
  "no nats-server; set NATS_SERVER or put it on the PATH",
);

export interface NatsOptions {
  /** Lines added to the configuration: authorization, tls, cluster. */
  readonly config?: string;
  /** The whole configuration, in place of the ordinary one. */
  readonly wholeConfig?: (place: { listen: string; storeDirectory: string; logPath: string }) => string;
  readonly name?: string;
  readonly port?: number;
}

export interface NatsServer extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  readonly directory: string;
  readonly pid: number | undefined;
  /** Starts it again on the same port and store. */
  start(): Promise<void>;
  /** SIGTERM and wait. */
  stop(): Promise<void>;
  /** SIGKILL and wait. */
  kill(): Promise<void>;
  /** SIGSTOP, as a server that hangs. */
  pause(): void;
  resume(): void;
  /** A stopped server's store is copied aside; the name is for `restore`. */
  saveStore(name: string): void;
  restoreStore(name: string): void;
  wipeStore(): void;
  /** Changes the configuration; a server that runs is told to read it again. */
  edit(change: (config: string) => string): void;
  log(): string;
}

const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const directory = mkdtempSync(join(tmpdir(), "svc-nats-"));
  const server = await defineNats(directory, options);
  await server.start();
  return server;
}

/** Three servers with one JetStream domain. `urls` is what `network.url` takes. */
export async function startNatsCluster(size = 3): Promise<{ servers: NatsServer[]; urls: string } & AsyncDisposable> {
  const routes = await Promise.all(Array.from({ length: size }, freePort));
  const servers = await Promise.all(
    routes.map((route, index) =>
      defineNats(mkdtempSync(join(tmpdir(), "svc-nats-")), {
        name: `n${index}`,
        config: `cluster { name: test, listen: "127.0.0.1:${route}", routes: [${routes.map((port) => `"nats://127.0.0.1:${port}"`).join(", ")}] }`,
      }),
    ),
  );
  await Promise.all(servers.map((server) => server.start()));
  return {
    servers,
    urls: servers.map((server) => server.url).join(","),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
    },
  };
}

async function defineNats(directory: string, options: NatsOptions): Promise<NatsServer> {
  if (!natsServerPath) throw new Error("no nats-server");
  const binary = natsServerPath;
  const port = options.port ?? (await freePort());
  const name = options.name ?? "test";
  const store = join(directory, "store");
  const configPath = join(directory, "nats.conf");
  const logPath = join(directory, "nats.log");
  const listen = `127.0.0.1:${port}`;
  writeFileSync(
    configPath,
    options.wholeConfig?.({ listen, storeDirectory: store, logPath }) ??
      `server_name: ${name}
listen: "${listen}"
log_file: "${logPath}"
jetstream { store_dir: "${store}", sync_interval: always }
${options.config ?? ""}
`,
  );
  let child: ChildProcess | undefined;

  const start = async () => {
    if (child) throw new Error(`${name} runs already`);
    const output = openSync(logPath, "a"); // a configuration that does not parse is told there
    const started = spawn(binary, ["-c", configPath], { stdio: ["ignore", output, output] });
    closeSync(output);
    child = started;
    children.add(started);
    await untilListening(
      port,
      () => started.exitCode !== null,
      () => readLog(logPath),
    );
  };
  const end = async (signal: NodeJS.Signals) => {
    const ended = child;
    if (!ended) return;
    child = undefined;
    children.delete(ended);
    if (ended.exitCode !== null) return;
    const gone = new Promise<void>((done) => ended.once("exit", () => done()));
    ended.kill(signal);
    await gone;
  };
  const mustBeStopped = () => {
    if (child) throw new Error(`stop ${name} before touching its store`);
  };
  return {
    name,
    url: `nats://127.0.0.1:${port}`,
    port,
    directory,
    get pid() {
      return child?.pid;
    },
    start,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    saveStore: (copy) => {
      mustBeStopped();
      cpSync(store, join(directory, copy), { recursive: true });
    },
    restoreStore: (copy) => {
      mustBeStopped();
      rmSync(store, { recursive: true, force: true });
      cpSync(join(directory, copy), store, { recursive: true });
    },
    wipeStore: () => {
      mustBeStopped();
      rmSync(store, { recursive: true, force: true });
      mkdirSync(store);
    },
    edit: (change) => {
      writeFileSync(configPath, change(readFileSync(configPath, "utf8")));
      child?.kill("SIGHUP");
    },
    log: () => readLog(logPath),
    [Symbol.asyncDispose]: async () => {
      await end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const readLog = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

async function untilListening(port: number, exited: () => boolean, log: () => string): Promise<void> {
  for (;;) {
    if (exited()) throw new Error(`nats-server ended at once:\n${log()}`);
    const open = await new Promise<boolean>((done) => {
      const socket = dial(port, "127.0.0.1");
      socket.once("connect", () => {
        socket.destroy();
        done(true);
      });
      socket.once("error", () => done(false));
    });
    if (open) return;
    await Bun.sleep(20);
  }
}
