import { expect, test } from "bun:test";
import { scratchDir } from "../../../test/support/scratch.ts";
import { createDevices } from "../../../test/support/worlds/acl-devices.ts";
import {
  type AclWorld,
  createAccount,
  createAclWorld,
  fillLog,
  stateText,
} from "../../../test/support/worlds/acl-world.ts";
import { writeGenesis } from "../../space/space.ts";
import { openSpaceStore, type SpaceStore } from "../../store/space-store.ts";
import { addAccounts } from "../compose/actions.ts";
import { isSnapshotDue, loadAclLog, withSnapshot } from "../log/stored-log.ts";
import { decodeAclRecord, encodeAclRecord } from "../record/record.ts";
import { StoredRecord } from "../record/stored-record.ts";
import { decodeAclSnapshot, encodeAclSnapshot } from "./acl-snapshot.ts";
import { applyAclRecord } from "./reducer.ts";

const SNAPSHOT = "acl-snapshot";

/** A space's database with this log. */
function storeOf(dir: string, { genesis, records }: AclWorld): SpaceStore {
  const path = `${dir}/space.db`;
  writeGenesis(path, genesis);
  const store = openSpaceStore(path);
  for (const [pos, { id, bytes }] of records.entries()) if (pos > 0) store.addAclRecord(pos, id, bytes);
  return store;
}

/** Replaces the last record's signature by another's; its id and all references to it stay right. */
function spoilLastSignature(world: AclWorld): void {
  const last = world.records.pop()!;
  const { bytes } = encodeAclRecord(last, createAccount().signer);
  const spoilt = Buffer.from(last.bytes);
  spoilt.set(bytes.subarray(-64), spoilt.length - 64);
  expect(decodeAclRecord(spoilt)).toBeUndefined();
  world.records.push({ ...last, bytes: spoilt, id: new Bun.CryptoHasher("sha256").update(spoilt).digest() });
}

test("[ACL-9] what was judged once is not judged again when the space is opened, however long its log", () => {
  using dir = scratchDir("svc-acl");
  const world = createAclWorld();
  fillLog(world, 3);
  spoilLastSignature(world);
  const store = storeOf(dir.path, world);
  try {
    expect(() => loadAclLog(store, world.header)).toThrow("it is no ACL record");
    const records = world.records.map(({ id, bytes }) => new StoredRecord(id, bytes));
    world.state.head = world.records.at(-1)!.id;
    store.putMeta(SNAPSHOT, encodeAclSnapshot(world.state, records));
    const { state, judged } = loadAclLog(store, world.header);
    expect(judged).toBe(4);
    expect(state.head).toEqual(world.state.head);
  } finally {
    store.close();
  }
});

test("[STORE-3] what is kept of another log, by other rules or with any bit changed is passed over, and the log is judged", () => {
  using dir = scratchDir("svc-acl");
  const world = createAclWorld();
  world.act(world.owner, (context) => addAccounts(context, [{ identity: createAccount().id, permission: "writer" }]));
  fillLog(world, 2);
  const store = storeOf(dir.path, world);
  try {
    const log = loadAclLog(store, world.header);
    const records = [...log.records];
    const good = encodeAclSnapshot(log.state, records);
    expect(stateText(decodeAclSnapshot(good, records)!)).toBe(stateText(world.state));
    for (let at = 0; at < good.length; at++) {
      const spoilt = good.slice();
      spoilt[at]! ^= 1 << (at % 8);
      expect(decodeAclSnapshot(spoilt, records)).toBeUndefined();
    }
    for (let length = 0; length < good.length; length += 7)
      expect(decodeAclSnapshot(good.subarray(0, length), records)).toBeUndefined();
    const other = createAclWorld();
    fillLog(other, 3);
    expect(
      decodeAclSnapshot(
        good,
        other.records.map(({ id, bytes }) => new StoredRecord(id, bytes)),
      ),
    ).toBeUndefined();
    expect(decodeAclSnapshot(good, records.slice(0, 2))).toBeUndefined();

    store.putMeta(SNAPSHOT, good.subarray(1));
    expect(stateText(loadAclLog(store, world.header).state)).toBe(stateText(world.state));
    // A record that was changed on the disk is detected although nobody judges it again.
    store.putMeta(SNAPSHOT, good);
    store.dropAclRecordsFrom(2);
    const spoilt = Buffer.from(records[2]!.bytes);
    spoilt[40]! ^= 1;
    for (const [index, { id, bytes }] of records.slice(2).entries())
      store.addAclRecord(2 + index, id, index === 0 ? spoilt : bytes);
    expect(() => loadAclLog(store, world.header)).toThrow("was damaged");
  } finally {
    store.close();
  }
});

test("[ACL-9] what comes behind a snapshot is judged from it as from the whole log", () => {
  using dir = scratchDir("svc-acl");
  const world = createAclWorld();
  const member = createAccount();
  world.act(world.owner, (context) => addAccounts(context, [{ identity: member.id, permission: "admin" }]));
  const store = storeOf(dir.path, world);
  try {
    let log = loadAclLog(store, world.header);
    log = withSnapshot(store, log);
    const known = world.records.length;
    world.act(member, (context) => addAccounts(context, [{ identity: createAccount().id, permission: "reader" }]));
    fillLog(world, 2);
    for (const [pos, { id, bytes }] of world.records.entries()) if (pos >= known) store.addAclRecord(pos, id, bytes);
    const again = loadAclLog(store, world.header);
    expect([again.judged, again.records.length]).toEqual([known, world.records.length]);
    expect(stateText(again.state)).toBe(stateText(world.state));
    const stranger = createAccount();
    const draft = { space: again.state.space!, prev: again.state.head!, time: 1, clock: 0 };
    const forged = encodeAclRecord({ ...draft, ops: [{ op: "guestRevoke" }] }, stranger.signer);
    expect(applyAclRecord(again.state, decodeAclRecord(forged.bytes)!, world.header)).toHaveProperty("fault");
  } finally {
    store.close();
  }
});

test("[ACL-9] a long log is kept with what it says as it comes in, and one that lost that gets it back by being opened", async () => {
  using dir = scratchDir("svc-acl");
  await using devices = createDevices(dir.path);
  const device = devices.open("one", devices.owner);
  const world = createAclWorld(devices);
  fillLog(world, 700);
  const rest = world.records.slice(1).map(({ bytes }) => bytes);
  expect((await device.space.aclService.take(rest.slice(0, 600))).kind).toBe("extended");
  expect((await device.space.aclService.take(rest.slice(600))).kind).toBe("extended");
  const text = stateText(device.space.acl.state);
  expect(text).toBe(stateText(world.state));

  const judgedOf = () => loadAclLog(device.space.store, device.space.header).judged;
  expect(judgedOf()).toBe(601);
  device.space.store.dropMeta(SNAPSHOT);
  expect(isSnapshotDue(loadAclLog(device.space.store, device.space.header))).toBe(true);
  await device.reopen();
  await device.write("a", "1"); // runs after what opening put into the queue
  expect(judgedOf()).toBe(701);
  await device.reopen();
  expect(stateText(device.space.acl.state)).toBe(text);
  expect(device.space.acl.records().map(({ record }) => record.id)).toEqual(world.records.map(({ id }) => id));
});
