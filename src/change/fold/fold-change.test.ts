import { expect, test } from "bun:test";
import { countDatabaseWork } from "../../../test/support/database-work.ts";
import { openLiveSpace } from "../../../test/support/worlds/live-space.ts";
import type { RecordChange } from "../codec/change-body.ts";

const RECORDS = 500;

const page = (name: string, count: number): RecordChange[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `${name}-${index}`,
    upsert: true,
    ops: [{ type: "$set", path: "", value: { n: index, title: `record ${index}` } }],
  }));

test("records that a change makes take no statement each", async () => {
  using work = countDatabaseWork();
  const space = await openLiveSpace();
  try {
    await space.write(page("warm", 20));
    const costOf = async (name: string, count: number): Promise<number> => {
      work.restart();
      await space.write(page(name, count));
      return work.read().all;
    };
    const few = await costOf("few", 20);
    const many = await costOf("many", RECORDS);
    // One statement for ten rows, and one for all touches.
    expect((many - few) / (RECORDS - 20)).toBeLessThanOrEqual(0.15);
  } finally {
    await space.close();
  }
});

test("records that a change makes beside others of which some are there are all stored and touched, in any mixture", async () => {
  const space = await openLiveSpace();
  try {
    await space.write(page("r", 60).filter((_, index) => index % 7 === 0));
    await space.write(
      page("r", 60).map((change, index) => (index % 11 === 3 ? { ...change, delete: true, ops: [] } : change)),
    );
    const { db } = space.store;
    const rows = db
      .query<{ id: string; n: number | null; state: number; touches: number }, []>(
        `SELECT id, doc ->> '$.n' AS n, state, (SELECT count(*) FROM touches t WHERE t.row = r.no) AS touches
         FROM rows r WHERE id LIKE 'r-%'`,
      )
      .all();
    const found = new Map(rows.map(({ id, ...rest }) => [id, rest]));
    for (let index = 0; index < 60; index++) {
      const isDeleted = index % 11 === 3;
      expect(found.get(`r-${index}`)).toEqual({
        n: isDeleted ? null : index,
        state: isDeleted ? 2 : 1,
        touches: index % 7 === 0 ? 2 : 1,
      });
    }
    expect(found.size).toBe(60);
  } finally {
    await space.close();
  }
});
