/**
 * Devices of one space with real databases, engines, rounds and statuses, on links in memory and a clock of their own. The
 * same seed is the same history, down to keys and ids.
 */
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addAccounts, removeAccounts } from "../../../src/acl/compose/actions.ts";
import { bytesToHex } from "../../../src/base/bytes.ts";
import type { PeerId, SpaceId } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { SvcError } from "../../../src/protocol/errors.ts";
import type { AclBuild } from "../../../src/space/port/replica.ts";
import { createLanSync } from "../../../src/sync/lan/lan-sync.ts";
import { createNetworkSync } from "../../../src/sync/network/network-sync.ts";
import { createSyncService, type SyncService } from "../../../src/sync/sync-service.ts";
import { createTransports } from "../../../src/sync/transports.ts";
import type { Rng } from "../rng.ts";
import { createDevices, type Device } from "./acl-devices.ts";
import { createAccount } from "./acl-world.ts";
import { createMemoryLinks, type MemoryLinks } from "./memory-links.ts";
import { createMemoryNetwork, type MemoryNetwork, type NetworkClient } from "./memory-network.ts";
import { createVirtualTime, type VirtualTime } from "./virtual-time.ts";

const INTERVAL_MS = 30_000;
/** No space has this id: the one of a world is no account's own. */
const NO_SPACE = "" as SpaceId;

export interface SyncDevice {
  readonly peerId: PeerId;
  readonly device: Device;
  readonly service: SyncService;
  /** Writes a record; the ids of the changes that are acknowledged then. */
  write(id: string, text: string): Promise<string[]>;
  /** Lets an account in, or puts it out. Answers whether that took effect, or may have. */
  addMember(account: Account): Promise<boolean>;
  removeMember(account: Account): Promise<boolean>;
  /** Its way to the network, where there is one. */
  readonly client: NetworkClient | undefined;
  /** It is killed at the so-many-th thing that it asks the network from now on, and stays down until it is restarted. */
  killAt(at: number, isPassed: boolean): void;
  isKilled(): boolean;
  /** Ids of all changes that are here. */
  changeIds(): ReadonlySet<string>;
  isSynced(): Promise<boolean>;
  /** Stops and starts again, `between` while its files are at rest. */
  restart(between?: (path: string) => void): Promise<void>;
}

export interface SyncWorld extends AsyncDisposable {
  readonly time: VirtualTime;
  readonly links: MemoryLinks;
  readonly network: MemoryNetwork;
  /** Secrets of places where others say that the space is, by account. */
  readonly hints: Map<string, Uint8Array[]>;
  readonly devices: readonly SyncDevice[];
  /** Called whenever a device says anew what it is at. */
  onStatus(listener: (device: SyncDevice, state: string) => void): void;
}

/**
 * `owners` devices of the owner's account, and `members` devices of an account each that it lets in. They meet each other by
 * links, and with `onNetwork` by a network.
 */
export async function openSyncWorld(
  dir: string,
  rng: Rng,
  { owners, members, onNetwork = false }: { owners: number; members: number; onNetwork?: boolean },
): Promise<SyncWorld> {
  const running: SyncDevice[] = [];
  const time = createVirtualTime(async () => {
    for (const { device } of running) if (!device.space.engine.closing()) await device.space.engine.idle();
  });
  const links = createMemoryLinks(time, rng.fork("links"));
  const devices = createDevices(dir, { owner: createAccount(seedFrom(rng)), clock: time.clock });
  const listeners = new Set<(device: SyncDevice, state: string) => void>();
  const first = devices.open("device-0", devices.owner);
  const accounts = [
    first,
    ...Array.from({ length: owners - 1 }, (_, at) => devices.open(`device-${at + 1}`, devices.owner)),
  ];
  for (let at = 0; at < members; at++) {
    const account = createAccount(seedFrom(rng));
    await first.space.aclService.act((context) =>
      addAccounts(context, [{ identity: account.id, permission: "writer" }]),
    );
    accounts.push(devices.open(`device-${owners + at}`, account));
  }
  for (const device of accounts.slice(1)) await device.space.aclService.take(first.aclLog());
  const world: SyncWorld = {
    time,
    links,
    network: createMemoryNetwork(time, rng.fork("network")),
    hints: new Map(),
    devices: running,
    onStatus: (listener) => void listeners.add(listener),
    async [Symbol.asyncDispose]() {
      for (const { peerId, service } of running) {
        links.leave(peerId);
        await time.runWhile(service.stop());
      }
      await devices[Symbol.asyncDispose]();
    },
  };
  for (const device of accounts) {
    const place = { path: join(dir, `${device.name}.db`), world, onNetwork };
    const one = createSyncDevice(device, place, (state) => {
      for (const listener of listeners) listener(one, state);
    });
    running.push(one);
  }
  return world;
}

/** Bytes from the schedule's randomness. */
function seedFrom(rng: Rng): Uint8Array {
  return Uint8Array.from({ length: 32 }, () => rng.int(0, 255));
}

interface DevicePlace {
  readonly path: string;
  readonly world: SyncWorld;
  readonly onNetwork: boolean;
}

function createSyncDevice(device: Device, { path, world, onNetwork }: DevicePlace, say: (state: string) => void) {
  const peerId = device.name as PeerId;
  const { time, links, network } = world;
  const start = () => {
    const client = onNetwork ? network.join(() => reached()) : undefined;
    const service = startSync({ device, peerId, world, client, isKilled: () => isKilled }, say);
    const reached = (): void => {
      service.notifyReach();
      if (client?.isConnected()) service.allSoon();
    };
    return { client, service };
  };
  let isKilled = false;
  let { client, service } = start();
  /** Of the changes up to a number. */
  let known = { upto: 0, ids: new Set<string>() };
  const changeAcl = async (build: AclBuild): Promise<boolean> => {
    if (!client) {
      await device.space.aclService.act(build);
      time.stir();
      return true;
    }
    try {
      await time.runWhile(service.changeAcl(device.space.replica, build));
      return true;
    } catch (error) {
      // Nobody is reached any more, or what it was built upon was decided otherwise.
      if ((error instanceof SvcError && error.status < 500) || (error as SvcError).code === "network.unavailable")
        return false;
      throw error;
    }
  };
  const one: SyncDevice = {
    peerId,
    device,
    get service() {
      return service;
    },
    get client() {
      return client;
    },
    isKilled: () => isKilled,
    killAt: (at, isPassed) =>
      client?.arm({
        at,
        isPassed,
        strike() {
          isKilled = true;
          copyFiles(path, `${path}.killed`);
          links.leave(peerId);
          client?.connect(false);
        },
      }),
    async write(id, text) {
      const { store } = device.space;
      const before = store.sync.newestNo();
      await device.write(id, text);
      time.stir();
      return store.changes.after(before, 100).map((change) => bytesToHex(change.id));
    },
    addMember(account) {
      return changeAcl((context) => addAccounts(context, [{ identity: account.id, permission: "writer" }]));
    },
    removeMember: (account) => changeAcl((context) => removeAccounts(context, [account.id])),
    changeIds() {
      const { changes, sync } = device.space.store;
      const newestNo = sync.newestNo();
      for (const { id } of newestNo > known.upto ? changes.after(known.upto, 10_000) : [])
        known.ids.add(bytesToHex(id));
      known.upto = newestNo;
      return known.ids;
    },
    isSynced: async () => (await service.status(device.space.id)).state === "synced",
    async restart(between = () => {}) {
      const wasConnected = isKilled || client?.isConnected() === true;
      links.leave(peerId);
      await time.runWhile(service.stop());
      await device.reopen(() => {
        if (isKilled) copyFiles(`${path}.killed`, path);
        between(path);
      });
      isKilled = false;
      known = { upto: 0, ids: new Set() };
      ({ client, service } = start());
      client?.connect(wasConnected);
    },
  };
  return one;
}

/** Says to an account where the space is, as its inbox would. */
function hintPlace({ hints }: SyncWorld, { space }: Device, accountId: string): void {
  const secret = space.replica.transportSecret();
  if (secret) hints.set(accountId, [secret, ...(hints.get(accountId) ?? [])].slice(0, 4));
}

/** A database and its log as they are at this moment. */
function copyFiles(from: string, to: string): void {
  for (const suffix of ["", "-wal", "-shm"]) {
    rmSync(to + suffix, { force: true });
    if (suffix !== "-shm" && existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix);
  }
}

interface Starting {
  readonly device: Device;
  readonly peerId: PeerId;
  readonly world: SyncWorld;
  readonly client: NetworkClient | undefined;
  isKilled(): boolean;
}

/** What boot makes of sync for a space, on links in memory. */
function startSync({ device, peerId, world, client, isKilled }: Starting, say: (state: string) => void): SyncService {
  const { time, links } = world;
  const { space, account } = device;
  const { replica } = space;
  const open = async () => replica;
  const transports = createTransports();
  const service = createSyncService({
    peerId,
    transports,
    clock: time.clock,
    log: silentLog,
    timers: time,
    intervalMs: INTERVAL_MS,
    showCatchUp: () => ({ progress: () => {}, end: () => {} }),
    spaces: {
      tech: replica,
      active: () => [space.id],
      held: () => [],
      isHeld: () => false,
      isOnlyHere: () => false,
      openHeld: open,
      open,
    },
  });
  const met = (): void => {
    service.notifyReach();
    service.roundSoon(space.id);
  };
  const ends = links.join({
    peerId,
    accountId: account.id,
    spaces: () => [space.id],
    connected: met,
    disconnected: () => service.notifyReach(),
  });
  const host = {
    book: service.book,
    clock: time.clock,
    log: silentLog,
    timers: time,
    inviteSeedOf: () => undefined,
    open: async (spaceId: string) => (spaceId === space.id ? replica : undefined),
    hold: service.hold,
    notifyChanged: service.notifyChanged,
    notifyProgress: service.notifyProgress,
  };
  if (client)
    transports.join(
      createNetworkSync({
        ...host,
        store: client.store,
        hintsOf: async () => ({ secrets: world.hints.get(account.id) ?? [], seeds: [] }),
        notifyStatus: service.notifyStatus,
      }),
    );
  transports.join(
    createLanSync({
      ...host,
      links: ends,
      techId: NO_SPACE,
      showKey: () => () => {},
      roundSoon: service.roundSoon,
      markOf: service.markOf,
      chunk: async () => new Uint8Array(0),
    }),
  );
  space.events.on("committed", () => {
    time.stir();
    service.committed(replica);
  });
  const notifyAdmitted = (): void => {
    const notified = space.aclService.notifyAdmitted(async (accounts) => {
      if (isKilled()) throw new Error("it tells nobody any more");
      for (const accountId of accounts) hintPlace(world, device, accountId);
    });
    notified.catch((error: unknown) => {
      if (!isKilled() && !space.engine.closing()) throw error;
    });
  };
  space.events.on("aclChanged", () => {
    service.aclChanged(replica);
    notifyAdmitted();
  });
  notifyAdmitted();
  void service.watch(({ state }) => say(state));
  service.start();
  return service;
}

/** Rows of everything that it has, as they are stored. */
export const rowsOf = ({ device: { space } }: SyncDevice): string[] =>
  space.store.db
    .query<{ doc: string }, []>("SELECT doc FROM rows WHERE state > 0 ORDER BY collectionId, id")
    .all()
    .map(({ doc }) => doc);

/** Puts a device back to what its files were at a moment. */
export function createSnapshots() {
  const pathByDevice = new Map<SyncDevice, string>();
  return {
    /** As they are while it runs: a database and its log. */
    copy(device: SyncDevice): void {
      const { path } = device.device.space.store;
      copyFiles(path, `${path}.snapshot`);
      pathByDevice.set(device, `${path}.snapshot`);
    },
    has: (device: SyncDevice): boolean => pathByDevice.has(device),
    take: (device: SyncDevice): Promise<void> =>
      device.restart((path) => {
        copyFileSync(path, `${path}.snapshot`);
        pathByDevice.set(device, `${path}.snapshot`);
      }),
    putBack: (device: SyncDevice): Promise<void> =>
      device.restart((path) => copyFiles(pathByDevice.get(device)!, path)),
  };
}
