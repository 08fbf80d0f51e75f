import { readFileSync } from "node:fs";
import { systemClock } from "../base/clock.ts";
import { type Log, silentLog } from "../base/log.ts";
import { createLog, stderrOutput } from "../base/log-writer.ts";
import { createPeriodicWork } from "../base/periodic-work.ts";
import { createServices } from "../base/service.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import { deriveKey } from "../crypto/derive.ts";
import { createSigner } from "../crypto/sign.ts";
import { storageFault } from "../protocol/storage-fault.ts";
import { createNodeCalls } from "../push-link/node-calls.ts";
import { createAccountProof } from "./account-proof.ts";
import { createApns } from "./apns.ts";
import { createDeliveryWorker } from "./delivery-worker.ts";
import { createFcm, type ServiceAccount } from "./fcm.ts";
import { createNodeApp } from "./node-app.ts";
import { type NodeConfig, NodeConfigError, readNodeConfig, readText } from "./node-config.ts";
import { type Provider, SEND_DEADLINE_MS } from "./provider.ts";
import { createPruneGuard } from "./prune-guard.ts";
import { createPushService } from "./service.ts";
import { createSqliteState } from "./sqlite-state.ts";
import type { PushState } from "./state.ts";

const SWEEP_MS = 60_000;
const PARALLEL_DELIVERIES = 32;
/** A connection without a byte for this many seconds is closed. */
const IDLE_SECONDS = 60;
const FCM_URL = "https://fcm.googleapis.com";
const APNS_URL = "https://api.push.apple.com";
const APNS_SANDBOX_URL = "https://api.sandbox.push.apple.com";

export interface RunningNode {
  /** The resolved `host:port`. */
  readonly address: string;
  /** Another node adds this id to its `downstreams` to deliver for this node. */
  readonly id: string;
  stop(): Promise<void>;
}

/** Starts a push node from its configuration file. Errors: NodeConfigError with a message for people. */
export async function startPushNode(options: { configFile: string; quiet?: boolean }): Promise<RunningNode> {
  const config = await readNodeConfig(options.configFile);
  const outputs = [stderrOutput(undefined, process.env)];
  const log = options.quiet
    ? silentLog
    : createLog({ level: config.log?.level ?? "info", outputs, clock: systemClock });
  const state = await openState(config, log);
  try {
    return await serve(config, state, log);
  } catch (error) {
    await state.close();
    throw error;
  }
}

async function serve(config: NodeConfig, state: PushState, log: Log): Promise<RunningNode> {
  const clock = systemClock;
  const secret = await state.secret();
  const signer = createSigner(deriveKey(secret, "push-node"));
  const id = accountIdOf(signer.publicKey);
  const providers = await openProviders(config, { id, signer });
  const { limits } = config;
  const guard = createPruneGuard(clock);
  const worker = createDeliveryWorker({ state, secret, providers, guard, clock, log, parallel: PARALLEL_DELIVERIES });
  const audience = () => new URL(config.url ?? `${config.listen.tls ? "https" : "http"}://${address}`).origin;
  const downstreams = new Set(config.downstreams ?? []);
  const service = createPushService({
    ...{ state, secret, audience, limits, clock, providers, downstreams },
    kick: worker.kick,
  });
  const proof = createAccountProof({ state, secret, audience, clock });
  const app = createNodeApp({ service, proof, limits, clock, log, behindProxy: config.behindProxy ?? false });

  const listener = listen(config, app.fetch);
  const address = `${listener.hostname?.includes(":") ? `[${listener.hostname}]` : listener.hostname}:${listener.port}`;
  const workers = createServices(log);
  workers.add(worker);
  workers.add(createPeriodicWork({ name: "old names", everyMs: SWEEP_MS, run: () => state.sweep(clock.nowMs()), log }));
  await workers.startAll();
  const held = Object.entries(providers).map(([platform, provider]) => `${platform}: ${provider?.name ?? "none"}`);
  log.info("push node listening", { address, id, providers: held.join(", ") });
  return {
    address,
    id,
    async stop() {
      await listener.stop(false);
      await workers.stopAll();
      for (const provider of new Set(Object.values(providers))) await provider?.close();
      await state.close();
    },
  };
}

function listen(config: NodeConfig, fetch: (request: Request, address: string) => Promise<Response>) {
  const { addr, tls } = config.listen;
  const colon = addr.lastIndexOf(":");
  try {
    return Bun.serve({
      hostname: addr.slice(0, colon).replace(/^\[|\]$/g, ""),
      port: Number(addr.slice(colon + 1)),
      idleTimeout: IDLE_SECONDS,
      development: false,
      reusePort: false,
      ...(tls ? { tls: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) } } : {}),
      fetch: (request, server) => fetch(request, server.requestIP(request)?.address ?? ""),
    });
  } catch (error) {
    throw new NodeConfigError(`Cannot listen on ${addr}: ${(error as Error).message}`);
  }
}

async function openState({ state }: NodeConfig, log: Log): Promise<PushState> {
  if (state.file !== undefined) return openFile(state.file, log);
  const { createNatsState } = await import("./nats-state.ts");
  return createNatsState(state.nats!);
}

async function openFile(file: string, log: Log): Promise<PushState> {
  try {
    return await createSqliteState(file, log);
  } catch (error) {
    const fault = storageFault(error);
    if (fault) throw new NodeConfigError(`${file}: ${fault.message}`);
    throw error;
  }
}

/** Chooses the provider for each platform: the one whose credentials are here, else the upstream node. */
async function openProviders(
  config: NodeConfig,
  node: { id: string; signer: ReturnType<typeof createSigner> },
): Promise<{ ios: Provider | undefined; android: Provider | undefined }> {
  const { upstream } = config;
  const fallback = upstream && (await openUpstream(upstream.url, node));
  return { ios: (await openApns(config)) ?? fallback, android: (await openFcm(config)) ?? fallback };
}

async function openUpstream(url: string, { id, signer }: { id: string; signer: ReturnType<typeof createSigner> }) {
  const { createUpstream } = await import("./upstream.ts");
  // The upstream node asks the provider before it answers, so the deadline is longer.
  return createUpstream(createNodeCalls({ url, account: id, signer, timeoutMs: SEND_DEADLINE_MS * 2 }));
}

async function openFcm({ fcm }: NodeConfig): Promise<Provider | undefined> {
  if (!fcm) return undefined;
  const text = await readText(fcm.serviceAccountFile, "fcm.serviceAccountFile");
  return orConfigError("fcm.serviceAccountFile", () => {
    const account = JSON.parse(text) as ServiceAccount;
    for (const field of ["project_id", "client_email", "private_key", "token_uri"] as const)
      if (typeof account[field] !== "string") throw new Error(`${field} is missing`);
    return createFcm({ account, baseUrl: fcm.baseUrl ?? FCM_URL, clock: systemClock });
  });
}

async function openApns({ apns }: NodeConfig): Promise<Provider | undefined> {
  if (!apns) return undefined;
  const { keyId, teamId, topic } = apns;
  const keyPem = await readText(apns.keyFile, "apns.keyFile");
  return orConfigError("apns.keyFile", () =>
    createApns({
      credentials: { keyPem, keyId, teamId, topic },
      productionUrl: apns.productionUrl ?? APNS_URL,
      sandboxUrl: apns.sandboxUrl ?? APNS_SANDBOX_URL,
      clock: systemClock,
    }),
  );
}

function orConfigError<T>(key: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new NodeConfigError(`${key}: ${(error as Error).message}`);
  }
}
