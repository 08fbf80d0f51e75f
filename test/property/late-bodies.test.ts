/**
 * Devices that hear of changes in any order, with their bodies or without, while objects are deleted and purged, rights
 * to delete are taken away and keys come late: once everybody has everything, nothing tells them apart.
 */
import { describe, expect } from "bun:test";
import { bytesToHex } from "../../src/base/bytes.ts";
import { isStub, stubOf } from "../../src/change/codec/change-stub.ts";
import { DELETED_GRACE_MS } from "../../src/change/fold/object-deletions.ts";
import { OBJECT_RULES } from "../../src/domain/object/object-rules.ts";
import { SvcError } from "../../src/protocol/errors.ts";
import { vectorOf } from "../../src/space/replica/own-vector.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import {
  add,
  type Device,
  type Devices,
  deleteObject,
  purgedAfter,
  remove,
  roleOf,
  withDevices,
} from "../support/worlds/acl-devices.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { ITEMS } from "../support/worlds/test-space.ts";

const HISTORIES = rounds(7);
const STEPS = 60;
const firstSeed = runSeed("late-bodies");

describe("bodies that come late", () => {
  for (let i = 0; i < HISTORIES; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[CHANGE-7] history ${i}: whoever got what first, all are the same in the end`,
      () => runHistory(seed),
      120_000,
    );
  }
});

async function runHistory(seed: number): Promise<void> {
  const rng = createRng(seed);
  const steps: string[] = [];
  try {
    await withDevices(async (devices) => {
      const world = await prepare(devices);
      for (let step = 0; step < STEPS; step++) steps.push(await takeStep(rng, world));
      if (rng.chance(0.5)) await revive(rng, world);
      await heal(rng, world);
    });
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1\n${steps.join("\n")}`);
    throw error;
  }
}

interface World {
  readonly devices: Devices;
  /** Those of the owner; the first alone moves the rights. */
  readonly owners: readonly Device[];
  readonly member: Device;
  readonly everybody: readonly Device[];
  readonly objects: string[];
  /** Every change whole, by the hex of its id. */
  readonly archive: Map<string, Uint8Array>;
}

async function prepare(devices: Devices): Promise<World> {
  const owners = ["one", "two", "three"].map((name) => devices.open(name, devices.owner));
  const account = createAccount();
  await add(owners[0]!, account);
  const member = devices.open("member", account);
  const everybody = [...owners, member];
  for (const device of everybody) await device.space.aclService.take(owners[0]!.aclLog());
  return { devices, owners, member, everybody, objects: [], archive: new Map() };
}

/** Before anybody can drop them. */
function keep({ archive }: World, device: Device): void {
  for (const { id, bytes } of device.changes()) if (!isStub(bytes)) archive.set(bytesToHex(id), bytes);
}

async function takeStep(rng: Rng, world: World): Promise<string> {
  const { everybody, owners, member, objects, devices } = world;
  const [first] = owners as [Device];
  const device = rng.pick(everybody);
  const { engine } = device.space;
  const step = rng.int(0, 22);
  const objectId = objects.length > 0 ? rng.pick(objects) : undefined;
  if (step < 8) {
    const target = objects.length < 2 || rng.chance(0.1) ? undefined : objectId;
    const times = target === undefined ? 1 : rng.int(1, 4);
    let wrote = "";
    for (let i = 0; i < times; i++) wrote = await write(rng, device, target, objects);
    keep(world, device);
    return `${device.name} writes to ${target ?? "a new object"}: ${wrote}`;
  }
  if (step < 10) {
    const by = rng.chance(0.8) ? member : device;
    const object = objectId && by.space.engine.object(objectId);
    if (!object || object.deleted) return "nothing";
    const wrote = await attempt(deleteObject(by, objectId));
    keep(world, by);
    return `${by.name} deletes ${objectId}: ${wrote}`;
  }
  if (step < 16) {
    // Who moves the rights hears late of what the member deletes: it is cut off, and the objects are back.
    const hears = device !== first || rng.chance(0.3);
    const from = rng.pick(everybody.filter((other) => other !== device && (hears || other !== member)));
    await deliver(rng, device, from, rng.pick([0, 0.3, 1]));
    return `${device.name} takes from ${from.name}`;
  }
  if (step === 16) {
    const isMember = roleOf(first, member.account) !== "none";
    await (isMember ? remove(first, member.account) : add(first, member.account));
    return isMember ? "the member is removed" : "the member is added";
  }
  if (step === 17 || step > 19) {
    return `${device.name} purges ${await purgedAfter(devices, device, DELETED_GRACE_MS)}`;
  }
  if (step === 18) {
    if (rng.chance(0.5)) await engine.tearDownDeleted();
    else await engine.rebuildProjection();
    return `${device.name} tears down or rebuilds`;
  }
  await device.reopen();
  return `${device.name} begins anew`;
}

/** Whether it was taken; rights and keys may be lacking. */
async function attempt(write: Promise<unknown>): Promise<string> {
  try {
    await write;
    return "done";
  } catch (error) {
    if (!(error instanceof SvcError) || error.code === "internal") throw error;
    return error.code;
  }
}

function write(rng: Rng, { space }: Device, target: string | undefined, objects: string[]): Promise<string> {
  if (target !== undefined && !space.engine.object(target)) return Promise.resolve("unknown");
  const traceIds = rng.chance(0.3) ? [`trace-${rng.int(0, 2)}`] : undefined;
  return attempt(
    space.engine.write((tx) => {
      const object = target === undefined ? tx.createObject() : tx.object(target)!;
      const own = target === undefined || rng.chance(0.3);
      const rules = own ? OBJECT_RULES : ITEMS;
      const records = Array.from({ length: own ? 1 : rng.int(1, 2) }, () => ({
        id: own ? object.idText : rng.pick(["a", "b"]),
        upsert: true,
        ...(!own && rng.chance(0.1) ? { delete: true as const } : {}),
        ops: [{ type: "$inc" as const, path: rng.pick(["f.n", "f.m"]), value: rng.int(1, 9) }],
      }));
      tx.append(object, { dataset: rules.name, records, ...(traceIds ? { traceIds } : {}) }, rules);
      if (target === undefined) objects.push(object.idText);
    }),
  );
}

/** Rights, then changes in any order: some of them without their bodies. */
async function deliver(rng: Rng, to: Device, from: Device, stubbed: number): Promise<void> {
  if (rng.chance(0.7)) await to.space.aclService.take(from.aclLog());
  const bytes = from.changes().map((change) => (rng.chance(stubbed) ? stubOf(change.bytes) : change.bytes));
  const some = rng.chance(0.5) ? bytes : rng.shuffle(bytes).slice(0, rng.int(0, bytes.length));
  for (let at = 0; at < some.length; ) {
    const size = rng.pick([1, 3, 50]);
    await to.space.engine.ingest(some.slice(at, at + size));
    at += size;
  }
}

/** In any order, in portions. */
async function ingest(rng: Rng, { space }: Device, packets: readonly Uint8Array[]): Promise<void> {
  const shuffled = rng.shuffle(packets);
  for (let at = 0; at < shuffled.length; at += 7) await space.engine.ingest(shuffled.slice(at, at + 7));
}

/** Everybody else has purged what the member deleted when it turns out that the member had no right to any more. */
async function revive(rng: Rng, world: World): Promise<void> {
  const { owners, member, archive, devices, objects } = world;
  const [first, ...others] = owners as [Device, ...Device[]];
  for (const device of [first, member]) keep(world, device);
  if (roleOf(first, member.account) === "none") await add(first, member.account);
  await member.space.aclService.take(first.aclLog());
  await ingest(rng, member, [...archive.values()]);
  for (const id of objects) {
    const object = member.space.engine.object(id);
    if (object && !object.deleted) await deleteObject(member, id);
  }
  keep(world, member);
  for (const device of others) {
    await device.space.aclService.take(first.aclLog());
    await ingest(rng, device, [...archive.values()]);
    await purgedAfter(devices, device, DELETED_GRACE_MS);
  }
  await remove(first, member.account);
  for (const device of others) await device.space.aclService.take(first.aclLog());
}

/** Everybody gets everything, and is compared with the others and with somebody who comes anew. */
async function heal(rng: Rng, world: World): Promise<void> {
  const { everybody, owners, member, archive, devices } = world;
  const [first] = owners as [Device];
  if (roleOf(first, member.account) === "none") await add(first, member.account);
  for (const device of everybody) keep(world, device);
  const late = [devices.open("late", devices.owner), devices.open("later", devices.owner)];
  const all = [...archive.values()];
  for (const device of [...everybody, ...late]) {
    const stubs = all.filter(() => rng.chance(0.3)).map(stubOf);
    if (rng.chance(0.5)) await device.space.aclService.take(first.aclLog());
    await ingest(rng, device, [...all, ...stubs]);
    await device.space.aclService.take(first.aclLog());
    // What it had purged when it did not know of the rights yet it asks for again.
    await ingest(rng, device, all);
  }
  const expected = await stateOf(first);
  for (const device of [...everybody, ...late]) {
    expect([device.name, await stateOf(device)]).toEqual([device.name, expected]);
    if (rng.chance(0.5)) await device.space.engine.purgeDeleted();
    await device.reopen();
    await device.space.engine.rebuildProjection();
    expect([device.name, await stateOf(device)]).toEqual([device.name, expected]);
  }
}

/** All that is the same on every device that has everything. */
async function stateOf(device: Device) {
  const { engine, store } = device.space;
  await engine.idle();
  const { db, parked, pendingBodies, history } = store;
  const rowsOf = (sql: string): unknown[] => db.query<Record<string, unknown>, []>(sql).values();
  const objects = engine.objects.all().map(({ no, id, deleted, modLamport, modChange, modMs }) => {
    const heads = engine.objects.byNo(no)!.heads.map((head) => bytesToHex(head.id));
    const listed = history
      .page({ objectNo: no }, 0, { lamport: Number.MAX_SAFE_INTEGER }, 10_000)
      .map((change) => bytesToHex(change.id));
    const modified = [modLamport, bytesToHex(modChange ?? new Uint8Array(0)), modMs];
    return { id: bytesToHex(id), deleted, heads, ...(deleted ? {} : { listed, modified }) };
  });
  return {
    objects: objects.sort((a, b) => (a.id < b.id ? -1 : 1)),
    verdicts: rowsOf("SELECT hex(id), counts, acl_pos, lamport FROM changes WHERE writer <> 0 ORDER BY id"),
    records: rowsOf(
      `SELECT hex(o.id), d.name, r.id, r.doc, r.state, r.lamport, hex(r.change), r.ops FROM rows r
       JOIN collections c ON c.no = r.collectionId JOIN objects o ON o.no = c.objectNo JOIN datasets d ON d.no = c.datasetNo
       WHERE r.state > 0 AND o.deleted = 0 ORDER BY 1, 2, 3`,
    ),
    own: rowsOf("SELECT id, doc, state FROM rows WHERE collectionId = 0 AND state > 0 ORDER BY id"),
    live: rowsOf(
      `SELECT hex(o.id), d.name, c.live FROM collections c JOIN objects o ON o.no = c.objectNo JOIN datasets d ON d.no = c.datasetNo
       WHERE o.deleted = 0 AND c.live > 0 UNION ALL SELECT '', 'objects', live FROM collections WHERE no = 0 ORDER BY 1, 2`,
    ),
    // What does not count is found by nothing; whether it once was depends on what came first.
    traces: rowsOf(
      `SELECT hex(o.id), hex(t.trace), hex(c.id) FROM history_traces t JOIN objects o ON o.no = t.objectNo
       JOIN changes c ON c.no = t.change WHERE o.deleted = 0 AND c.counts = 1 ORDER BY 1, 2, 3`,
    ),
    vector: bytesToHex(vectorOf(device.space).digest),
    parked: parked.usage().count,
    pendingBodies: pendingBodies.count(),
  };
}
