import { createPeriodicWork } from "../../base/periodic-work.ts";
import type { Service, Services } from "../../base/service.ts";
import type { PushService } from "../../domain/push/push-service.ts";
import type { SearchService } from "../../domain/search/search-service.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SyncService } from "../../sync/sync-service.ts";
import type { Transports } from "../../sync/transports.ts";
import type { AccountFiles } from "../account-files.ts";
import type { LinkKeys } from "../link-keys.ts";
import { createRuntime, type Runtime } from "../runtime/runtime.ts";
import { createSpaceChecks } from "../space-checks.ts";
import { openSearch } from "./account-search.ts";
import type { BootOptions } from "./boot-engine.ts";
import type { OpenAccount } from "./open-account.ts";
import type { Bus } from "./open-bus.ts";
import type { OpenServices } from "./open-services.ts";
import type { Stores } from "./open-stores.ts";
import { createPush } from "./push.ts";
import { createTransportsService } from "./start-transports.ts";

const PURGE_EVERY_MS = 24 * 60 * 60 * 1000;
/** How often spaces whose creation failed are tried again. */
const CREATION_RETRY_MS = 30_000;
/** How often processes that nobody reports on any more are forgotten. */
const PROCESS_SWEEP_MS = 5_000;

/** What boot has opened when its workers are made. */
export interface Booted {
  readonly stores: Stores;
  readonly opened: OpenAccount;
  readonly bus: Bus;
  readonly transports: Transports;
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
}

/** Boot, phase 4: the background workers, in the order in which they start; they stop in reverse. */
export function addWorkers(workers: Services, options: BootOptions, booted: Booted): Workers {
  const { accountDir, config, log, clock } = options;
  const { stores, opened, bus, sync, files, services, events } = booted;
  workers.add(openTransports(workers, options, booted));
  workers.add(sync);
  workers.add(services.joins);
  workers.add(services.claims);
  workers.add(services.profileNews);
  const { space } = services;
  const push = createPush({ config, accountDir, opened, events, space, clock, log });
  if (push) workers.add(push);
  const search = workers.add(openSearch(options, { stores, opened, bus, events }));
  for (const worker of files.workers) workers.add(worker);
  const runtime = openRuntime(options, booted);
  if (runtime) workers.add(runtime);
  const every = (name: string, everyMs: number, run: () => void | Promise<void>): Service =>
    createPeriodicWork({ name, everyMs, run, log });
  workers.add(every("space-creation", CREATION_RETRY_MS, () => services.life.retryCreation(booted.isClosing)));
  workers.add(every("processes", PROCESS_SWEEP_MS, bus.processes.sweep));
  // Spaces are seen to when they are opened, too. This is for spaces that stay open, or closed, for long.
  workers.add(every("purge", PURGE_EVERY_MS, () => services.life.purgePass(booted.isClosing)));
  workers.add(openSpaceChecks(options, booted, search));
  return { push, search, runtime };
}

function openTransports(workers: Services, options: BootOptions, booted: Booted): Service {
  const { config, wallet, clock, log } = options;
  const { opened, bus, transports, sync, files, services, linkKeys } = booted;
  const { account, secrets, tech } = opened;
  return createTransportsService({
    config,
    account,
    deviceSeed: wallet.deviceSeed,
    clock,
    log,
    transports,
    sync,
    tech: tech.space,
    relay: bus.relay,
    outbox: services.outbox,
    received: services.received,
    linkKeys,
    isClosing: booted.isClosing,
    mayHaveOthers: () => mayHaveOthers(options, opened),
    hintsOf: (spaceId) => ({
      secrets: opened.hints.of(spaceId),
      seeds: [secrets.accountIn(spaceId).seed, ...(secrets.placeOf(spaceId)?.seeds ?? [])],
    }),
    inviteSeedOf: (spaceId) => secrets.tokenOf(spaceId)?.seed,
    useNetwork: (network) => void workers.add(files.useNetwork(network)),
    usePeer: (link) => files.usePeer(link, tech.space.id),
    serveChunk: files.serveChunk,
    open: booted.openHeld,
  });
}

function openSpaceChecks(
  { config, clock, log }: BootOptions,
  { stores, opened }: Booted,
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
  { opened, bus, sync, services, events }: Booted,
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
    firstRound: () => sync.firstRound().catch(() => undefined),
    answer,
  });
}
/** Whether there may be other devices or members. An account without a space may be one that is being restored. */
function mayHaveOthers({ brandNew = false }: BootOptions, { devices, identities, spaces }: OpenAccount): boolean {
  if (brandNew) return false;
  return devices.list().devices.length > 1 || identities.list().length > 0 || spaces.list("all").length === 0;
}
