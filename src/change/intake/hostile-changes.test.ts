/** Changes by a member of good standing who knows the format and means harm: each ends with a verdict, and the space goes on. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { bodyBytes, bodyOf, createForger, setOf } from "../../../test/support/hostile/forged-change.ts";
import { objectOf, withForger, withRecords } from "../../../test/support/hostile/forger-world.ts";
import { until } from "../../../test/support/server/client.ts";
import { type Device, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { ITEMS } from "../../../test/support/worlds/test-space.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import { decodeChange, encodeDerivedRoot } from "../codec/change-codec.ts";
import { stubOf } from "../codec/change-stub.ts";
import { DELETIONS_DATASET, DELETIONS_TYPE } from "../fold/deletion-log.ts";
import { createHistory } from "../history/history.ts";

setDefaultTimeout(60_000);

describe("bounds", () => {
  for (const time of [8.64e15 + 1, 253_402_300_800_000, Number.MAX_SAFE_INTEGER])
    test(`[CHANGE-3] a time of ${time} is quarantined: no instant has a text beyond the year 9999`, () =>
      withForger(async ({ two, forge }) => {
        const { bytes } = forge.write(withRecords(setOf("x", "v", '"x"')), { time });
        expect(await two.ingest(bytes)).toMatchObject({
          kind: "quarantined",
          refusal: { code: "change.no_count", facts: { field: "time" } },
        });
      }));

  for (const depth of [129, 1_010, 50_000])
    test(`[CHANGE-3] a value nested ${depth} levels deep does nothing, in whatever dataset`, () =>
      withForger(async ({ two, forge }) => {
        const value = `${"[".repeat(depth)}${"]".repeat(depth)}`;
        const verdict = await two.ingest(forge.write(withRecords(setOf("deep", "v", value))).bytes);
        expect(verdict).toMatchObject({ kind: "stored", refusal: refusal("change.no_body") });
        expect(await two.values()).not.toHaveProperty("deep");
      }));

  test("[CHANGE-3] a value nested 128 levels deep is taken, and read again", () =>
    withForger(async ({ two, forge }) => {
      const value = `${"[".repeat(128)}${"]".repeat(128)}`;
      expect(await two.ingest(forge.write(withRecords(setOf("deep", "v", value))).bytes)).toEqual({
        kind: "stored",
        counts: true,
      });
      expect(JSON.stringify((await two.values())["deep"])).toBe(value);
    }));

  test("[CHANGE-3] more trace ids than a request may have are no body, nor more than its records can keep", () =>
    withForger(async ({ two, forge }) => {
      const records = Array.from({ length: 20_000 }, (_, i) => ({ id: `r${i}`, upsert: true, ops: [] }));
      const many = Array.from({ length: 100_000 }, (_, i) => `t${i}`);
      const long = Array.from({ length: LIMITS.traceIds }, () => "t".repeat(LIMITS.traceIdChars));
      for (const body of [
        { dataset: "items", records: records.slice(0, 2_000), traceIds: many },
        { dataset: "items", records, traceIds: long },
      ])
        expect(await two.ingest(forge.write(bodyOf(body)).bytes)).toMatchObject({
          kind: "stored",
          refusal: refusal("change.no_body"),
        });
      expect(Object.keys(await two.values())).toEqual(["a"]);
    }));

  test("[CHANGE-3] clocks and names beyond their bounds are refused", () =>
    withForger(async ({ one, two, forge }) => {
      const { bytes } = forge.write(withRecords(""), { lamport: Number.MAX_SAFE_INTEGER });
      expect(await two.ingest(bytes)).toMatchObject({ kind: "quarantined" });
      const long = JSON.stringify("d".repeat(1_000));
      const body = bodyBytes(`{"dataset":${long},"records":[]}`);
      expect(
        await two.ingest(createForger(one.space, objectOf(one), one.account.signer).write(body).bytes),
      ).toMatchObject({
        kind: "stored",
        refusal: refusal("change.no_body"),
      });
    }));
});

describe("values", () => {
  test("[CHANGE-2] -0, numbers beyond doubles and lone surrogates fold as they are once they were stored", () =>
    withForger(async ({ one, two, forge }) => {
      const ops = [
        `{"type":"$set","path":"t","value":[-0,-0.0,-1e-400,0,"\\ud800","\\ufffd",1e400,null]}`,
        `{"type":"$addToSet","path":"t","value":0}`,
        `{"type":"$addToSet","path":"t","value":"\\udfff"}`,
        `{"type":"$addToSet","path":"t","value":[-0]}`,
        `{"type":"$set","path":"","value":{"n\\ud800":-0}}`,
      ].join();
      for (const device of [one, two])
        await device.ingest(forge.write(withRecords(`{"id":"v","upsert":true,"ops":[${ops}]}`)).bytes);
      await two.ingest(forge.write(withRecords(`{"id":"v","ops":[{"type":"$pull","path":"t","value":-0}]}`)).bytes);
      await two.ingest(one.changes().at(-1)!.bytes);
      const row = JSON.parse((await two.rows()).find((text) => text.includes('"id":"v"'))!) as Record<string, unknown>;
      expect(row["t"]).toEqual(["\ufffd", "\ufffd", null, null, [0]]);
      expect(row["n\ufffd"]).toBe(0);
    }));

  test("[CHANGE-3] an id that is no well-formed text names no record", () =>
    withForger(async ({ two, forge }) => {
      for (const id of ["\\ud800", "x\\udfff", "y".repeat(LIMITS.recordIdChars + 1)])
        for (const rest of [`"upsert":true,"ops":[]`, `"delete":true,"ops":[]`])
          expect(await two.ingest(forge.write(withRecords(`{"id":"${id}",${rest}}`)).bytes)).toEqual({
            kind: "stored",
            counts: true,
          });
      expect(await two.rows()).toHaveLength(1);
    }));
});

describe("size", () => {
  /** What a record's document takes as JSON. */
  const sizeOf = async (device: Device, id: string) =>
    Buffer.byteLength((await device.rows()).find((text) => text.includes(`"id":"${id}"`)) ?? "");

  test("[CHANGE-3] a record of 1 MiB takes no more, whatever is tried; what makes it smaller is taken", () =>
    withForger(async ({ one, two, forge }) => {
      const part = JSON.stringify("x".repeat(200_000));
      const grow = Array.from({ length: 12 }, (_, i) => setOf("big", `f${i}`, part));
      for (const record of grow) await two.ingest(forge.write(withRecords(record)).bytes);
      expect(await sizeOf(two, "big")).toBeGreaterThan(800_000);
      const many = Array.from({ length: 20_000 }, (_, i) => `{"type":"$set","path":"k${i}.k.k","value":${i}}`);
      const elements = Array.from(
        { length: 20_000 },
        (_, i) => `{"type":"$addToSet","path":"t","value":"${i} of them"}`,
      );
      const gone = Array.from({ length: 20_000 }, (_, i) => `{"type":"$unset","path":"g${i}"}`);
      for (const ops of [many, elements, gone])
        await two.ingest(forge.write(withRecords(`{"id":"big","ops":[${ops.join()}]}`)).bytes);
      const full = await sizeOf(two, "big");
      expect(full).toBeGreaterThan(1_000_000);
      expect(full).toBeLessThanOrEqual(LIMITS.recordBytes);
      await two.ingest(forge.write(withRecords(setOf("big", "f0", '"short"'))).bytes);
      expect(await sizeOf(two, "big")).toBeLessThan(full - 190_000);
      for (const { bytes } of two.changes()) await one.ingest(bytes);
    }));

  test("[CHANGE-3] one's own write is refused alike, with the op and the reason", () =>
    withForger(async ({ one }) => {
      const append = (path: string) =>
        one.space.engine.write((tx) => {
          const ops = [
            { type: "$set" as const, path, value: "x".repeat(300_000) },
            { type: "$set" as const, path: "small", value: path },
          ];
          return tx.appendPartly(
            objectOf(one),
            { dataset: "items", records: [{ id: "big", upsert: true, ops }] },
            {
              name: "items",
              idRule: "user",
            },
          );
        });
      const outcomes = [];
      for (const path of ["a", "b", "c", "d", "e"]) outcomes.push(await append(path));
      expect(outcomes.map(({ rejections }) => rejections.length)).toEqual([0, 0, 0, 1, 1]);
      expect(outcomes[4]!.rejections).toEqual([
        { recordIndex: 0, recordId: "big", opIndex: 0, refusal: refusal("record.too_large") },
      ]);
    }));

  test("[CHANGE-3] traces count: a record near its bound keeps no more of them", () =>
    withForger(async ({ two, forge }) => {
      const traceIds = Array.from({ length: LIMITS.traceIds }, (_, i) => `${i}`.padEnd(LIMITS.traceIdChars, "t"));
      const part = JSON.stringify("x".repeat(300_000));
      for (const path of ["a", "b", "c"]) await two.ingest(forge.write(withRecords(setOf("traced", path, part))).bytes);
      for (let i = 0; i < 30; i++) {
        const ops = [{ type: "$set" as const, path: `f${i}`, value: i }];
        await two.ingest(
          forge.write(bodyOf({ dataset: "items", records: [{ id: "traced", upsert: true, ops }], traceIds })).bytes,
        );
      }
      expect(await sizeOf(two, "traced")).toBeGreaterThan(1_000_000);
      expect(await sizeOf(two, "traced")).toBeLessThanOrEqual(LIMITS.recordBytes);
    }));
});

describe("creating", () => {
  test("[DATA-1] is all or nothing: one refused op, and there is no record", () =>
    withForger(async ({ one, two, forge }) => {
      const ops = `[{"type":"$set","path":"v","value":"x"},{"type":"$inc","path":"v","value":1}]`;
      for (const device of [one, two])
        await device.ingest(forge.write(withRecords(`{"id":"n","upsert":true,"ops":${ops}}`)).bytes);
      expect(await two.values()).toEqual({ a: "1" });
      const tried = await one.space.engine.write((tx) =>
        tx.appendPartly(
          objectOf(one),
          { dataset: "items", records: [{ id: "n", upsert: true, ops: JSON.parse(ops) }] },
          { name: "items", idRule: "user" },
        ),
      );
      expect(tried.effective).toBe(false);
      expect(tried.rejections).toEqual([
        { recordIndex: 0, recordId: "n", opIndex: 1, refusal: refusal("op.inc_needs_number") },
      ]);
    }));

  test("[DATA-1] a record that two entries of a change name is made by the first that is whole", () =>
    withForger(async ({ two, forge }) => {
      const bad = `{"id":"n","upsert":true,"ops":[{"type":"$inc","path":"v","value":"no"}]}`;
      await two.ingest(forge.write(withRecords(`${bad},${setOf("n", "v", '"yes"')}`)).bytes);
      expect(await two.values()).toEqual({ a: "1", n: "yes" });
    }));
});

describe("deletions", () => {
  test("[CHANGE-8] a derived object stays, whoever enters it into the log", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      await one.write("a", "1");
      const id = objectOf(one).idText;
      await one.space.engine.write((tx) => tx.ensureDerived(DELETIONS_TYPE, ""));
      const log = one.space.engine.object(one.space.engine.derivedId(DELETIONS_TYPE, ""))!;
      for (const { bytes } of one.changes()) await two.ingest(bytes);
      const entry = { dataset: DELETIONS_DATASET, records: [{ id, upsert: true, ops: [] }] };
      const forged = createForger(one.space, log, devices.owner.signer).write(bodyOf(entry)).bytes;
      for (const device of [one, two]) {
        expect(await device.ingest(forged)).toEqual({ kind: "stored", counts: true });
        expect(objectOf(device).deleted).toBe(false);
        expect(await device.values()).toEqual({ a: "1" });
      }
      await one.write("b", "2");
      expect(await one.values()).toEqual({ a: "1", b: "2" });
    }));

  test("[CHANGE-3] a derived root with a long derivation is refused: nobody signs it, nobody pays for it", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      await one.write("a", "1");
      const { space } = decodeChange(one.changes()[0]!.bytes).header;
      const { bytes } = encodeDerivedRoot({ space, type: "t", derivation: "d".repeat(500_000) });
      expect((await one.ingest(bytes)).kind).toBe("quarantined");
    }));
});

describe("what cannot be read", () => {
  for (const [what, over] of [
    ["of a dataset that nobody knows", {}],
    ["under a key that nobody has", { keyId: new Uint8Array(16).fill(9) }],
  ] as const)
    for (const order of ["behind it", "before it"] as const)
      test(`[CHANGE-7] a change ${what}, whose stub one device got first, keeps nothing out elsewhere that comes ${order}`, () =>
        withForger(async ({ one, two, forge }) => {
          const plain = bodyBytes(`{"dataset":"nobody's","records":[]}`);
          const { bytes } = forge.write(plain, over);
          expect(await one.ingest(stubOf(bytes))).toMatchObject({ kind: "stored" });
          await one.ingest(bytes);
          await one.write("b", "2");
          await one.write("c", "3");
          const all = one.changes().map((change) => change.bytes);
          for (const each of order === "behind it" ? all : all.toReversed()) await two.ingest(each);
          expect(await two.values()).toMatchObject({ b: "2", c: "3" });
          expect(two.changes()).toHaveLength(one.changes().length);
        }));
});

test("[CHANGE-8] what was deleted is in no file of the space soon after, the log included", () =>
  withDevices(async (devices) => {
    const one = devices.open("one", devices.owner);
    await one.write("a", "a text that nobody is to find again");
    const { path } = one.space.store;
    const holds = () =>
      [path, `${path}-wal`].some((file) => readFileSync(file).includes("a text that nobody is to find again"));
    expect(holds()).toBe(true);
    await one.space.engine.write((tx) =>
      tx.append(objectOf(one), { dataset: "items", records: [{ id: "a", delete: true, ops: [] }] }, ITEMS),
    );
    await until(() => Promise.resolve(!holds()), "the log to be emptied");
  }));

describe("totality", () => {
  // A rule that stumbles over what it never expected, in place of a fault that nobody knows of.
  beforeAll(() => {
    Object.assign(ITEMS, {
      refuseOp(_doc: unknown, _path: unknown, op: { value?: unknown }) {
        if (op.value === "trap") throw new TypeError("a rule stumbles");
        return undefined;
      },
    });
  });
  afterAll(() => void Reflect.deleteProperty(ITEMS, "refuseOp"));

  test("[CHANGE-4] a change at which a rule throws does nothing to that record, and is folded anew alike", () =>
    withForger(async ({ one, two, forge }) => {
      await two.ingest(forge.write(withRecords(`${setOf("a", "w", '"before"')},${setOf("b", "v", '"b"')}`)).bytes);
      const trapped = forge.write(
        withRecords(`${setOf("a", "w", '"gone"')},${setOf("a", "v", '"trap"')},${setOf("b", "v", '"c"')}`),
      ).bytes;
      expect(await two.ingest(trapped)).toEqual({ kind: "stored", counts: true });
      expect(await two.values()).toEqual({ a: "1", b: "c" });
      expect((await two.rows())[0]).toContain('"w":"before"');
      // Late: what sorts before it has the record folded anew, the trap in its middle.
      await one.write("a", "1");
      for (const { bytes } of one.changes()) await two.ingest(bytes);
      for (const { bytes } of two.changes()) await one.ingest(bytes);
      expect(await one.rows()).toEqual(await two.rows());
    }));

  test("[CHANGE-4] a change at which a rule throws is passed over by views of the history, and its neighbours are not", () =>
    withForger(async ({ two, forge }) => {
      const versions: string[] = [];
      const write = async (records: string) => {
        const { bytes, id } = forge.write(withRecords(records));
        await two.ingest(bytes);
        versions.push(cidFromDigest(id));
      };
      await write(setOf("a", "w", '"before"'));
      await write(`${setOf("a", "w", '"gone"')},${setOf("a", "v", '"trap"')}`);
      await write(setOf("a", "x", '"after"'));
      await write(setOf("a", "v", '"trap"'));
      await write(setOf("a", "w", '"last"'));
      const history = createHistory(two.space);
      const { idText } = objectOf(two);
      const seen = [];
      for (const version of versions) {
        const { record } = await history.recordView(idText, version, "items", "a");
        const fields = record as JsonObject | undefined;
        seen.push([fields?.["v"], fields?.["w"], fields?.["x"]]);
      }
      expect(seen).toEqual([
        ["1", "before", undefined],
        ["1", "before", undefined],
        ["1", "before", "after"],
        ["1", "before", "after"],
        ["1", "last", "after"],
      ]);
      await history.diff(idText, { version: versions[1]! });
      history.close();
    }));

  test("[CHANGE-4] what throws outside the fold quarantines that change alone, among others of its batch", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      await one.write("a", "1");
      for (const { bytes } of one.changes()) await two.ingest(bytes);
      const forge = createForger(one.space, objectOf(one), devices.owner.signer);
      const bad = forge.write(withRecords(setOf("x", "v", '"bad"'))).bytes;
      const after = forge.write(withRecords(setOf("y", "v", '"y"'))).bytes;
      await one.write("b", "2");
      const { rows } = two.space.store;
      const insertAll = rows.insertAll;
      rows.insertAll = (collectionId, added) => {
        if (added.some(({ id }) => id === "x")) throw new TypeError("nobody thought of this");
        return insertAll(collectionId, added);
      };
      const honest = one.changes().at(-1)!.bytes;
      const verdicts = await two.space.engine.ingest([bad, honest, after]);
      expect(verdicts.map(({ kind }) => kind)).toEqual(["quarantined", "stored", "quarantined"]);
      expect(verdicts[0]).toMatchObject({ refusal: refusal("change.unfoldable") });
      expect(await two.values()).toEqual({ a: "1", b: "2" });
    }));
});
