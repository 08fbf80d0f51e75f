/** Changes that sort before much that was folded: what they cost a turn, what is read meanwhile, what is left of it. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { countDatabaseWork } from "../../../test/support/database-work.ts";
import { bodyOf, createForger, paidBytes } from "../../../test/support/hostile/forged-change.ts";
import { objectOf } from "../../../test/support/hostile/forger-world.ts";
import { type Device, withDevices } from "../../../test/support/worlds/acl-devices.ts";

setDefaultTimeout(60_000);

const set = (id: string, path: string, value: number) => ({
  id,
  upsert: true,
  ops: [{ type: "$set" as const, path, value }],
});
const named = (count: number, path: string) => Array.from({ length: count }, (_, i) => set(`r${i}`, path, i));
const body = (records: ReturnType<typeof named>) => {
  const made = { dataset: "items", records };
  return records.length < 100 ? bodyOf(made) : paidBytes(JSON.stringify(made), 300 * records.length);
};
const docOf = async (device: Device, id: string) =>
  JSON.parse((await device.rows()).find((text) => text.includes(`"id":"${id}"`)) ?? "null") as Record<string, unknown>;

/** A device of the owner, and a change that knows nothing of what `write` brings and sorts before all of it. */
async function withLate(
  write: (device: Device, forge: ReturnType<typeof createForger>) => Promise<void>,
  late: Uint8Array,
  run: (device: Device, late: Uint8Array) => Promise<void>,
  options: { foldSliceMs?: number } = {},
) {
  await withDevices(async (devices) => {
    const device = devices.open("one", devices.owner, options);
    await device.write("a", "1");
    const { bytes } = createForger(device.space, objectOf(device), devices.owner.signer).write(late);
    await write(device, createForger(device.space, objectOf(device), devices.owner.signer));
    await run(device, bytes);
    const rows = await device.rows();
    await device.space.engine.rebuildProjection();
    expect(await device.rows()).toEqual(rows);
  });
}

/** A record with so many changes, each a change of its own. */
const hot =
  (count: number) =>
  async ({ space }: Device, forge: ReturnType<typeof createForger>) => {
    const many = Array.from({ length: count }, (_, i) => forge.write(body([set("hot", `f${i % 7}`, i)])).bytes);
    await space.engine.ingest(many);
  };

/** A change that comes late to a record of so many, and is folded over several turns. */
const withLateOf = (count: number, run: (device: Device, late: Uint8Array) => Promise<void>) =>
  withLate(hot(count), body([set("hot", "late", 1)]), run, { foldSliceMs: 2 });

describe("a change that comes late", () => {
  test("[CHANGE-9] of thousands of records opens each change about once, however many records both touch", () =>
    withLate(
      async ({ space }, forge) => {
        await space.engine.ingest(["a", "b", "c"].map((path) => forge.write(body(named(2_000, path))).bytes));
      },
      body(named(2_000, "late")),
      async (device, late) => {
        const { keys } = device.space;
        const { byId } = keys;
        let opened = 0;
        keys.byId = (id) => {
          opened++;
          return byId(id);
        };
        await device.space.engine.ingest([late]);
        keys.byId = byId;
        expect(opened).toBeLessThan(40); // 2,000 times four, were each opened for every record
        for (const id of ["r0", "r1999"])
          expect(await docOf(device, id)).toMatchObject({ a: 0 + Number(id.slice(1)), late: Number(id.slice(1)) });
      },
    ));

  test("[CHANGE-9] leaves a space behind no longer than its rows, whoever asks meanwhile", () =>
    // A turn ends with the last of the rows, and the next one finds that there is none.
    withLate(
      hot(100),
      body([set("hot", "late", 1)]),
      async ({ space }, late) => {
        await space.engine.take([late]);
        // As a status does that is asked for again and again; nothing is written meanwhile.
        while (space.engine.isOwing()) {
          expect(space.replica.facts()).toMatchObject({ stale: true, complete: false });
          await Bun.sleep(0);
        }
        expect(space.replica.facts().stale).toBe(false);
      },
      { foldSliceMs: 0 },
    ));

  test("[CHANGE-9] of many records is noted with a statement for each, and a few for all", async () => {
    using work = countDatabaseWork();
    const count = 400;
    await withLate(
      async ({ space }, forge) => void (await space.engine.ingest([forge.write(body(named(count, "a"))).bytes])),
      body(named(count, "late")),
      async (device, late) => {
        work.restart();
        await device.space.engine.take([late]);
        expect(device.space.engine.isOwing()).toBe(true);
        // One statement looks up which of them are there, and answers with a row for each.
        expect(work.read().all).toBeLessThan(2 * count + 100);
        await device.space.engine.ingest([]);
        expect(await docOf(device, "r7")).toMatchObject({ a: 7, late: 7 });
      },
      { foldSliceMs: 0 },
    );
  });

  test("[CHANGE-9] of a record with a long history is folded over several turns; until then the record is as it was, others go on, and nothing is complete", () =>
    withLateOf(3_000, async (device, late) => {
      const { engine } = device.space;
      const shown: unknown[] = [];
      const stop = device.space.events.on("committed", ({ touched }) => {
        for (const { recordId, doc } of touched) if (recordId === "hot") shown.push(JSON.parse(doc!));
      });
      const now = (id: string) => engine.record(objectOf(device), "items", id);
      const before = now("hot");
      await engine.take([late]);
      expect(engine.isOwing()).toBe(true);
      expect(device.space.replica.facts().stale).toBe(true);
      expect(now("hot")).toEqual(before);
      await device.write("beside", "2");
      expect(engine.isOwing()).toBe(true);
      expect(now("beside")).toMatchObject({ v: "2" });
      expect(now("hot")).toEqual(before);
      await engine.ingest([]);
      expect(engine.isOwing()).toBe(false);
      expect(await docOf(device, "hot")).toMatchObject({ late: 1, f0: 2_996 });
      expect(shown).toHaveLength(1);
      stop();
    }));

  test("[CHANGE-9] what is written to a record that is still to be folded anew follows all that came before, and is told", () =>
    withLateOf(2_000, async (device, late) => {
      const { engine } = device.space;
      await engine.take([late]);
      expect(engine.isOwing()).toBe(true);
      await device.write("hot", "mine");
      expect(await docOf(device, "hot")).toMatchObject({ late: 1, v: "mine", f0: 1_995 });
    }));

  test("[CHANGE-9] goes on where it was when the space is opened again", () =>
    withLateOf(2_000, async (device, late) => {
      await device.space.engine.take([late]);
      expect(device.space.engine.isOwing()).toBe(true);
      await device.reopen();
      await device.space.engine.ingest([]);
      expect(await docOf(device, "hot")).toMatchObject({ late: 1, f0: 1_995 });
      const { db } = device.space.store;
      expect(db.query("SELECT count(*) AS n FROM dirty_rows").get()).toEqual({ n: 0 });
    }));
});
