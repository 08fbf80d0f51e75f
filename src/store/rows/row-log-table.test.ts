/** [SEARCH-3] The log of changed rows: what is noted in a batch is read behind any entry of it, in its order. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { type ScratchDir, scratchDir } from "../../../test/support/scratch.ts";
import { openSpaceSource, type SpaceSource } from "../search/space-source.ts";
import { openSpaceStore, type SpaceStore } from "../space-store.ts";
import { PACKED_TOGETHER } from "./row-log-table.ts";

let scratch: ScratchDir;
let space: SpaceStore;
let source: SpaceSource;

beforeEach(() => {
  scratch = scratchDir("svc-row-log");
  space = openSpaceStore(join(scratch.path, "space.db"));
  source = openSpaceSource(join(scratch.path, "space.db"));
});

afterEach(() => {
  source.close();
  space.close();
  scratch[Symbol.dispose]();
});

const batchOf = (count: number, first: number): void => {
  for (let row = first; row < first + count; row++) space.rowLog.note(row, row % 7);
  space.rowLog.writeNoted();
};

test("[SEARCH-3] entries are numbered one by one, and read from any of them on, whatever batches they came in", () => {
  expect([space.rowLog.head(), source.log(), source.entriesAfter(0, 10)]).toEqual([0, { first: 0, last: 0 }, []]);
  const rng = createRng(runSeed("row-log"));
  let last = 0;
  for (const size of [1, 2 * PACKED_TOGETHER + 1, 0, ...Array.from({ length: 20 }, () => rng.int(0, 60))]) {
    batchOf(size, last + 1);
    last += size;
  }
  expect([space.rowLog.head(), source.log()]).toEqual([last, { first: 1, last }]);
  const all = Array.from({ length: last }, (_, at) => ({ seq: at + 1, row: at + 1, collectionId: (at + 1) % 7 }));
  expect(source.entriesAfter(0, last)).toEqual(all);
  for (let turn = 0; turn < 100; turn++) {
    const [cursor, limit] = [rng.int(0, last + 1), rng.int(1, 700)];
    const found = source.entriesAfter(cursor, limit);
    expect(found).toEqual(all.slice(cursor, cursor + found.length));
    expect(found.length).toBeGreaterThanOrEqual(Math.min(limit, last - cursor));
    expect(found.length).toBeLessThan(limit + PACKED_TOGETHER);
  }
});

test("[SEARCH-3] what was followed is dropped a part at a time, but never the last number, and never what was not followed", () => {
  for (let batch = 0; batch < 50; batch++) batchOf(10, batch * 10 + 1);
  expect(space.rowLog.trim(205, 100)).toBe(10);
  expect(source.log().first).toBe(101);
  while (space.rowLog.trim(205, 100) > 0);
  expect(source.log()).toEqual({ first: 201, last: 500 });
  expect(source.entriesAfter(205, 2)[0]).toMatchObject({ seq: 206, row: 206 });
  while (space.rowLog.trim(10_000, 100) > 0);
  expect(source.log().last).toBe(500);
  batchOf(1, 501);
  expect(source.entriesAfter(500, 10)).toEqual([{ seq: 501, row: 501, collectionId: 501 % 7 }]);
});

test("[STORE-2] where the disk has cut an entry short the log is read to its end all the same", () => {
  batchOf(3, 1);
  batchOf(2, 4);
  space.db.run("UPDATE row_log SET packed = substr(packed, 1, 17) WHERE seq = 3");
  space.db.run("UPDATE row_log SET packed = x'' WHERE seq = 5");
  expect(source.entriesAfter(0, 10).map(({ seq }) => seq)).toEqual([2, 3, 5]);
  expect(source.log().last).toBe(5);
});

test("[SEARCH-3] every write of a row's text has an entry, outside of batches too", () => {
  const { rows, rowLog } = space;
  const put = [null, 0, 0, new Uint8Array(), 0] as const;
  const collectionId = rows.collectionId(1, space.datasetNo("notes"));
  const no = rows.insert(collectionId, "one", '{"id":"one"}', 1, 1, new Uint8Array(), 1);
  rowLog.writeNoted();
  const entries: string[] = [];
  const step = (name: string, write: () => void): void => {
    const before = rowLog.head();
    write();
    rowLog.writeNoted();
    if (source.entriesAfter(before, 10).some((entry) => entry.row === no && entry.collectionId === collectionId))
      entries.push(name);
  };
  step("update", () => rows.update({ no, collectionId }, '{"id":"one","a":1}', 1, 2, new Uint8Array(), 2));
  step("setDoc", () => rows.setDoc({ no, collectionId }, '{"id":"one","a":2}'));
  step("restore", () =>
    rows.restore({ no, collectionId, id: "one", doc: "{}", state: 1, lamport: 1, change: put[3], ops: 1 }),
  );
  step("order", () => rows.moveOrder({ no, state: 1, ops: 1 }, 3, new Uint8Array()));
  step("types", () => {
    space.db.run("UPDATE rows SET doc = CAST(doc AS BLOB) WHERE no = ?", [no]);
    space.mendTypes();
  });
  step("reset", () => rows.reset({ no, collectionId }));
  step("tear down", () => {
    space.db.run("INSERT INTO objects(no, id, derived, root, projection, deleted) VALUES(1, x'07', 0, x'', 0, 1)");
    rows.tearDown(collectionId, 10);
  });
  expect(entries).toEqual(["update", "setDoc", "restore", "types", "reset", "tear down"]);
});
