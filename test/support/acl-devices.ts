/** Devices of several accounts that share one space: real databases and engines that exchange nothing but bytes. */
import { join } from "node:path";
import { addAccounts, removeAccounts } from "../../src/acl/actions.ts";
import type { GrantablePermission } from "../../src/acl/permission.ts";
import { permissionOf } from "../../src/acl/state.ts";
import { bytesToHex, equalBytes } from "../../src/base/bytes.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { ChangeBody } from "../../src/change/codec/change-body.ts";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import { DELETION_RULES } from "../../src/change/fold/deletion-log.ts";
import type { IngestVerdict } from "../../src/change/intake/ingest-verdict.ts";
import type { Account } from "../../src/crypto/account.ts";
import { OBJECT_RULES } from "../../src/domain/object/object-rules.ts";
import { createdSpaceGenesis, openSpace, type Space, type SpaceGenesis, writeGenesis } from "../../src/space/space.ts";
import type { StoredChange } from "../../src/store/change-table.ts";
import { createAccount } from "./acl-world.ts";
import { scratchDir } from "./scratch.ts";

export const ITEMS: DatasetRules = { name: "items", idRule: "user" };
const TYPE = "test.items";
const DAY_MS = 24 * 60 * 60 * 1000;

export interface Device {
  readonly name: string;
  readonly account: Account;
  readonly space: Space;
  /** Sets field `v` of a record to a text. */
  write(id: string, text: string): Promise<void>;
  /** Rows as stored, ordered by id. */
  rows(): Promise<string[]>;
  /** Texts of `v` by record id. */
  values(): Promise<Record<string, string>>;
  changes(): StoredChange[];
  ingest(bytes: Uint8Array): Promise<IngestVerdict>;
  chain(): Uint8Array[];
  /** Closes it and opens it again, `between` while its files are at rest. */
  reopen(between?: () => void): Promise<void>;
}

type DeviceOptions = Pick<Parameters<typeof openSpace>[2], "quota">;

export interface Devices extends AsyncDisposable {
  readonly owner: Account;
  readonly seed: SpaceGenesis;
  open(name: string, account: Account, options?: DeviceOptions): Device;
  /** Time goes on for all of them. */
  wait(ms: number): void;
}

/** Without a clock they have one of their own, which goes on with every look at it. */
export function createDevices(dir: string, given: { owner?: Account; clock?: Clock } = {}): Devices {
  const { owner = createAccount() } = given;
  let lookedMs = 1_800_000_000_000;
  let waitedMs = 0;
  const base: Clock = given.clock ?? { nowMs: () => (lookedMs += 11) };
  const clock: Clock = { nowMs: () => base.nowMs() + waitedMs };
  const seed = createdSpaceGenesis(owner, clock);
  const open: Device[] = [];
  return {
    owner,
    seed,
    open(name, account, options = {}) {
      const path = join(dir, `${name}.db`);
      writeGenesis(path, seed);
      const start = () =>
        openSpace(path, seed.spaceId, {
          account,
          clock,
          ...options,
          registry: () => ({
            rulesFor: (dataset) => {
              const rules = [ITEMS, OBJECT_RULES, DELETION_RULES].find(({ name }) => name === dataset);
              return rules ? { rules } : { unknown: true };
            },
          }),
        });
      const device = createDevice(name, account, start);
      open.push(device);
      return device;
    },
    wait(ms) {
      waitedMs += ms;
    },
    async [Symbol.asyncDispose]() {
      for (const device of open) await device.space.close();
    },
  };
}

function createDevice(name: string, account: Account, start: () => Space): Device {
  let space = start();
  const rows = async () => {
    await space.engine.idle();
    const object = space.engine.object(space.engine.derivedId(TYPE, ""));
    const collectionId = object && space.engine.collectionIdOf(object, ITEMS.name);
    if (collectionId === undefined) return [];
    return space.engine.store.db
      .query<{ doc: string }, [number]>("SELECT doc FROM rows WHERE collectionId = ? AND state > 0 ORDER BY id")
      .all(collectionId)
      .map((row) => row.doc);
  };
  return {
    name,
    account,
    get space() {
      return space;
    },
    async write(id, text) {
      const body: ChangeBody = {
        dataset: ITEMS.name,
        records: [{ id, upsert: true, ops: [{ type: "$set", path: "v", value: text }] }],
      };
      await space.engine.write((tx) => tx.append(tx.ensureDerived(TYPE, ""), body, ITEMS));
    },
    rows,
    async values() {
      const docs = (await rows()).map((text) => JSON.parse(text) as { id: string; v: string });
      return Object.fromEntries(docs.map(({ id, v }) => [id, v]));
    },
    changes: () => space.engine.store.changes.after(0, 10_000),
    ingest: async (bytes) => (await space.engine.ingest([bytes]))[0]!,
    chain: () => space.acl.records().map(({ bytes }) => bytes),
    async reopen(between) {
      await space.close();
      between?.();
      space = start();
    },
  };
}

/** Time goes on, a day at a time, and a device looks daily for what is to be purged. Answers how many changes were. */
export async function purgedAfter(devices: Devices, { space }: Device, ms: number): Promise<number> {
  let purged = 0;
  for (let left = ms; left > 0; left -= DAY_MS) {
    devices.wait(Math.min(left, DAY_MS));
    purged += await space.engine.purgeDeleted();
  }
  return purged;
}

/**
 * One device takes the chain, the proposals and the changes of another: the chain at once, as a session brings it, or
 * record by record, as a network's log does.
 */
export async function fetchFrom(to: Device, from: Device, singly = false): Promise<void> {
  for (const part of singly ? from.chain().map((bytes) => [bytes]) : [from.chain()])
    await to.space.aclService.take(part);
  for (const change of from.changes()) await to.ingest(change.bytes);
  await to.space.aclService.takePending(from.space.aclService.pending());
}

/** Everybody fetches from everybody, and owners sequence what waits, until nothing moves any more. */
export async function exchange(devices: readonly Device[], singly = () => false): Promise<void> {
  for (let round = 0; round < 12; round++) {
    const before = fingerprint(devices);
    for (const to of devices) for (const from of devices) if (to !== from) await fetchFrom(to, from, singly());
    for (const device of devices) await device.space.aclService.sequence();
    if (fingerprint(devices) === before) return;
  }
  throw new Error("the devices do not come to rest");
}

function fingerprint(devices: readonly Device[]): string {
  return devices
    .map(
      (device) =>
        `${Buffer.from(device.space.acl.head().id).toString("hex")} ${device.changes().length} ${device.space.aclService.pending().length}`,
    )
    .join(" ");
}

export const sameHead = (a: Device, b: Device): boolean => equalBytes(a.space.acl.head().id, b.space.acl.head().id);

/** Runs with devices of one fresh space, and removes everything afterwards. */
export async function withDevices(run: (devices: Devices) => Promise<void>): Promise<void> {
  using dir = scratchDir("svc-acl");
  await using devices = createDevices(dir.path);
  await run(devices);
}

export const add = (device: Device, account: Account, permission: GrantablePermission = "writer") =>
  device.space.aclService.act((context) => addAccounts(context, [{ identity: account.id, permission }]));
export const remove = (device: Device, account: Account) =>
  device.space.aclService.act((context) => removeAccounts(context, [account.id]));
export const roleOf = (device: Device, account: Account) =>
  permissionOf(device.space.acl.state, account.signer.publicKey);
export const keyIds = (device: Device) => device.space.acl.state.epochs.map(({ epoch }) => bytesToHex(epoch.keyId));

/** A device of the owner's, and one of a member that has everything that was there. */
export async function openPair(devices: Devices, permission: GrantablePermission = "writer") {
  const owner = devices.open("owner", devices.owner);
  const account = createAccount();
  await add(owner, account, permission);
  const member = devices.open("member", account);
  await fetchFrom(member, owner);
  return { owner, account, member };
}
