import type { SpaceId } from "../../base/ids.ts";
import { createServices } from "../../base/service.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import type { Wallet } from "../../crypto/wallet.ts";
import { TECH_DATASETS } from "../../domain/type/built-in-schemas.ts";
import type { Replica } from "../../space/replica.ts";
import type { Space } from "../../space/space.ts";
import { createSpaceEvents, type SpaceEvents } from "../../space/space-events.ts";
import { createSpaceHolds } from "../../space/space-holds.ts";
import type { Engine } from "../engine.ts";
import { createLinkKeys, type LinkKeys } from "../link-keys.ts";
import { addWorkers, type BootParts, type Workers } from "./add-workers.ts";
import type { BootEngine, BootOptions } from "./boot-engine.ts";
import { type OpenAccount, openAccount } from "./open-account.ts";
import { openBus } from "./open-bus.ts";
import { openFiles } from "./open-files.ts";
import { openServices } from "./open-services.ts";
import { openStores, type Stores } from "./open-stores.ts";
import { openSync } from "./open-sync.ts";

/**
 * Opens an account: first what is on the disk, then the account's own space, sync and the services that answer requests; then, in
 * the boot pass behind the listener, the workers. Each part is made from those before it, and they are closed in reverse order.
 * Rejects if a part fails, after closing those that were opened.
 */
export const bootEngine: BootEngine = async (options): Promise<Engine> => {
  const { accountDir, log, clock } = options;
  const events = createSpaceEvents();
  const stores = await openStores({ accountDir, events, clock, log });
  try {
    return await bootUpon(stores, events, options);
  } catch (error) {
    await stores.close();
    throw error;
  }
};

async function bootUpon(stores: Stores, events: SpaceEvents, options: BootOptions): Promise<Engine> {
  const { log, clock } = options;
  const account = accountOf(options.wallet);
  const holds = createSpaceHolds();
  const workers = createServices(log);
  let bootstrapping = true;
  let closing = false;
  const isClosing = () => closing;
  const opened = await openAccount({ account, stores, events, holds, clock, log });
  const openHeld = heldSpacesOf(opened);
  const bus = openBus({ opened, events, clock, log, open: openHeld });
  const linkKeys = followLinkKeys(opened, events);
  const sync = openSync(options, { opened, bus, events, holds });
  const files = await openFiles(options, opened, bus, events, () => bootstrapping);
  const services = openServices({
    stores,
    opened,
    bus,
    sync,
    files,
    events,
    holds,
    clock,
    log,
    hasNetwork: options.config["network.url"] !== undefined,
  });
  const parts: BootParts = { stores, opened, bus, linkKeys, sync, files, services, events, openHeld, isClosing };
  const added = addWorkers(workers, options, parts);

  const bootPass = async (): Promise<void> => {
    await services.life.bootPass(isClosing);
    if (closing) return;
    await workers.startAll();
    await added.firstRound();
  };
  const pass = bootPass()
    .catch((err: unknown) => log.error("the boot pass failed", { err }))
    .finally(() => {
      bootstrapping = false;
    });
  return {
    ...engineOf(parts, added),
    bootstrapping: () => bootstrapping,
    async close() {
      closing = true;
      await workers.stopAll();
      await pass;
      await closeParts(parts);
    },
  };
}

/** Builds the engine as the routes see it, without its beginning and end. */
function engineOf(
  { stores, opened, bus, sync, files, services, events }: BootParts,
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

/** Closes the parts in the reverse of the order in which they were opened; the workers must have stopped. */
async function closeParts({ stores, opened, bus, files, services }: BootParts): Promise<void> {
  bus.processes.close();
  services.rights.close();
  await services.inboxMessages.close();
  services.closeListings();
  await files.close();
  await opened.spaces.close();
  await opened.tech.space.close();
  await stores.close();
}

function accountOf(wallet: Wallet): Account {
  const { accountId: id, peerId, accountSeed: seed } = wallet;
  return { id, peerId, seed, signer: createSigner(seed) };
}

/** Opens spaces that are active here, the account's own among them; undefined for anything else. */
function heldSpacesOf({ spaces, tech }: OpenAccount): BootParts["openHeld"] {
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
