/** Values that the disk changed in what is under way: what waits, what was refused, what is to be folded anew, what others keep. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { flipValue } from "../../../test/support/hostile/changed-values.ts";
import { bodyOf, createForger } from "../../../test/support/hostile/forged-change.ts";
import { objectOf } from "../../../test/support/hostile/forger-world.ts";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { type Device, type Devices, purgedAfter, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { DELETED_GRACE_MS } from "../fold/object-deletions.ts";
import { CHECK_BEGIN, type CheckCursor } from "./space-check.ts";

setDefaultTimeout(30_000);
const seed = runSeed("damaged waiting");

/** Goes over all that is stored, as the space checks do. */
async function check({ space: { engine, store } }: Device): Promise<void> {
  const { derived, db } = store;
  const found = derived.searches.map((sql) => db.query<Record<string, unknown>, []>(sql).all());
  if (derived.isFound(found)) await engine.mendFound(found);
  for (let cursor: CheckCursor | undefined = CHECK_BEGIN; cursor; ) cursor = engine.check(cursor);
  await engine.idle();
}

const all = ({ space }: Device, sql: string) => space.store.db.query<Record<string, unknown>, []>(sql).all();
const damage = (device: Device, table: string, columns: readonly string[]) =>
  device.reopen(() =>
    expect(
      flipValue(device.space.store.path, { table, columns }, createRng(seed).fork(`${table} ${columns.join()}`)),
    ).toBeDefined(),
  );

/** Two devices of the owner: of the first one's changes the other lacks the one on which the rest stands. */
async function withWaiting(run: (two: Device, missed: Uint8Array, devices: Devices, one: Device) => Promise<void>) {
  await withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    for (const [id, text] of [
      ["a", "1"],
      ["b", "2"],
      ["c", "3"],
    ] as const)
      await one.write(id, text);
    const changes = one.changes();
    const first = changes.find(({ kind }) => kind === 1)!;
    for (const { no, bytes } of changes) if (no !== first.no) await two.ingest(bytes);
    expect(two.space.store.parked.usage().count).toBe(2);
    await run(two, first.bytes, devices, one);
  });
}

describe("a change that waits", () => {
  const COLUMNS = ["id", "bytes", "wait_kind", "wait_for", "author", "object", "received_ms", "rounds"];
  for (const column of COLUMNS)
    test(`[STORE-3] is there again when what it waits for comes, whatever was changed of its ${column} (SEED=${seed})`, () =>
      withWaiting(async (two, missed, _, one) => {
        await damage(two, "parked", [column]);
        await check(two);
        await two.ingest(missed);
        // What was dropped comes again, from whoever has it.
        for (const { bytes } of one.changes()) await two.ingest(bytes);
        expect(await two.values()).toEqual({ a: "1", b: "2", c: "3" });
        expect(two.space.store.parked.usage().count).toBe(0);
      }));

  test("[STORE-3] what stands beside its bytes is read from them again, with no other device near", () =>
    withWaiting(async (two, missed) => {
      const before = all(two, "SELECT id, wait_kind, wait_for, author, object, bytes FROM parked ORDER BY id");
      for (const column of ["wait_kind", "wait_for", "author", "object", "id"]) {
        await damage(two, "parked", [column]);
        await check(two);
        expect(all(two, "SELECT id, wait_kind, wait_for, author, object, bytes FROM parked ORDER BY id")).toEqual(
          before,
        );
      }
      await two.ingest(missed);
      expect(await two.values()).toEqual({ a: "1", b: "2", c: "3" });
    }));
});

describe("a change that was refused", () => {
  for (const column of ["id", "code", "facts", "received_ms", "bytes"])
    test(`[STORE-3] is judged anew when it comes again, whatever was changed of its ${column} (SEED=${seed})`, () =>
      withDevices(async (devices) => {
        const device = devices.open("one", devices.owner);
        await device.write("a", "1");
        const forger = createForger(device.space, objectOf(device), devices.owner.signer);
        const spoilt = Uint8Array.from(forger.write(bodyOf({ dataset: "items", records: [] })).bytes);
        spoilt[spoilt.length - 1]! ^= 1; // its signature
        const { parked } = device.space.store;
        const why = await device.ingest(spoilt);
        expect(why.kind).toBe("quarantined");
        const before = parked.quarantineList(10).map(({ id, refusal }) => ({ id, refusal }));
        await damage(device, "quarantine", [column]);
        await check(device);
        expect(await device.ingest(spoilt)).toEqual(why);
        const now = device.space.store.parked.quarantineList(10).map(({ id, refusal }) => ({ id, refusal }));
        expect(now).toEqual(before);
      }));
});

describe("what others are known to keep", () => {
  for (const column of ["target", "change", "sum"])
    test(`[STORE-3] is asked again where a note of it has another ${column}: nothing counts as kept that is not (SEED=${seed})`, () =>
      withDevices(async (devices) => {
        const device = devices.open("one", devices.owner);
        for (const id of ["a", "b", "c", "d"]) await device.write(id, id);
        const { engine, store } = device.space;
        const numbers = device.changes().map(({ no }) => no);
        await engine.write(() => {
          store.sync.confirm("network", numbers);
          store.sync.unconfirm("network", [numbers[2]!]);
        });
        await damage(device, "sync_exceptions", [column]);
        await check(device);
        const { sync } = device.space.store;
        expect(numbers.filter((no) => sync.isKept("network", no))).toEqual([]);
        expect(sync.unconfirmed("network", 100).map(({ no }) => no)).toContain(numbers[2]!);
      }));
});

describe("an object that was deleted", () => {
  for (const column of ["deleted_ms", "purged", "deleted_sum"])
    test(`[STORE-3] is not purged before its days are over, and is purged, whatever was changed of its ${column} (SEED=${seed})`, () =>
      withDevices(async (devices) => {
        const device = devices.open("one", devices.owner);
        const id = await device.space.engine.write((tx) => {
          const object = tx.createObject();
          const records = [{ id: "a", upsert: true, ops: [{ type: "$set" as const, path: "v", value: "1" }] }];
          tx.append(object, { dataset: "items", records }, { name: "items", idRule: "user" });
          return object.idText as string;
        });
        await device.space.engine.write((tx) => tx.deleteObject(tx.object(id)!));
        await device.space.engine.tearDownDeleted();
        const { no } = device.space.engine.object(id)!;
        await device.reopen(() =>
          flipValue(
            device.space.store.path,
            { table: "objects", columns: [column], where: `no = ${no}` },
            createRng(seed).fork(column),
          ),
        );
        // Before anything is gone over, too.
        expect(await purgedAfter(devices, device, DELETED_GRACE_MS / 2)).toBe(0);
        await check(device);
        expect(await purgedAfter(devices, device, DELETED_GRACE_MS / 2)).toBe(0);
        expect(await purgedAfter(devices, device, DELETED_GRACE_MS)).toBe(1);
      }));

  test("[STORE-3] an object whose fold is said to be another version's is folded anew, and shows what it showed", () =>
    withDevices(async (devices) => {
      const device = devices.open("one", devices.owner);
      await device.write("a", "1");
      const rows = await device.rows();
      await damage(device, "objects", ["projection"]);
      expect(device.space.engine.objects.stale().length).toBe(1);
      await device.space.engine.rebuildProjection("stale");
      expect(device.space.engine.objects.stale()).toEqual([]);
      expect(await device.rows()).toEqual(rows);
    }));
});

describe("a note of what is to be folded anew", () => {
  const COLUMNS = [
    "row",
    "objectNo",
    "datasetNo",
    "from_lamport",
    "from_change",
    "to_lamport",
    "to_change",
    "from_sum",
  ];
  for (const column of COLUMNS)
    test(`[STORE-3] what it is of is folded anew, whatever was changed of its ${column} (SEED=${seed})`, () =>
      withDevices(async (devices) => {
        const device = devices.open("one", devices.owner, { foldSliceMs: 0 });
        await device.write("a", "1");
        const set = (path: string, value: number) => ({
          dataset: "items",
          records: [{ id: "hot", upsert: true, ops: [{ type: "$set" as const, path, value }] }],
        });
        const forgerOf = () => createForger(device.space, objectOf(device), devices.owner.signer);
        const late = forgerOf().write(bodyOf(set("late", 1))).bytes;
        const forger = forgerOf();
        await device.space.engine.ingest(Array.from({ length: 40 }, (_, i) => forger.write(bodyOf(set("f", i))).bytes));
        await device.space.engine.take([late]);
        expect(all(device, "SELECT row FROM dirty_rows")).toHaveLength(1);
        await damage(device, "dirty_rows", [column]);
        await device.space.engine.ingest([]);
        const [hot] = (await device.rows()).filter((text) => text.includes('"hot"'));
        expect(JSON.parse(hot!)).toMatchObject({ late: 1, f: 39 });
        expect(all(device, "SELECT row FROM dirty_rows")).toEqual([]);
      }));
});
