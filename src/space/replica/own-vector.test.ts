import { expect, test } from "bun:test";
import { countDatabaseWork } from "../../../test/support/database-work.ts";
import { withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { statesIn } from "../port/version-vector.ts";
import { vectorOf } from "./own-vector.ts";

const WRITERS = 20_000;

test("[SYNC-5] what a local write costs the vector does not grow with the writers of the space, and the vector is what it is anew", async () => {
  using work = countDatabaseWork();
  await withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    await one.write("a", "1");
    for (const { bytes } of one.changes()) await two.ingest(bytes);
    for (const { space } of [one, two]) {
      const { db } = space.store;
      db.transaction(() => {
        const add = db.query("INSERT INTO writers(author, id, seq, last, changes, counted) VALUES(?, ?, 1, ?, 1, 1)");
        for (let no = 0; no < WRITERS; no++) {
          const id = Buffer.alloc(32);
          id.writeUInt32BE(Math.imul(no, 0x9e3779b1) >>> 0);
          add.run(id, id.subarray(0, 16), id);
        }
      })();
    }
    await one.write("b", "2");
    expect(vectorOf(one.space).writers).toBeGreaterThan(WRITERS);
    work.restart();
    await one.write("c", "3");
    const { digest, parts } = vectorOf(one.space);
    expect(work.read().all).toBeLessThan(500);
    // The other has not computed it before.
    for (const { bytes } of one.changes()) await two.ingest(bytes);
    const anew = vectorOf(two.space);
    const seqsOf = (vector: typeof anew) => statesIn(vector.parts).map(({ key, seq }) => [key, seq]);
    expect(seqsOf(vectorOf(one.space))).toEqual(seqsOf(anew));
    expect(parts.map(({ states }) => states.length)).toEqual(anew.parts.map(({ states }) => states.length));
    expect(digest).toEqual(anew.digest);
  });
}, 60_000);
