/** A push node of the freshly built executable, in front of servers that speak FCM and APNs. */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceAccount } from "../../../src/push-node/fcm.ts";
import { until } from "../server/client.ts";
import { BINARY } from "../server/server.ts";
import { apnsCredentials } from "./fake-apns.ts";

export interface NodeOptions {
  readonly directory?: string;
  readonly port?: number;
  readonly fcm?: { readonly url: string; readonly account: ServiceAccount };
  readonly apns?: { readonly url: string; readonly sandboxUrl?: string };
  /** Lines of YAML, in place of the SQLite state. */
  readonly state?: string;
  /** More lines of YAML under `listen`. */
  readonly listen?: string;
  /** More lines of YAML. */
  readonly more?: string;
}

export interface PushNode extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly directory: string;
  readonly databasePath: string;
  stderr(): string;
  /** Until a provider has decided on all that was taken: what has not arrived then does not arrive. Of nodes with a file. */
  untilDelivered(): Promise<void>;
  /** SIGKILL and wait. */
  kill(): Promise<void>;
  /** Starts it again on the same port and state. */
  start(): Promise<void>;
}

/** Starts `svc push-node`. */
export async function startNode(options: NodeOptions = {}): Promise<PushNode> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), "svc-push-node-"));
  const databasePath = join(directory, "push-node.db");
  let port = options.port ?? 0;
  let stderr = "";
  let child: Bun.Subprocess<"ignore", "pipe", "pipe"> | undefined;

  const start = async (): Promise<void> => {
    writeConfig(directory, port, databasePath, options);
    const started = Bun.spawn([BINARY, "push-node", "--config", join(directory, "node.yaml")], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    child = started;
    void (async () => {
      for await (const chunk of started.stderr) stderr += Buffer.from(chunk).toString();
    })();
    port = await listeningPort(started, () => stderr);
  };
  const kill = async (): Promise<void> => {
    child?.kill("SIGKILL");
    await child?.exited;
  };
  await start();
  return {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    get port() {
      return port;
    },
    directory,
    databasePath,
    stderr: () => stderr,
    untilDelivered: () => until(() => waitingIn(databasePath) === 0, "the node to have delivered everything"),
    kill,
    start,
    [Symbol.asyncDispose]: async () => {
      await kill();
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** How many deliveries a node has taken that no provider has decided on. */
function waitingIn(databasePath: string): number {
  using db = new Database(databasePath, { readonly: true });
  return db.query<{ count: number }, []>("SELECT count(*) AS count FROM deliveries").get()!.count;
}

function writeConfig(directory: string, port: number, databasePath: string, options: NodeOptions): void {
  const { fcm, apns, listen = "", more = "", state = `state:\n  file: ${databasePath}` } = options;
  const at = (name: string) => join(directory, name);
  const lines = [`listen:\n  addr: 127.0.0.1:${port}\n${listen}`, state, "log:\n  level: debug", more];
  if (fcm) {
    writeFileSync(at("service-account.json"), JSON.stringify(fcm.account));
    lines.push(`fcm:\n  serviceAccountFile: service-account.json\n  baseUrl: ${fcm.url}`);
  }
  if (apns) {
    const { keyPem, keyId, teamId, topic } = apnsCredentials;
    writeFileSync(at("apns.p8"), keyPem);
    const urls = `  productionUrl: ${apns.url}\n  sandboxUrl: ${apns.sandboxUrl ?? apns.url}`;
    lines.push(`apns:\n  keyFile: apns.p8\n  keyId: ${keyId}\n  teamId: ${teamId}\n  topic: ${topic}\n${urls}`);
  }
  writeFileSync(at("node.yaml"), `${lines.join("\n")}\n`);
}

async function listeningPort(child: Bun.Subprocess<"ignore", "pipe", "pipe">, stderr: () => string): Promise<number> {
  let stdout = "";
  for await (const chunk of child.stdout) {
    stdout += Buffer.from(chunk).toString();
    const found = /LISTENING .*:(\d+)\n/.exec(stdout);
    if (found) return Number(found[1]);
  }
  throw new Error(`the push node did not start: ${stdout}${stderr()}`);
}
