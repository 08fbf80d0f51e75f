import { writeSync } from "node:fs";
import { isatty } from "node:tty";
import { systemClock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { createRequestLoad } from "./base/request-load.ts";
import { VERSION_STRING } from "./base/version.ts";
import { createAccountHost, type ServerAccountHost } from "./engine/account/account-host.ts";
import type { BootEngine } from "./engine/boot/boot-engine.ts";
import { type Config, type ConfigSources, loadConfig } from "./engine/config/config.ts";
import { refuseBadFiles } from "./engine/config/config-files.ts";
import { openLog } from "./engine/config/log-setup.ts";
import { prepareDataRoot } from "./engine/data-root.ts";
import { formatAddress, type ListenAddress } from "./engine/listen-address.ts";
import type { AnswerRequest } from "./engine/runtime/local-api.ts";
import { StartRefusal } from "./engine/start-refusal.ts";
import { createAppLater } from "./http/app.ts";
import { CONTROL_ROUTES } from "./http/control/control-routes.ts";
import { createListener, type Listener } from "./http/listener.ts";
import { docsPages } from "./http/page/docs-pages.ts";
import { servePage } from "./http/page/page.ts";
import { uiPages } from "./http/page/ui-pages.ts";
import { openApiRoute } from "./http/routes/openapi.ts";
import { ROUTES } from "./http/routes/route-table.ts";
import type { ServerHandle } from "./http/server-handle.ts";
import { createShutdown } from "./http/shutdown.ts";
import { createStreamRegistry } from "./http/stream/stream-registry.ts";
import { SvcError } from "./protocol/errors.ts";
import { LIMITS } from "./protocol/limits.ts";

export interface CreateServerOptions extends ConfigSources {
  /** Inside an app: no page at /ui, no signal handlers, nothing on stdout. */
  readonly embedded?: boolean;
  /** On a phone: no OpenAPI document and no documentation page. */
  readonly mobile?: boolean;
  /** How an account's engine is opened; the real one unless a test brings its own. */
  readonly bootEngine?: BootEngine;
  /** Holds routes to what they declare; for tests. */
  readonly checkResponses?: boolean;
}

export interface RunningServer {
  /** The resolved `host:port`. */
  readonly address: string;
  /** That of the runtime's control API; undefined when the runtime is turned off. */
  readonly controlAddress: string | undefined;
  /** Resolves when the server has stopped, however that began; the process may then exit with 0. */
  readonly finished: Promise<void>;
  /** Stops the server (SRV-4) and resolves when it has. */
  stop(): Promise<void>;
}

/**
 * Starts a server: configuration, account, engine, listener, in this order, so that what fails does so before anything is
 * served. Throws StartRefusal with a message for people.
 */
export async function createServer(options: CreateServerOptions = {}): Promise<RunningServer> {
  const config = await loadConfig(options);
  refuseBadFiles(config);
  const { log, close: closeLog } = openLog(config, options.env ?? process.env);
  prepareDataRoot(config.dataDir);
  for (const name of config.unknownVariables) log.warn("this environment variable means nothing here", { name });
  const load = createRequestLoad();
  const inner = createInnerApi();
  const bootEngine: BootEngine = (boot) =>
    (options.bootEngine ?? bootRealEngine)({ ...boot, answer: inner.answer, isBusy: load.isHigh });
  const host = createAccountHost({ config, log, clock: systemClock, bootEngine });
  await bootConfigured(host, config, log);

  const listener = createListener(config["listen.addr"]);
  const control = config["runtime.enabled"] ? createListener(config["runtime.addr"]) : undefined;
  const stopping = new AbortController();
  const streams = createStreamRegistry();
  const shutdown = createShutdown({
    stopping,
    streams,
    listeners: control ? [listener, control] : [listener],
    closeEngine: () => host.close(),
    log,
    drainMs: LIMITS.drainMs,
  });
  const handle: ServerHandle = {
    clock: systemClock,
    startedAt: new Date(systemClock.nowMs()),
    mobile: options.mobile ?? false,
    controlAddress: () => control?.address,
    streams,
    stopping: stopping.signal,
    // After the answer to the request that asks for it.
    requestShutdown: () => void setImmediate(() => shutdown.begin("POST /v1/shutdown")),
    disableIdleTimeout: listener.disableIdleTimeout,
  };
  const pages = [...(wantsUi(config, options) ? [uiPages] : []), ...(options.mobile ? [] : [docsPages])];
  const app = createAppLater({
    routes: options.mobile ? ROUTES : [...ROUTES, openApiRoute(ROUTES)],
    host,
    server: handle,
    log,
    allowedOrigins: config["http.allowedOrigins"],
    port: () => listener.port,
    page: (request, pathname) => servePage(pages, request, pathname),
    checkResponses: options.checkResponses ?? false,
  });
  const serve = (request: Request): Promise<Response> => {
    load.note();
    return app.fetch(request);
  };
  try {
    startListening(listener, serve, config["listen.addr"], "--addr or listen.addr");
    if (control) startControl(control, { config, host, server: handle, log, options });
  } catch (error) {
    listener.abort();
    await host.close();
    throw error;
  }
  inner.open((request) => {
    request.headers.set("host", listener.address);
    return app.fetch(request);
  });
  log.info("listening", { address: listener.address, version: VERSION_STRING, dataDir: config.dataDir });

  // People start servers in terminals, and then want to see something; a service manager's log has the line above.
  if (wantsUi(config, options) && isatty(2)) writeSync(2, `The page is at http://${listener.address}/ui\n`);
  const releaseProcess = options.embedded ? undefined : takeProcess(listener, control, shutdown.begin, log);
  const finished = shutdown.finished.finally(() => {
    releaseProcess?.();
    closeLog();
  });
  return {
    address: listener.address,
    controlAddress: control?.address,
    finished,
    stop() {
      shutdown.begin("stop");
      return finished;
    },
  };
}

/** Loaded only here, so that what does not need an engine does not pay for it. */
const bootRealEngine: BootEngine = async (boot) => (await import("./engine/boot/boot.ts")).bootEngine(boot);

function wantsUi(config: Config, options: CreateServerOptions): boolean {
  return config["webUI.enabled"] && !options.embedded;
}

/** A server that was just told to stop may still hold the account for a moment: `svc stop && svc run` is no fault. */
const HANDOVER_MS = 2_000;
const HANDOVER_STEP_MS = 100;

async function bootWithHandover(host: ServerAccountHost): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += HANDOVER_STEP_MS) {
    try {
      return await host.bootConfigured();
    } catch (error) {
      const inUse = error instanceof SvcError && error.code === "auth.account_in_use";
      if (!inUse || waitedMs >= HANDOVER_MS) throw error;
      await Bun.sleep(HANDOVER_STEP_MS);
    }
  }
}

/** Boots the account the configuration resolves to; without one the server starts unauthorized. */
async function bootConfigured(host: ServerAccountHost, config: Config, log: Log): Promise<void> {
  try {
    await bootWithHandover(host);
  } catch (error) {
    // The code is what people search for; the message says what to do, and which file it is about.
    if (error instanceof SvcError) {
      const { code, message, cause } = error;
      const file = code === "server.unavailable" && cause instanceof Error ? ` (${cause.message})` : "";
      throw new StartRefusal(`${code}: ${message}${file}`, { cause: error });
    }
    throw error;
  }
  if (host.engine) return;
  const accounts = await host.listAccounts();
  const hint =
    accounts.length === 0
      ? "no account yet: svc init or POST /v1/auth makes one"
      : "several accounts: --account or POST /v1/auth selects one";
  log.info(hint, { dataDir: config.dataDir, accounts: accounts.map(({ id }) => id) });
}

/** The API as programs call it: as everybody does, but for the socket. Their requests wait until it is open. */
function createInnerApi() {
  const opened = Promise.withResolvers<AnswerRequest>();
  const answer: AnswerRequest = async (request) => (await opened.promise)(request);
  return { answer, open: opened.resolve };
}

/** Throws StartRefusal, which says by which `setting` another address is named. */
function startListening(
  listener: Listener,
  fetch: (request: Request) => Promise<Response>,
  address: ListenAddress,
  setting: string,
): void {
  try {
    listener.start(fetch);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "EADDRINUSE" ? "another program listens there" : message;
    throw new StartRefusal(`Cannot listen on ${formatAddress(address)}: ${reason}; ${setting} names another address`);
  }
}

interface ControlDeps {
  readonly config: Config;
  readonly host: ServerAccountHost;
  readonly server: ServerHandle;
  readonly log: Log;
  readonly options: CreateServerOptions;
}

/** The control API beside the main one. A default port that is taken gives way to a free one; one that was asked for does not. */
function startControl(control: Listener, { config, host, server, log, options }: ControlDeps): void {
  const app = createAppLater({
    routes: [...CONTROL_ROUTES, openApiRoute(CONTROL_ROUTES, "/openapi.json")],
    host,
    server: { ...server, disableIdleTimeout: control.disableIdleTimeout },
    log: log.child({ listener: "control" }),
    allowedOrigins: config["http.allowedOrigins"],
    port: () => control.port,
    checkResponses: options.checkResponses ?? false,
  });
  const address = config["runtime.addr"];
  try {
    startListening(control, app.fetch, address, "runtime.addr");
  } catch (error) {
    if (config.given.has("runtime.addr")) throw error;
    control.start(app.fetch, 0);
    log.warn("the control API's port is taken, it has a free one; runtime.addr names another", {
      wanted: formatAddress(address),
      address: control.address,
    });
  }
}

/** Makes the process the server's: says where it listens, stops on signals, logs what nobody caught. Undone by the result. */
function takeProcess(
  { address }: Listener,
  control: Listener | undefined,
  begin: (cause: string) => void,
  log: Log,
): () => void {
  const onSignal = (signal: NodeJS.Signals) => begin(signal);
  const onStray = (error: unknown) => log.error("an error nobody handled", { err: error });
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  process.on("unhandledRejection", onStray).on("uncaughtException", onStray);
  // In one piece: who waits for the first line finds the second.
  writeSync(1, `LISTENING ${address}\n${control ? `CONTROL ${control.address}\n` : ""}`);
  return () => {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    process.off("unhandledRejection", onStray).off("uncaughtException", onStray);
  };
}
