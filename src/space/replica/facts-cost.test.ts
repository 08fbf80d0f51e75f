import { expect, test } from "bun:test";
import { noteStatements } from "../../../test/support/statements-run.ts";
import { withDevices } from "../../../test/support/worlds/acl-devices.ts";

/**
 * What may be gone over whole: a row that stands alone; records that wait for a place, and the changes that name them, which are
 * bounded; writers of the latest changes; an index of what waits.
 */
const BOUNDED = [
  /^SCAN (CONSTANT ROW|regular_objects|pending_records|d)\b/,
  /^SCAN \(subquery-1\): SELECT DISTINCT writer/,
  /^SCAN (parked|pending_bodies) USING COVERING INDEX/,
];

test("[SYNC-5] what a status and a vector are computed from after a write is read without going over all objects, changes or writers", async () => {
  using statements = noteStatements();
  await withDevices(async (devices) => {
    const one = devices.open("one", devices.owner);
    await one.write("a", "1");
    const { replica, store } = one.space;
    const read = () => {
      const { total } = replica.facts();
      return { total, writers: replica.vector().writers };
    };
    const before = read();
    await one.write("b", "2");
    statements.scans(store.db.filename);
    expect(read()).toEqual(before);
    const scans = statements.scans(store.db.filename);
    expect(scans.filter((step) => !BOUNDED.some((bounded) => bounded.test(step)))).toEqual([]);
  });
});
