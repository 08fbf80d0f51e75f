/** Devices of several accounts that share one space: real databases and engines that exchange nothing but bytes. */
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { addAccounts, removeAccounts } from "../../../src/acl/compose/actions.ts";
import type { GrantablePermission } from "../../../src/acl/record/permission.ts";
import { permissionOf } from "../../../src/acl/reducer/state.ts";
import { bytesToHex, equalBytes } from "../../../src/base/bytes.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { DELETION_RULES } from "../../../src/change/fold/deletion-log.ts";
import type { IngestVerdict } from "../../../src/change/intake/ingest-verdict.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { OBJECT_RULES } from "../../../src/domain/object/object-rules.ts";
import {
  createdSpaceGenesis,
  type OpenSpaceDeps,
  openSpace,
  type Space,
  type SpaceGenesis,
  writeGenesis,
} from "../../../src/space/space.ts";
import type { StoredChange } from "../../../src/store/tables/change-table.ts";
import { scratchDir } from "../scratch.ts";
import { createAccount } from "./acl-world.ts";
import { ITEMS, registryOf, rowTexts, writeItem } from "./test-space.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

export interface Device {
  readonly name: string;
  readonly account: Account;
  readonly space: Space;
  /** Sets field `v` of a record to a text. */
  write(id: string, text: string): Promise<void>;
  /** Rows of a dataset (default `items`) as stored, ordered by id. */
  rows(dataset?: string): Promise<string[]>;
  /** Texts of `v` by record id. */
  values(): Promise<Record<string, string>>;
  changes(): StoredChange[];
  ingest(bytes: Uint8Array): Promise<IngestVerdict>;
  aclLog(): Uint8Array[];
  /** Closes it and opens it again, `between` while its files are at rest. */
  reopen(between?: () => void): Promise<void>;
}

type DeviceOptions = Pick<OpenSpaceDeps, "quota" | "checkpointEveryOps" | "foldSliceMs">;

interface DevicesOptions {
  readonly owner?: Account;
  /** Without it they have one of their own, which goes on with every look at it. */
  readonly clock?: Clock;
  /** Of the space; default one that the owner makes. */
  readonly genesis?: SpaceGenesis;
  /** What each device knows of datasets. Default those of items, objects and deletions. */
  readonly registry?: OpenSpaceDeps["registry"];
}

export const knownRules: OpenSpaceDeps["registry"] = () => registryOf(ITEMS, OBJECT_RULES, DELETION_RULES);

export interface Devices extends AsyncDisposable {
  readonly owner: Account;
  readonly genesis: SpaceGenesis;
  open(name: string, account: Account, options?: DeviceOptions): Device;
  /** Time goes on for all of them. */
  wait(ms: number): void;
}

export function createDevices(dir: string, given: DevicesOptions = {}): Devices {
  const { owner = createAccount(), registry = knownRules } = given;
  let lookedMs = 1_800_000_000_000;
  let waitedMs = 0;
  const base: Clock = given.clock ?? { nowMs: () => (lookedMs += 11) };
  const clock: Clock = { nowMs: () => base.nowMs() + waitedMs };
  const genesis = given.genesis ?? createdSpaceGenesis(owner, clock);
  const open: Device[] = [];
  // Every device begins with the same file, and making it takes as long as opening it.
  const beginning = join(dir, `${genesis.spaceId}.genesis.db`);
  return {
    owner,
    genesis,
    open(name, account, options = {}) {
      const path = join(dir, `${name}.db`);
      if (!existsSync(beginning)) writeGenesis(beginning, genesis);
      if (!existsSync(path)) copyFileSync(beginning, path);
      const start = () => openSpace(path, genesis.spaceId, { account, clock, registry, ...options });
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
  const rows = async (dataset?: string) => {
    await space.engine.idle();
    return rowTexts(space, dataset);
  };
  return {
    name,
    account,
    get space() {
      return space;
    },
    write: (id, text) => writeItem(space, id, text),
    rows,
    async values() {
      const docs = (await rows()).map((text) => JSON.parse(text) as { id: string; v: string });
      return Object.fromEntries(docs.map(({ id, v }) => [id, v]));
    },
    changes: () => space.store.changes.after(0, 10_000),
    ingest: async (bytes) => (await space.engine.ingest([bytes]))[0]!,
    aclLog: () => space.acl.records().map(({ bytes }) => bytes),
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
 * One device takes the ACL log, the proposals and the changes of another: the log at once, as a session brings it, or
 * record by record, as a network's log does.
 */
export async function fetchFrom(to: Device, from: Device, singly = false): Promise<void> {
  for (const part of singly ? from.aclLog().map((bytes) => [bytes]) : [from.aclLog()])
    await to.space.aclService.take(part);
  await to.space.engine.ingest(from.changes().map(({ bytes }) => bytes));
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

/** The last record of the ACL log. */
export const headOf = ({ device }: { readonly device: Device }): string => bytesToHex(device.space.replica.acl.head());
/** Of all changes that a device has. */
export const digestOf = ({ device }: { readonly device: Device }): string =>
  bytesToHex(device.space.replica.vector().digest);
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

export const deleteObject = ({ space }: Device, id: string) =>
  space.engine.write((tx) => tx.deleteObject(tx.object(id)!));
/** How many bodies of changes are awaited. */
export const missingBodies = ({ space }: Device): number => space.store.pendingBodies.count();
