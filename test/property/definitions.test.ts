/**
 * Types, options and datasets changed on several replicas apart from each other, records written under whatever each
 * of them knew: once everybody holds everything, rows and schema are byte-identical, in whatever order it came.
 */
import { describe, expect } from "bun:test";
import type { RecordOp } from "../../src/change/codec/change-body.ts";
import { SvcError } from "../../src/protocol/errors.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { createRng, type Rng } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { expectSame, firstSeed, meet, prepared, STAMPED, withReplicas } from "../support/worlds/definition-replicas.ts";
import type { SchemaReplica } from "../support/worlds/schema-replica.ts";

const HISTORIES = rounds(14);

/** Runs a write that may be refused for a reason of the product's own, which is then no failure. */
async function attempt(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof SvcError) || error.code === "internal") throw error;
  }
}

const FIELDS = ["a", "b", "c", "by"];
const fieldDraft = (rng: Rng) => {
  const key = rng.pick(FIELDS);
  if (key === "by") return { key, stamp: "creator" };
  return {
    key,
    kind: rng.pick(["string", "number", "array", "datetime"]),
    mutableBy: rng.pick(["never", "any", "author"]),
    ...(rng.chance(0.2) ? { scope: "local" } : {}),
  };
};
const VALUES = { string: "text", number: 5, array: ["x"], datetime: { $date: "2026-01-31T09:30:00Z" } };
const valueFor = (rng: Rng, kind = "string") =>
  rng.chance(0.8) ? VALUES[kind as keyof typeof VALUES] : rng.pick(Object.values(VALUES));

async function randomStep(rng: Rng, replica: SchemaReplica): Promise<void> {
  const { types, properties, datasets, objects, records } = replica.services;
  const own = types.list().filter((type) => !type.builtIn);
  const type = own.length > 0 ? rng.pick(own) : undefined;
  const step = rng.int(0, 24);
  if (!type || step === 0) return attempt(types.create({ xKey: rng.pick(["book", "film", "note"]), name: "T" }));
  const props = properties.list(type.id);
  const prop = props.length > 0 ? rng.pick(props) : undefined;
  const defs = datasets.list(type.id);
  const def = defs.length > 0 ? rng.pick(defs) : undefined;
  switch (step) {
    case 1:
      return attempt(
        properties.add(type.id, {
          name: "State",
          xKey: rng.pick(["state", "kind"]),
          format: { type: rng.pick(["select", "multiselect"]), options: { open: { name: "Open" } } },
        }),
      );
    case 2:
    case 3: {
      if (!prop) return;
      const key = rng.pick(["open", "done"]);
      const patch = rng.pick<{ set?: JsonObject; unset?: string[] }>([
        { set: { [`format.options.${key}.name`]: rng.pick(["Yes", "No"]), [`format.options.${key}.color`]: "red" } },
        { unset: [`format.options.${key}`] },
        { set: { name: rng.pick(["One", "Two"]), "meta.pos": `${rng.int(0, 9)}` } },
      ]);
      return attempt(properties.patch(type.id, prop.id, patch));
    }
    case 4:
      return prop && rng.chance(0.3) ? attempt(properties.remove(type.id, prop.id)) : undefined;
    case 5:
      return attempt(
        datasets.add(type.id, {
          name: rng.pick(["tasks", "notes"]),
          idRule: rng.pick(["user", "auto"]),
          ...(rng.chance(0.5) ? { dynamic: true } : {}),
          fields: [fieldDraft(rng)],
        }),
      );
    case 6:
    case 7:
      return def ? attempt(datasets.addField(type.id, def.id, fieldDraft(rng))) : undefined;
    case 8:
      return def && def.fields.length > 0
        ? attempt(datasets.removeField(type.id, def.id, rng.pick(def.fields).id))
        : undefined;
    case 9:
      if (!def) return;
      return rng.chance(0.2)
        ? attempt(datasets.remove(type.id, def.id))
        : attempt(datasets.patch(type.id, def.id, { set: { displayName: `D${rng.int(0, 9)}` } }));
    case 10:
      return attempt(objects.create({ types: [type.id] }));
    default: {
      const rows = replica.services.engine.store.rows.docs(0).map((text) => JSON.parse(text) as JsonObject);
      const holders = rows.filter((row) => JSON.stringify(row["svc"] ?? {}).includes(type.id));
      if (!def || holders.length === 0) return;
      const id = def.idRule === "user" ? rng.pick(["r1", "r2"]) : "";
      const ops = Array.from({ length: rng.int(1, 3) }, (): RecordOp => {
        const field = def.fields.length > 0 && rng.chance(0.9) ? rng.pick(def.fields) : undefined;
        return { type: "$set", path: field?.key ?? rng.pick(FIELDS), value: valueFor(rng, field?.kind) };
      });
      return attempt(
        records.modify({
          objectId: rng.pick(holders)["id"] as string,
          dataset: rng.chance(0.2) ? def.id : def.name,
          records: [{ id, upsert: true, ops }],
        }),
      );
    }
  }
}

describe("apart and together", () => {
  for (let i = 0; i < HISTORIES; i++) {
    const seed = (firstSeed + i) >>> 0;
    rule(
      `[CHANGE-2] history ${i}: rows and schema agree byte for byte`,
      async () => {
        const rng = createRng(seed);
        try {
          await withReplicas(["one", "two", "three"].slice(0, rng.int(2, 3)), async (replicas, { open }) => {
            await replicas[0]!.services.types.create({ xKey: "book" });
            await meet(rng, replicas);
            const rounds = rng.int(1, 3);
            for (let round = 0; round < rounds; round++) {
              for (let step = 0; step < 40; step++) await randomStep(rng, rng.pick(replicas));
              await meet(rng, replicas);
            }
            await expectSame(rng, replicas, open);
          });
        } catch (error) {
          console.error(`SEED=${seed} ROUNDS=1`);
          throw error;
        }
      },
      120_000,
    );
  }
});

/** Writes as a client does that asks nobody: the change names the right definition and obeys no local check. */
function forge(
  replica: SchemaReplica,
  at: { objectId: string },
  record: { id: string; delete?: true; ops: RecordOp[] },
) {
  const { engine, schema } = replica.services;
  return engine.write((tx) => {
    const dataset = schema.datasetForWrite("notes", tx)!;
    const body = { dataset: "notes", definition: dataset.definition!, records: [{ upsert: true, ...record }] };
    return tx.appendPartly(tx.object(at.objectId)!, body, dataset.rules);
  });
}

describe("rules that depend on the record", () => {
  rule("[TYPE-3] author-only and write-once hold for changes from elsewhere, in every order of arrival", async () => {
    await withReplicas(["alice", "mallory", "reader"], async ([alice, mallory, reader], { open }) => {
      const rng = createRng(firstSeed);
      const at = await prepared([alice!, mallory!], STAMPED);
      const modify = (replica: SchemaReplica, id: string, fields: JsonObject) =>
        replica.services.records.modify({
          ...at,
          dataset: "notes",
          records: [{ id, upsert: true, ops: [{ type: "$set", path: "", value: fields }] }],
        });
      await modify(alice!, "r", { text: "alice", once: "first", free: 1 });
      await meet(rng, [alice!, mallory!]);
      const contents = async () => (await mallory!.rowTexts()).map((row) => row.replace(/"modifiedAt":\{[^}]*\}/, ""));
      const before = await contents();
      const drops = await forge(mallory!, at, {
        id: "r",
        ops: [
          { type: "$set", path: "text", value: "mallory" },
          { type: "$unset", path: "text" },
          { type: "$set", path: "once", value: "second" },
          { type: "$set", path: "by", value: mallory!.accountId },
          { type: "$set", path: "by.x", value: 1 },
          { type: "$set", path: "free", value: "no number" },
          { type: "$set", path: "stray", value: 1 },
        ],
      });
      expect(drops.rejections.map((drop) => drop.opIndex)).toEqual([0, 1, 2, 3, 4, 5, 6]);
      await forge(mallory!, at, { id: "r", delete: true, ops: [] });
      await forge(mallory!, at, { id: "never", delete: true, ops: [] });
      expect(await contents()).toEqual(before);
      await modify(mallory!, "r", { free: 2 });
      await modify(alice!, "r", { text: "alice again" });
      await meet(rng, [alice!, mallory!, reader!]);
      const record = (replica: SchemaReplica) => {
        const { engine } = replica.services;
        return engine.record(engine.object(at.objectId)!, "notes", "r");
      };
      for (const replica of [alice!, mallory!, reader!])
        expect(record(replica)).toMatchObject({ by: alice!.accountId, text: "alice again", once: "first", free: 2 });
      await expectSame(rng, [alice!, mallory!, reader!], open);
    });
  });

  rule("[TYPE-3] two who create one record apart: the first in order is its author everywhere", async () => {
    await withReplicas(["alice", "bob"], async ([alice, bob], { open }) => {
      const rng = createRng(firstSeed + 1);
      const at = await prepared([alice!, bob!], STAMPED);
      for (const replica of [alice!, bob!])
        await replica.services.records.modify({
          ...at,
          dataset: "notes",
          records: [{ id: "same", upsert: true, ops: [{ type: "$set", path: "text", value: replica.name }] }],
        });
      await meet(rng, [alice!, bob!]);
      const { engine } = alice!.services;
      const record = engine.record(engine.object(at.objectId)!, "notes", "same")!;
      expect(record["by"]).toBe(record["text"] === "alice" ? alice!.accountId : bob!.accountId);
      await expectSame(rng, [alice!, bob!], open);
    });
  });

  rule("[TYPE-8] a definition is pinned against other devices; its display leaves are not", async () => {
    await withReplicas(["alice", "mallory"], async ([alice, mallory], { open }) => {
      const rng = createRng(firstSeed + 2);
      const at = await prepared([alice!, mallory!], STAMPED);
      const { engine, schema, datasets } = mallory!.services;
      const [field] = datasets.list(at.typeId)[0]!.fields;
      const touch = (dataset: string, id: string, op: RecordOp) =>
        engine.write((tx) => {
          const { rules } = schema.datasetForWrite(dataset, tx)!;
          return tx.appendPartly(tx.object(at.typeId)!, { dataset, records: [{ id, ops: [op] }] }, rules);
        });
      const before = alice!.schemaText();
      for (const [dataset, id, path, value] of [
        ["dataset_defs", at.defId, "deleteBy", "anyone"],
        ["dataset_defs", at.defId, "name", "other"],
        ["dataset_fields", field!.id, "mutableBy", "any"],
        ["dataset_fields", field!.id, "removed", false],
      ] as const)
        expect((await touch(dataset, id, { type: "$set", path, value })).rejections).toHaveLength(1);
      await meet(rng, [alice!, mallory!]);
      expect(alice!.schemaText()).toBe(before);
      await touch("dataset_defs", at.defId, { type: "$set", path: "displayName", value: "Notes" });
      await meet(rng, [alice!, mallory!]);
      expect(alice!.services.datasets.list(at.typeId)[0]!.displayName).toBe("Notes");
      await expectSame(rng, [alice!, mallory!], open);
    });
  });
});

describe("one name twice", () => {
  rule("[TYPE-6] the oldest definition has the name, another is marked and is written to under its id", async () => {
    await withReplicas(["one", "two"], async ([one, two], { open }) => {
      const rng = createRng(firstSeed + 6);
      const made: { typeId: string; defId: string; objectId: string }[] = [];
      for (const [replica, xKey] of [
        [one!, "a"],
        [two!, "b"],
      ] as const) {
        const { types, datasets, objects } = replica.services;
        const type = await types.create({ xKey });
        const fields = [{ key: xKey, kind: "string", mutableBy: "any" }];
        const defId = await datasets.add(type.id, { name: "same", idRule: "user", fields });
        const object = await objects.create({ types: [type.id] });
        made.push({ typeId: type.id, defId, objectId: object.id });
      }
      const write = (replica: SchemaReplica, dataset: string, index: 0 | 1, value: string) =>
        replica.services.records.modify({
          objectId: made[index]!.objectId,
          dataset,
          records: [{ id: "r", upsert: true, ops: [{ type: "$set", path: index === 0 ? "a" : "b", value }] }],
        });
      await write(one!, "same", 0, "before");
      await write(two!, "same", 1, "before");
      await meet(rng, [one!, two!]);
      const listed = made.map(({ typeId }) => one!.services.datasets.list(typeId)[0]!);
      expect(listed.filter((each) => each.invalid)).toHaveLength(1);
      const loser = listed[0]!.invalid ? 0 : 1;
      const winner = loser === 0 ? 1 : 0;
      expect(listed[loser]!.invalidReason).toContain(listed[winner]!.id);
      await write(one!, "same", winner, "after");
      await expect(write(one!, "same", loser, "after")).rejects.toMatchObject({ code: "dataset.validation" });
      await write(two!, listed[loser]!.id, loser, "after");
      await meet(rng, [one!, two!]);
      const { engine, datasets } = one!.services;
      for (const [index, { objectId }] of made.entries())
        expect(engine.record(engine.object(objectId)!, "same", "r")).toMatchObject({
          [index === 0 ? "a" : "b"]: "after",
        });
      expect(datasets.listing().filter((each) => each.name === "same")).toHaveLength(1);
      await expectSame(rng, [one!, two!], open);
      const again = one!.services.datasets; // it was opened anew
      await again.remove(made[winner]!.typeId, listed[winner]!.id);
      expect(again.list(made[loser]!.typeId)[0]).not.toHaveProperty("invalid");
      await write(one!, "same", loser, "again");
    });
  });
});
