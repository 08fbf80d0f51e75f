import { expect, test } from "bun:test";
import { join } from "node:path";
import { createRng, runSeed } from "../../test/support/rng.ts";
import { scratchDir } from "../../test/support/scratch.ts";
import { CHANGE_ROOT } from "./change-table.ts";
import { openSpaceStore } from "./space-store.ts";

const ROUNDS = 400;
const seed = runSeed("kept nowhere else");

test("[status] what is kept nowhere else is counted as if it were counted anew each time", () => {
  using dir = scratchDir("svc-sync-table");
  const store = openSpaceStore(join(dir.path, "space.db"));
  const { db, sync } = store;
  const rng = createRng(seed);
  const all = db.query<{ objectNo: number; count: number }, []>(
    `SELECT objectNo, count(*) AS count FROM changes c
     WHERE no > (SELECT coalesce(max(upto), 0) FROM sync_marks) AND writer <> 0
       AND NOT EXISTS(SELECT 1 FROM sync_ahead a WHERE a.change = c.no) GROUP BY objectNo`,
  );
  for (const writer of [1, 2]) store.changes.addWriter(new Uint8Array(32), new Uint8Array(16).fill(writer));
  let next = 0;
  const add = () => {
    const id = new Uint8Array(32);
    new DataView(id.buffer).setUint32(0, ++next);
    const place = {
      objectNo: rng.int(1, 4),
      lamport: next,
      writer: rng.int(0, 2),
      seq: next,
      aclPos: 0,
      timeMs: 0,
      datasetNo: 1,
    };
    store.changes.insert({ ...place, id, counts: true, kind: CHANGE_ROOT, bytes: id });
  };
  const newest = () => rng.int(0, sync.newestNo());
  for (let round = 0; round < ROUNDS; round++) {
    const target = rng.pick(["network", "peer"] as const);
    const step = rng.pick([
      () => Array.from({ length: rng.int(1, 20) }, add),
      () =>
        sync.confirm(
          target,
          Array.from({ length: rng.int(1, 5) }, () => Math.max(1, newest())),
        ),
      () =>
        sync.unconfirm(
          target,
          Array.from({ length: rng.int(0, 3) }, () => Math.max(1, newest())),
        ),
      () => rng.chance(0.3) && sync.advance(target, newest()),
      () => rng.chance(0.1) && sync.forget(target),
    ]);
    const isUndone = rng.chance(0.2);
    const write = db.transaction(() => {
      step();
      if (rng.chance(0.5)) sync.keptNowhereElse();
      if (isUndone) throw new Error("undone");
    });
    try {
      write();
    } catch (error) {
      if (!isUndone) throw error;
    }
    if (rng.chance(0.7))
      expect([...sync.keptNowhereElse()].sort()).toEqual(all.all().map(({ objectNo, count }) => [objectNo, count]));
  }
  store.close();
});
