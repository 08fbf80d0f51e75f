import { afterEach, expect, test } from "bun:test";
import { scratchDir } from "../../../test/support/scratch.ts";
import { createDevices, type Devices } from "../../../test/support/worlds/acl-devices.ts";
import { ITEMS, registryOf } from "../../../test/support/worlds/test-space.ts";
import type { Space } from "../../space/space.ts";
import type { DatasetRules } from "../codec/dataset-rules.ts";
import { DELETION_RULES } from "./deletion-log.ts";
import { OBJECTS_DATASET } from "./projection.ts";

const OBJECTS: DatasetRules = { name: OBJECTS_DATASET, idRule: "object" };
const clock = { nowMs: () => 1_760_000_000_000 };
const open: Devices[] = [];

afterEach(async () => {
  for (const devices of open.splice(0)) await devices[Symbol.asyncDispose]();
});

/** Two replicas of a space, one object with three items on both. */
async function world() {
  const dir = scratchDir("svc-deletion");
  const devices = createDevices(dir.path, { clock, registry: () => registryOf(OBJECTS, ITEMS, DELETION_RULES) });
  open.push(devices);
  const spaceOf = (name: string): Space => devices.open(name, devices.owner).space;
  const [one, other, third] = [spaceOf("one"), spaceOf("other"), spaceOf("third")];
  const objectId = await one.engine.write((tx) => {
    const object = tx.createObject();
    tx.append(
      object,
      {
        dataset: OBJECTS_DATASET,
        records: [{ id: "", upsert: true, ops: [{ type: "$set", path: "svc.name", value: "x" }] }],
      },
      OBJECTS,
    );
    return object.idText;
  });
  await put(one, objectId, "a", "b", "c");
  await exchange(one, other);
  return { one, other, third, objectId };
}

const put = (space: Space, objectId: string, ...ids: string[]) =>
  space.engine.write((tx) =>
    tx.append(
      tx.object(objectId)!,
      {
        dataset: "items",
        records: ids.map((id) => ({ id, upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] })),
      },
      ITEMS,
    ),
  );

const remove = (space: Space, objectId: string) => space.engine.write((tx) => tx.deleteObject(tx.object(objectId)!));

const bytesOf = (space: Space) => space.store.changes.after(0, 1000).map((change) => change.bytes);

async function exchange(from: Space, to: Space): Promise<void> {
  const verdicts = await to.engine.ingest(bytesOf(from));
  for (const verdict of verdicts) expect(["stored", "known", "parked"]).toContain(verdict.kind);
}

const liveRows = (space: Space) =>
  space.store.db
    .query<{ id: string; doc: string }, []>("SELECT id, doc FROM rows WHERE state = 1 ORDER BY collectionId, id")
    .all();
/** The same with tombstones, but for what is torn down when there is time. */
const shownRows = ({ store }: Space) =>
  store.db
    .query<{ id: string; doc: string }, []>(
      `SELECT r.id, r.doc FROM rows r JOIN collections c ON c.no = r.collectionId LEFT JOIN objects o ON o.no = c.objectNo
       WHERE r.state > 0 AND coalesce(o.deleted, 0) = 0 ORDER BY r.collectionId, r.id`,
    )
    .all();
const row = (space: Space, objectId: string) =>
  space.engine.record(space.engine.object(objectId)!, OBJECTS_DATASET, objectId);

test("[CHANGE-8] the object's row is gone with the commit, here and where the entry arrives", async () => {
  const { one, other, objectId } = await world();
  const notified: unknown[] = [];
  one.events.on("committed", (batch) => {
    notified.push(
      ...batch.touched.filter((touched) => touched.recordId === objectId && touched.dataset === OBJECTS_DATASET),
    );
  });
  await remove(one, objectId);
  expect(row(one, objectId)).toBeUndefined();
  expect(notified).toMatchObject([{ versionId: "", before: expect.any(String), doc: null }]);
  await exchange(one, other);
  expect(row(other, objectId)).toBeUndefined();
  expect(other.engine.object(objectId)!.deleted).toBe(true);
});

test("[CHANGE-8] what others wrote meanwhile is kept in the graph and shows nowhere", async () => {
  const { one, other, objectId } = await world();
  await remove(one, objectId);
  await put(other, objectId, "late");
  await exchange(other, one);
  await exchange(one, other);
  for (const space of [one, other]) expect(row(space, objectId)).toBeUndefined();
  expect(bytesOf(one).length).toBe(bytesOf(other).length);
});

test("[CHANGE-8] whatever arrives first, the outcome is the same", async () => {
  const { one, objectId, third } = await world();
  await remove(one, objectId);
  await third.engine.ingest(bytesOf(one).toReversed());
  expect(row(third, objectId)).toBeUndefined();
  await third.engine.tearDownDeleted();
  await one.engine.tearDownDeleted();
  expect(shownRows(third)).toEqual(shownRows(one));
});

test("[CHANGE-8] two who delete it apart show one tombstone, whichever entry came first", async () => {
  const { one, other, third, objectId } = await world();
  await put(other, objectId, "d");
  await remove(one, objectId);
  await remove(other, objectId);
  const [first, second] = [bytesOf(one), bytesOf(other)];
  await exchange(one, other);
  await one.engine.ingest(second);
  await third.engine.ingest([...second, ...first]);
  const tombstones = [one, other, third].map(shownRows);
  expect(tombstones[0]!.some(({ id, doc }) => id === objectId && doc.includes("_deletedAt"))).toBe(true);
  expect(tombstones[1]).toEqual(tombstones[0]!);
  expect(tombstones[2]).toEqual(tombstones[0]!);
});

test("[CHANGE-8] torn down, nothing of its records is left but the changes; a rebuild agrees", async () => {
  const { one, objectId } = await world();
  await remove(one, objectId);
  await one.engine.tearDownDeleted();
  const left = one.store.db
    .query<{ n: number }, []>("SELECT count(*) AS n FROM rows WHERE id IN ('a', 'b', 'c')")
    .get()!.n;
  expect(left).toBe(0);
  const before = liveRows(one);
  await one.engine.rebuildProjection();
  expect(liveRows(one)).toEqual(before);
});
