import type { Service, Services } from "../../base/service.ts";
import type { PushService } from "../../domain/push/push-service.ts";
import type { SearchService } from "../../domain/search/search-service.ts";
import type { Replica } from "../../space/replica.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SyncService } from "../../sync/sync-service.ts";
import type { AccountFiles } from "../account-files.ts";
import { openSearch } from "../account-search.ts";
import type { LinkKeys } from "../link-keys.ts";
import { createPush } from "../push.ts";
import { createRuntime, type Runtime } from "../runtime/runtime.ts";
import { createSpaceChecks } from "../space-checks.ts";
import type { BootOptions } from "./boot-engine.ts";
import type { OpenAccount } from "./open-account.ts";
import type { Bus } from "./open-bus.ts";
import type { OpenServices } from "./open-services.ts";
import type { Stores } from "./open-stores.ts";
import { createTransportsService } from "./start-transports.ts";

const PURGE_EVERY_MS = 24 * 60 * 60 * 1000;
/** How often spaces whose creation failed are tried again. */
const CREATION_RETRY_MS = 30_000;
/** How often processes that nobody reports on any more are forgotten. */
const PROCESS_SWEEP_MS = 5_000;

/** What boot has opened when its workers are made. */
export interface BootParts {
  readonly stores: Stores;
  readonly opened: OpenAccount;
  readonly bus: Bus;
  readonly linkKeys: LinkKeys;
  readonly sync: SyncService;
  readonly files: AccountFiles;
  readonly services: OpenServices;
  readonly events: SpaceEvents;
  /** A space that is active here, opened; undefined for anything else. */
  openHeld(spaceId: string): Promise<Replica | undefined>;
  isClosing(): boolean;
}

export interface Workers {
  readonly push: PushService | undefined;
  readonly search: SearchService;
  readonly runtime: Runtime | undefined;
  /** Runs the sync round that belongs to the boot pass; it begins once the workers have started. */
  firstRound(): Promise<void>;
}

/** Boot, phase 4: the background workers, in the order in which they start; they stop in reverse. */
export function addWorkers(workers: Services, options: BootOptions, parts: BootParts): Workers {
  const { accountDir, config, log, clock } = options;
  const { stores, opened, bus, sync, files, services, events } = parts;
  workers.add(openTransports(workers, options, parts));
  const firstRound = addSync(workers, sync);
  workers.add(services.joins);
  workers.add(services.claims);
  workers.add(services.profileNews);
  const { space } = services;
  const push = createPush({ config, accountDir, opened, workers, events, space, clock, log });
  const search = workers.add(openSearch(options, { stores, opened, bus, events }));
  for (const worker of files.workers) workers.add(worker);
  const runtime = openRuntime(options, parts, firstRound);
  if (runtime) workers.add(runtime);
  workers.add(every("space-creation", CREATION_RETRY_MS, () => void services.life.retryCreation(parts.isClosing)));
  workers.add(every("processes", PROCESS_SWEEP_MS, bus.processes.sweep));
  // Spaces are seen to when they are opened, too. This is for spaces that stay open, or closed, for long.
  workers.add(every("purge", PURGE_EVERY_MS, () => void services.life.purgePass(parts.isClosing)));
  workers.add(openSpaceChecks(options, parts, search));
  return { push, search, runtime, firstRound };
}

function openTransports(workers: Services, options: BootOptions, parts: BootParts): Service {
  const { config, wallet, clock, log } = options;
  const { opened, bus, sync, files, services, linkKeys } = parts;
  const { account, secrets, tech } = opened;
  return createTransportsService({
    config,
    account,
    deviceSeed: wallet.deviceSeed,
    clock,
    log,
    sync,
    tech: tech.space,
    relay: bus.relay,
    inboxMessages: services.inboxMessages,
    linkKeys,
    mayHaveOthers: () => mayHaveOthers(options, opened),
    hintsOf: (spaceId) => ({
      secrets: opened.hints.of(spaceId),
      seeds: [secrets.accountIn(spaceId).seed, ...(secrets.placeOf(spaceId)?.seeds ?? [])],
    }),
    inviteSeedOf: (spaceId) => secrets.tokenOf(spaceId)?.seed,
    useNetwork: (network) => void workers.add(files.useNetwork(network)),
    usePeer: (link) => files.usePeer(link, tech.space.id),
    serveChunk: files.serveChunk,
    open: parts.openHeld,
  });
}

function openSpaceChecks(
  { config, clock, log }: BootOptions,
  { stores, opened }: BootParts,
  search: SearchService,
): Service {
  const { spaces, tech } = opened;
  return createSpaceChecks({
    everyMs: config["storage.checkInterval"],
    ids: () => [tech.space.id, ...spaces.heldIds()],
    use: (spaceId, run) => (spaceId === tech.space.id ? run(tech.space) : spaces.use(spaceId, run)),
    checkIndex: search.check,
    account: stores.account,
    readers: stores.readers,
    repairs: stores.repairs,
    clock,
    log: log.child({ component: "storage" }),
  });
}

/** Opens triggers and programs, where they are configured and requests can be answered. */
function openRuntime(
  { accountDir, answer, config, clock, log }: BootOptions,
  { opened, bus, services, events }: BootParts,
  firstRound: Workers["firstRound"],
): Runtime | undefined {
  if (!config["runtime.enabled"] || !answer) return undefined;
  const { account, devices } = opened;
  return createRuntime({
    accountDir,
    accountId: account.id,
    peerId: account.peerId,
    config,
    env: process.env,
    clock,
    log: log.child({ component: "runtime" }),
    devices,
    events: bus.events,
    processes: bus.processes,
    spaceEvents: events,
    ensureDerived: services.life.ensureDerived,
    space: services.space,
    // A failed round counts as ended: this device then goes on by itself.
    firstRound: () => firstRound().catch(() => undefined),
    answer,
  });
}
/** Adds sync, and returns a function that waits for the round of the boot pass. Workers that are added later start beside it. */
function addSync(workers: Services, sync: SyncService): () => Promise<void> {
  let first = Promise.resolve();
  workers.add({
    name: "sync",
    start() {
      first = sync.start();
      first.catch(() => undefined); // the failure is reported where the round is awaited
    },
    stop: sync.close,
  });
  return () => first;
}

function every(name: string, everyMs: number, run: () => void): Service {
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    name,
    start() {
      timer = setInterval(run, everyMs);
    },
    stop: () => clearInterval(timer),
  };
}

/** Whether there may be other devices or members. An account without a space may be one that is being restored. */
function mayHaveOthers({ brandNew = false }: BootOptions, { devices, identities, spaces }: OpenAccount): boolean {
  if (brandNew) return false;
  return devices.list().devices.length > 1 || identities.list().length > 0 || spaces.list("all").length === 0;
}
