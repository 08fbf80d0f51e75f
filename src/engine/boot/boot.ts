import type { SpaceId } from "../../base/ids.ts";
import { createServices, type Services } from "../../base/service.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import type { Wallet } from "../../crypto/wallet.ts";
import { TECH_DATASETS } from "../../domain/type/built-in-schemas.ts";
import type { Space } from "../../space/space.ts";
import { createSpaceEvents, type SpaceEvents } from "../../space/space-events.ts";
import { createSpaceHolds, type SpaceHolds } from "../../space/space-holds.ts";
import { createSyncService, type SyncService } from "../../sync/sync-service.ts";
import { type AccountFiles, createAccountFiles } from "../account-files.ts";
import { openSearch } from "../account-search.ts";
import type { Engine } from "../engine.ts";
import { createLinkKeys, type LinkKeys } from "../link-keys.ts";
import { createPush } from "../push.ts";
import { createRuntime, type Runtime } from "../runtime/runtime.ts";
import { createSharedSpaces } from "../shared-spaces.ts";
import { probeVectorSupport } from "../vector-support.ts";
import type { BootEngine, BootOptions } from "./boot-engine.ts";
import { type OpenAccount, openAccount } from "./open-account.ts";
import { type Bus, openBus } from "./open-bus.ts";
import { type OpenServices, openServices } from "./open-services.ts";
import { openStores } from "./open-stores.ts";
import { createTransportsService } from "./start-transports.ts";

const PURGE_EVERY_MS = 24 * 60 * 60 * 1000;
/** How often processes that nobody reports on any more are forgotten. */
const PROCESS_SWEEP_MS = 5_000;

/**
 * Opens an account: what lies on disk, the account's own space, sync, what answers requests; then, on the boot pass behind
 * the listener, the workers. Each is made of those before it, and closed in reverse.
 */
export const bootEngine: BootEngine = async (options): Promise<Engine> => {
  const { accountDir, config, log, clock } = options;
  const account = accountOf(options.wallet);
  const events = createSpaceEvents();
  const holds = createSpaceHolds();
  const workers = createServices(log);
  const stores = openStores({ accountDir, events, clock, log });
  try {
    const opened = await openAccount({ account, stores, events, holds, clock, log });
    const { spaces, tech } = opened;
    const openHeld = async (spaceId: string): Promise<Space | undefined> => {
      if (spaceId === tech.space.id) return tech.space;
      return spaces.isHeld(spaceId) ? spaces.openHeld(spaceId as SpaceId) : undefined;
    };
    const bus = openBus({ opened, events, clock, log, open: openHeld });
    const linkKeys = followLinkKeys(opened, events);
    const sync = openSync(options, { opened, bus, events, holds });
    let bootstrapping = true;
    let closing = false;
    const isClosing = () => closing;
    const files = await openFiles(options, opened, bus, events, () => bootstrapping);
    const services = openServices({ stores, opened, bus, sync, files, events, holds, clock, log });
    workers.add(
      createTransportsService({
        config,
        account,
        deviceSeed: options.wallet.deviceSeed,
        clock,
        log,
        sync,
        tech: tech.space,
        relay: bus.relay,
        inboxMessages: services.inboxMessages,
        linkKeys,
        mayHaveOthers: () => mayHaveOthers(options, opened),
        placeOf: (spaceId) => opened.secrets.placeOf(spaceId),
        inviteSeedOf: (spaceId) => opened.secrets.tokenOf(spaceId)?.seed,
        useNetwork: (network) => void workers.add(files.useNetwork(network)),
        usePeer: (link) => files.usePeer(link, tech.space.id),
        serveChunk: files.serveChunk,
        open: openHeld,
      }),
    );
    const firstRound = addSync(workers, sync);
    workers.add({ name: "joins", start: services.joins.start, stop: services.joins.close });
    workers.add(services.claims);
    workers.add({ name: "profile", start: services.profileNews.start, stop: services.profileNews.close });
    const { space } = services;
    const push = createPush({ config, accountDir, opened, workers, events, space, clock, log });
    const search = workers.add(openSearch(options, { stores, opened, bus, events }));
    for (const worker of files.workers) workers.add(worker);
    const runtime = openRuntime(options, { opened, bus, services, events, firstRound });
    if (runtime) workers.add(runtime);
    workers.add(every("processes", PROCESS_SWEEP_MS, bus.processes.sweep));
    // Spaces are seen to when they are opened, too: this is for those that stay open, or closed, for long.
    workers.add(every("purge", PURGE_EVERY_MS, () => void services.life.purgePass(isClosing)));

    const bootPass = async (): Promise<void> => {
      await services.life.bootPass(isClosing);
      if (closing) return;
      await workers.startAll();
      await firstRound();
      if (config["index.enabled"]) probeVectorSupport(accountDir, log);
    };
    const pass = bootPass()
      .catch((err: unknown) => log.error("the boot pass failed", { err }))
      .finally(() => {
        bootstrapping = false;
      });

    return {
      accountId: account.id,
      peerId: account.peerId,
      spaces,
      tech,
      devices: opened.devices,
      identities: opened.identities,
      events: bus.events,
      spaceEvents: events,
      processes: bus.processes,
      sync,
      runtime,
      fileCache: files.cache,
      search,
      techDatasets: TECH_DATASETS,
      ...services,
      push,
      changeProfile: services.profileNews.change,
      bootstrapping: () => bootstrapping,
      deviceCopied: sync.copy.state,
      async close() {
        closing = true;
        await workers.stopAll();
        await pass;
        bus.processes.close();
        services.rights.close();
        await services.inboxMessages.close();
        services.closeListings();
        await files.close();
        await spaces.close();
        await tech.space.close();
        stores.close();
      },
    };
  } catch (error) {
    stores.close();
    throw error;
  }
};

function accountOf(wallet: Wallet): Account {
  const { accountId: id, peerId, accountSeed: seed } = wallet;
  return { id, peerId, seed, signer: createSigner(seed) };
}

async function openFiles(
  { accountDir, config, clock, log }: BootOptions,
  { spaces }: OpenAccount,
  { startLongWork }: Bus,
  events: SpaceEvents,
  isSettling: () => boolean,
): Promise<AccountFiles> {
  const files = await createAccountFiles({
    accountDir,
    clock,
    log,
    cacheLimitBytes: config["files.cacheLimit"],
    sweepEveryMs: config["files.gcInterval"],
    keepsAll: config["files.keep"] === "all",
    startLongWork,
    activeIds: spaces.activeIds,
    isActive: (spaceId) => spaces.activeIds().includes(spaceId),
    isOver: (spaceId) => spaces.rowOf(spaceId)?.["status"] === "deleted",
    isSettling,
    use: (spaceId, run) => spaces.use(spaces.requireActive(spaceId), run),
  });
  events.on("closed", files.closed);
  events.on("ended", files.ended);
  return files;
}

/** Triggers and programs, where they are wanted and requests can be answered. */
function openRuntime(
  { accountDir, answer, config, clock, log }: BootOptions,
  parts: {
    opened: OpenAccount;
    bus: Bus;
    services: OpenServices;
    events: SpaceEvents;
    firstRound: () => Promise<void>;
  },
): Runtime | undefined {
  if (!config["runtime.enabled"] || !answer) return undefined;
  const { account, devices } = parts.opened;
  return createRuntime({
    accountDir,
    accountId: account.id,
    peerId: account.peerId,
    config,
    env: process.env,
    clock,
    log: log.child({ room: "runtime" }),
    devices,
    events: parts.bus.events,
    processes: parts.bus.processes,
    spaceEvents: parts.events,
    ensureDerived: parts.services.life.ensureDerived,
    space: parts.services.space,
    // A round that failed is as good as one that ended: this device goes on by itself.
    firstRound: () => parts.firstRound().catch(() => undefined),
    answer,
  });
}

/** The keys by which peers on the LAN recognise the spaces that they share with this account. */
function followLinkKeys({ account, secrets, tech }: OpenAccount, events: SpaceEvents): LinkKeys {
  const linkKeys = createLinkKeys(account, (spaceId) => secrets.placeOf(spaceId));
  const follow = (space: Space): void => {
    if (space.id !== tech.space.id) linkKeys.spaceChanged(space);
  };
  events.on("opened", follow);
  events.on("aclChanged", follow);
  events.on("ending", linkKeys.spaceEnded);
  return linkKeys;
}

/** Boot, phase 3: sync follows every space from its opening on. */
function openSync(
  { config, clock, log }: BootOptions,
  parts: { opened: OpenAccount; bus: Bus; events: SpaceEvents; holds: SpaceHolds },
): SyncService {
  const { opened, bus, events, holds } = parts;
  const { account, spaces, tech, devices } = opened;
  const shared = createSharedSpaces(events);
  const sync = createSyncService({
    peerId: account.peerId,
    clock,
    log,
    intervalMs: config["sync.interval"],
    showCatchUp: () =>
      bus.startLongWork({ kind: "sync.restore", title: "Getting what other devices have", target: account.id }),
    spaces: {
      tech: tech.space,
      active: spaces.activeIds,
      held: spaces.heldIds,
      isHeld: spaces.isHeld,
      isOnlyHere: (spaceId) => devices.list().devices.length <= 1 && !shared.has(spaceId),
      openHeld: spaces.openHeld,
      open: spaces.open,
    },
  });
  sync.attach(tech.space);
  events.on("opened", sync.attach);
  events.on("known", sync.firstRoundSoon);
  events.on("ending", (spaceId) => {
    sync.forget(spaceId).catch((err: unknown) => log.error("forgetting a space failed", { err, spaceId }));
  });
  holds.add(sync.isBusy);
  return sync;
}

/** Answers how to wait for the round that belongs to the boot pass; what is added later starts beside it. */
function addSync(workers: Services, sync: SyncService): () => Promise<void> {
  let first = Promise.resolve();
  workers.add({
    name: "sync",
    start() {
      first = sync.start();
      first.catch(() => undefined); // heard of where it is waited for
    },
    stop: sync.close,
  });
  return () => first;
}

function every(name: string, everyMs: number, run: () => void) {
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    name,
    start() {
      timer = setInterval(run, everyMs);
    },
    stop: () => clearInterval(timer),
  };
}

/** Other devices or members; an account without a space may be one that is being restored. */
function mayHaveOthers({ brandNew = false }: BootOptions, { devices, identities, spaces }: OpenAccount): boolean {
  if (brandNew) return false;
  return devices.list().devices.length > 1 || identities.list().length > 0 || spaces.list("all").length === 0;
}
