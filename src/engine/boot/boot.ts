import type { SpaceId } from "../../base/ids.ts";
import { closePart, createServices } from "../../base/service.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import type { Wallet } from "../../crypto/wallet.ts";
import { TECH_DATASETS } from "../../domain/type/built-in-schemas.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { Space } from "../../space/space.ts";
import { createSpaceEvents, type SpaceEvents } from "../../space/space-events.ts";
import { createSpaceHolds } from "../../space/space-holds.ts";
import { createTransports } from "../../sync/transports.ts";
import { createLinkKeys, type LinkKeys } from "../link-keys.ts";
import { addWorkers, type Booted, type Workers } from "./add-workers.ts";
import type { BootEngine } from "./boot-engine.ts";
import type { Engine } from "./engine.ts";
import { type OpenAccount, openAccount } from "./open-account.ts";
import { openBus } from "./open-bus.ts";
import { openFiles } from "./open-files.ts";
import { openServices } from "./open-services.ts";
import { openStores } from "./open-stores.ts";
import { openSync } from "./open-sync.ts";

/**
 * Opens an account, in four phases: what is on the disk; the account's own space, and the bus; the services that answer requests,
 * sync among them, since they wait for what it brings; and, in the boot pass behind the listener, the workers, of which the
 * transports and the rounds of sync are the first. Each part is made from those before it. They are closed in reverse order,
 * also if one fails to open; the promise then rejects.
 */
export const bootEngine: BootEngine = async (options): Promise<Engine> => {
  const { accountDir, log, clock, config } = options;
  await using parts = new AsyncDisposableStack();
  const events = createSpaceEvents();
  const holds = createSpaceHolds();
  const transports = createTransports();
  let bootstrapping = true;
  let closing = false;
  const isClosing = () => closing;

  const stores = await openStores({ parts, accountDir, events, clock, log });

  const account = accountOf(options.wallet);
  const opened = await openAccount({ parts, account, stores, events, holds, clock, log });
  const openHeld = heldSpacesOf(opened);
  const bus = openBus({ parts, opened, events, transports, clock, log, open: openHeld });
  const linkKeys = parts.adopt(followLinkKeys(opened, events), closePart);

  const sync = openSync(options, { opened, bus, transports, events, holds });
  const files = await openFiles(parts, options, opened, bus, events, () => bootstrapping);
  const hasNetwork = config["network.url"] !== undefined;
  const services = openServices({ parts, stores, opened, bus, sync, files, events, holds, clock, log, hasNetwork });

  const workers = createServices(log);
  parts.defer(workers.stopAll);
  const booted: Booted = {
    ...{ stores, opened, bus, transports, linkKeys, sync, files, services },
    ...{ events, openHeld, isClosing },
  };
  const added = addWorkers(workers, options, booted);

  const bootPass = async (): Promise<void> => {
    // Whoever boots goes on first, up to its listener.
    await new Promise((turn) => setImmediate(turn));
    if (closing) return;
    await services.life.bootPass(isClosing);
    if (closing) return;
    await workers.startAll();
    await sync.firstRound();
  };
  const pass = bootPass()
    .catch((err: unknown) => log.error("the boot pass failed", { err }))
    .finally(() => {
      bootstrapping = false;
    });
  const open = parts.move();
  return {
    ...engineOf(booted, added),
    bootstrapping: () => bootstrapping,
    async close() {
      closing = true;
      await workers.stopAll();
      await pass;
      await open.disposeAsync();
    },
  };
};

/** Builds the engine as the routes see it, without its beginning and end. */
function engineOf(
  { stores, opened, bus, sync, files, services, events }: Booted,
  { push, search, runtime }: Workers,
): Omit<Engine, "bootstrapping" | "close"> {
  const { account, spaces, tech, devices, identities } = opened;
  return {
    accountId: account.id,
    peerId: account.peerId,
    spaces,
    tech,
    devices,
    identities,
    events: bus.events,
    spaceEvents: events,
    processes: bus.processes,
    sync,
    repairs: (spaceId) => stores.repairs.of(spaceId as SpaceId),
    runtime,
    fileCache: files.cache,
    search,
    techDatasets: TECH_DATASETS,
    ...services,
    push,
    changeProfile: services.profileNews.change,
    deviceCopied: sync.copy.state,
    unfinishedSpaces: services.life.unfinishedSpaces,
  };
}

function accountOf(wallet: Wallet): Account {
  const { accountId: id, peerId, accountSeed: seed } = wallet;
  return { id, peerId, seed, signer: createSigner(seed) };
}

/** Opens spaces that are active here, the account's own among them; undefined for anything else. */
function heldSpacesOf({ spaces, tech }: OpenAccount): Booted["openHeld"] {
  return async (spaceId): Promise<Replica | undefined> => {
    if (spaceId === tech.space.id) return tech.space.replica;
    return spaces.isHeld(spaceId) ? (await spaces.openHeld(spaceId as SpaceId)).replica : undefined;
  };
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
