/**
 * Devices of one space with real databases, engines, rounds and statuses, on links in memory and a clock of their own. The
 * same seed is the same history, down to keys and ids.
 */
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addAccounts } from "../../src/acl/actions.ts";
import { bytesToHex } from "../../src/base/bytes.ts";
import type { PeerId, SpaceId } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import type { Account } from "../../src/crypto/account.ts";
import { createLanSync } from "../../src/sync/lan/lan-sync.ts";
import { createSyncService, type SyncService } from "../../src/sync/sync-service.ts";
import { createDevices, type Device } from "./acl-devices.ts";
import { createAccount } from "./acl-world.ts";
import { createMemoryLinks, type MemoryLinks } from "./memory-links.ts";
import type { Rng } from "./rng.ts";
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
  /** Lets an account in, at once. */
  addMember(account: Account): Promise<void>;
  /** Ids of all changes that are here. */
  changeIds(): ReadonlySet<string>;
  isSynced(): Promise<boolean>;
  /** Stops and starts again, `between` while its files are at rest. */
  restart(between?: (path: string) => void): Promise<void>;
}

export interface SyncWorld extends AsyncDisposable {
  readonly time: VirtualTime;
  readonly links: MemoryLinks;
  readonly devices: readonly SyncDevice[];
  /** Called whenever a device says anew what it is at. */
  onStatus(listener: (device: SyncDevice, state: string) => void): void;
}

/** `owners` devices of the owner's account, and `members` devices of an account each that it lets in. */
export async function openSyncWorld(
  dir: string,
  rng: Rng,
  { owners, members }: { owners: number; members: number },
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
  for (const device of accounts.slice(1)) await device.space.aclService.take(first.chain());
  const world: SyncWorld = {
    time,
    links,
    devices: running,
    onStatus: (listener) => void listeners.add(listener),
    async [Symbol.asyncDispose]() {
      for (const { peerId, service } of running) {
        links.leave(peerId);
        await time.runWhile(service.close());
      }
      await devices[Symbol.asyncDispose]();
    },
  };
  for (const device of accounts) {
    const one = createSyncDevice(device, join(dir, `${device.name}.db`), world, (state) => {
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

function createSyncDevice(
  device: Device,
  path: string,
  { time, links }: SyncWorld,
  say: (state: string) => void,
): SyncDevice {
  const peerId = device.name as PeerId;
  let service = startSync(device, peerId, time, links, say);
  /** Of the changes up to a number. */
  let known = { upto: 0, ids: new Set<string>() };
  return {
    peerId,
    device,
    get service() {
      return service;
    },
    async write(id, text) {
      const { store } = device.space.engine;
      const before = store.sync.newestNo();
      await device.write(id, text);
      time.stir();
      return store.changes.after(before, 100).map((change) => bytesToHex(change.id));
    },
    async addMember(account) {
      await device.space.aclService.act((context) =>
        addAccounts(context, [{ identity: account.id, permission: "writer" }]),
      );
      time.stir();
    },
    changeIds() {
      const { changes, sync } = device.space.engine.store;
      const newestNo = sync.newestNo();
      for (const { id } of newestNo > known.upto ? changes.after(known.upto, 10_000) : [])
        known.ids.add(bytesToHex(id));
      known.upto = newestNo;
      return known.ids;
    },
    isSynced: async () => (await service.status(device.space.id)).state === "synced",
    async restart(between = () => {}) {
      links.leave(peerId);
      await time.runWhile(service.close());
      await device.reopen(() => between(path));
      known = { upto: 0, ids: new Set() };
      service = startSync(device, peerId, time, links, say);
    },
  };
}

/** What boot makes of sync for a space, on links in memory. */
function startSync(
  device: Device,
  peerId: PeerId,
  time: VirtualTime,
  links: MemoryLinks,
  say: (state: string) => void,
): SyncService {
  const { space, account } = device;
  const { replica } = space;
  const open = async () => replica;
  const service = createSyncService({
    peerId,
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
  service.addTransport(
    createLanSync({
      links: ends,
      book: service.book,
      clock: time.clock,
      log: silentLog,
      timers: time,
      techId: NO_SPACE,
      inviteSeedOf: () => undefined,
      open: async (spaceId) => (spaceId === space.id ? replica : undefined),
      hold: service.hold,
      showKey: () => () => {},
      roundSoon: service.roundSoon,
      notifyChanged: service.notifyChanged,
      notifyProgress: service.notifyProgress,
      markOf: service.markOf,
      chunk: async () => new Uint8Array(0),
    }),
  );
  space.engine.onCommit(() => {
    time.stir();
    service.committed(replica);
  });
  space.aclService.onMoved(() => service.aclMoved(replica));
  void service.watch(({ state }) => say(state));
  void service.start();
  return service;
}

/** Puts a device back to what its files were at a moment. */
export function createSnapshots() {
  const pathByDevice = new Map<SyncDevice, string>();
  return {
    has: (device: SyncDevice): boolean => pathByDevice.has(device),
    take: (device: SyncDevice): Promise<void> =>
      device.restart((path) => {
        copyFileSync(path, `${path}.snapshot`);
        pathByDevice.set(device, `${path}.snapshot`);
      }),
    putBack: (device: SyncDevice): Promise<void> =>
      device.restart((path) => {
        for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
        copyFileSync(pathByDevice.get(device)!, path);
      }),
  };
}
