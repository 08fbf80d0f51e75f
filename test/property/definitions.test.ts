/**
 * Types, options and datasets changed on several replicas apart from each other, records written under whatever each
 * of them knew: once everybody holds everything, rows and schema are byte-identical, in whatever order it came.
 */
import { describe, expect } from "bun:test";
import type { RecordOp } from "../../src/change/codec/change-body.ts";
import { DELETED_GRACE_MS } from "../../src/change/fold/object-deletions.ts";
import { SvcError } from "../../src/protocol/errors.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { createRights } from "../support/open-engine.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { createAuthor, openSchemaReplica, type SchemaReplica } from "../support/schema-replica.ts";
import { scratchDir } from "../support/scratch.ts";

const firstSeed = runSeed("definitions");
const DAY_MS = 24 * 60 * 60 * 1000;
const HISTORIES = Number(process.env["HISTORIES"] ?? 20);

/** Replicas of one space, each with its own account, on one clock. */
async function withReplicas(
  names: readonly string[],
  run: (
    replicas: SchemaReplica[],
    extra: {
      open(name: string): SchemaReplica;
      rights: Rights;
      wait(ms: number): void;
    },
  ) => Promise<void>,
): Promise<void> {
  using dir = scratchDir("svc-schema");
  let time = Date.UTC(2026, 0, 31);
  const now = () => ++time;
  const rights = createRights();
  const opened: SchemaReplica[] = [];
  const open = (name: string, seed: number): SchemaReplica => {
    const replica = openSchemaReplica({ dir: dir.path, name, author: createAuthor(seed), now, rights });
    opened.push(replica);
    return replica;
  };
  try {
    const replicas = names.map((name, index) => open(name, index + 1));
    const wait = (ms: number) => {
      time += ms;
    };
    await run(replicas, { open: (name) => open(name, 99), rights, wait });
  } finally {
    for (const replica of opened) await replica.close();
  }
}
type Rights = ReturnType<typeof createRights>;

/** No route deletes a type; a peer that is laxer may. */
async function deleteType({ services: { engine } }: SchemaReplica, typeId: string): Promise<void> {
  await engine.write((tx) => tx.deleteObject(tx.object(typeId)!));
}

/** Everybody gets what everybody has, shuffled, in portions. */
async function meet(rng: Rng, replicas: readonly SchemaReplica[]): Promise<void> {
  const all = (await Promise.all(replicas.map((replica) => replica.packets()))).flat();
  for (const replica of replicas) {
    const packets = rng.shuffle(all);
    for (let start = 0; start < packets.length; ) {
      const size = rng.pick([1, 3, 20]);
      await replica.services.engine.ingest(packets.slice(start, start + size));
      start += size;
    }
  }
}

async function expectSame(rng: Rng, replicas: readonly SchemaReplica[], open: (name: string) => SchemaReplica) {
  const rows = await replicas[0]!.rowTexts();
  const schema = replicas[0]!.schemaText();
  for (const replica of replicas) {
    expect([replica.name, replica.parkedCount()]).toEqual([replica.name, 0]);
    expect(await replica.rowTexts()).toEqual(rows);
    expect(replica.schemaText()).toEqual(schema);
  }
  const observer = open(`observer-${rng.int(0, 1e9)}`);
  for (const packet of rng.shuffle(await replicas[0]!.packets())) await observer.services.engine.ingest([packet]);
  expect(observer.parkedCount()).toBe(0);
  expect(await observer.rowTexts()).toEqual(rows);
  expect(observer.schemaText()).toEqual(schema);
  const one = rng.pick(replicas);
  await one.services.engine.rebuildProjection();
  expect(await one.rowTexts()).toEqual(rows);
  await one.reopen();
  expect(await one.rowTexts()).toEqual(rows);
  expect(one.schemaText()).toEqual(schema);
}

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
      `[definitions] history ${i}: rows and schema agree byte for byte`,
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
          console.error(`SEED=${seed} HISTORIES=1`);
          throw error;
        }
      },
      120_000,
    );
  }
});

/** A space where one author's replica has a type with a dataset and an object, known to all. */
async function prepared(replicas: readonly SchemaReplica[], draft: JsonObject) {
  const { types, datasets, objects } = replicas[0]!.services;
  const type = await types.create({ xKey: "note" });
  const defId = await datasets.add(type.id, draft as unknown as Parameters<typeof datasets.add>[1]);
  const object = await objects.create({ types: [type.id] });
  await meet(createRng(1), replicas);
  return { typeId: type.id, defId, objectId: object.id };
}

const STAMPED = {
  name: "notes",
  idRule: "user",
  deleteBy: "author",
  fields: [
    { key: "by", stamp: "creator" },
    { key: "text", kind: "string", mutableBy: "author" },
    { key: "once", kind: "string" },
    { key: "free", kind: "number", mutableBy: "any" },
  ],
};

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
    return tx.append(tx.object(at.objectId)!, body, dataset.rules);
  });
}

describe("rules that depend on the record", () => {
  rule(
    "[definitions] author-only and write-once hold for changes from elsewhere, in every order of arrival",
    async () => {
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
        const contents = async () =>
          (await mallory!.rowTexts()).map((row) => row.replace(/"modifiedAt":\{[^}]*\}/, ""));
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
    },
  );

  rule("[definitions] two who create one record apart: the first in order is its author everywhere", async () => {
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

  rule("[definitions] a definition is pinned against other devices; its display leaves are not", async () => {
    await withReplicas(["alice", "mallory"], async ([alice, mallory], { open }) => {
      const rng = createRng(firstSeed + 2);
      const at = await prepared([alice!, mallory!], STAMPED);
      const { engine, schema, datasets } = mallory!.services;
      const [field] = datasets.list(at.typeId)[0]!.fields;
      const touch = (dataset: string, id: string, op: RecordOp) =>
        engine.write((tx) => {
          const { rules } = schema.datasetForWrite(dataset, tx)!;
          return tx.append(tx.object(at.typeId)!, { dataset, records: [{ id, ops: [op] }] }, rules);
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
  rule(
    "[definitions] the oldest definition has the name, another is marked and is written to under its id",
    async () => {
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
    },
  );
});

describe("definitions that come late, or do not count", () => {
  const write = (replica: SchemaReplica, objectId: string, id: string) =>
    replica.services.records.modify({
      objectId,
      dataset: "notes",
      records: [{ id, upsert: true, ops: [{ type: "$set", path: "free", value: 1 }] }],
    });

  rule(
    "[definitions] records that come before their definition wait durably and are folded when it comes",
    async () => {
      await withReplicas(["writer", "reader"], async ([writer, reader]) => {
        const { types, datasets, objects, engine } = writer!.services;
        const object = await objects.create({});
        const type = await types.create({ xKey: "note" });
        await datasets.add(type.id, STAMPED as unknown as Parameters<typeof datasets.add>[1]);
        await engine.write((tx) => objects.attachType(tx, tx.object(object.id)!, type.id));
        await write(writer!, object.id, "a");
        await write(writer!, object.id, "b");
        const packets = await writer!.packets();
        // The type's changes come from another writer's chain: here the chain is one, so hold back by replaying it whole.
        const typeChanges = new Set(
          engine.store.changes
            .ofObject(engine.object(type.id)!.no)
            .map((change) => Buffer.from(change.id).toString("hex")),
        );
        expect(typeChanges.size).toBeGreaterThan(3);
        for (const packet of packets.toReversed()) await reader!.services.engine.ingest([packet]);
        expect(reader!.parkedCount()).toBe(0);
        expect(await reader!.rowTexts()).toEqual(await writer!.rowTexts());
      });
    },
  );

  rule("[definitions] what another account declared is waited for, over a restart too", async () => {
    await withReplicas(["declarer", "writer", "reader"], async ([declarer, writer, reader], { open }) => {
      const rng = createRng(firstSeed + 3);
      const at = await prepared([declarer!, writer!], STAMPED);
      await write(declarer!, at.objectId, "first");
      await meet(rng, [declarer!, writer!]);
      const known = new Set((await writer!.packets()).map((packet) => Buffer.from(packet).toString("base64")));
      await declarer!.services.datasets.addField(at.typeId, at.defId, {
        key: "late",
        kind: "string",
        mutableBy: "any",
      });
      await meet(rng, [declarer!, writer!]);
      // An object of the writer's own, so that its changes follow nothing of the declarer's but the definition.
      const own = await writer!.services.objects.create({ types: [at.typeId] });
      await write(writer!, own.id, "x");
      await write(writer!, own.id, "y");
      const all = await writer!.packets();
      await reader!.services.engine.ingest(all.filter((packet) => known.has(Buffer.from(packet).toString("base64"))));
      const { engine } = writer!.services;
      const mine = engine.store.changes.ofObject(engine.object(own.id)!.no).map((change) => change.bytes);
      await reader!.services.engine.ingest(mine);
      expect(reader!.parkedCount()).toBe(2);
      await reader!.reopen();
      await reader!.services.engine.ingest(all);
      expect(reader!.parkedCount()).toBe(0);
      await expectSame(rng, [writer!, reader!], open);
    });
  });

  rule(
    "[definitions] a definition whose author loses the right, and whose type is deleted, still folds what was written",
    async () => {
      await withReplicas(["declarer", "writer", "late"], async ([declarer, writer, late], { rights }) => {
        const rng = createRng(firstSeed + 4);
        const at = await prepared([declarer!, writer!], STAMPED);
        await write(declarer!, at.objectId, "first"); // writes the version down, in the declarer's name
        await meet(rng, [declarer!, writer!]);
        const own = await writer!.services.objects.create({ types: [at.typeId] });
        await write(writer!, own.id, "x");
        const record = (replica: SchemaReplica) => {
          const { engine } = replica.services;
          return engine.record(engine.object(own.id)!, "notes", "x");
        };
        expect(record(writer!)).toMatchObject({ free: 1 });
        const declarerKey = createAuthor(1).publicKey;
        rights.deny(declarerKey);
        await writer!.services.engine.recheckVerdicts();
        await writer!.services.engine.rebuildProjection();
        expect(record(writer!)).toMatchObject({ free: 1 });
        await meet(rng, [writer!, late!]);
        expect(late!.parkedCount()).toBe(0);
        expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
        rights.allow(declarerKey);
        await writer!.services.engine.recheckVerdicts();
        await late!.services.engine.recheckVerdicts();
        expect(late!.schemaText()).toEqual(writer!.schemaText());
        await deleteType(writer!, at.typeId);
        await meet(rng, [writer!, late!]);
        expect(late!.services.types.list().filter((type) => !type.builtIn)).toEqual([]);
        expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
        expect(record(late!)).toMatchObject({ free: 1 });
      });
    },
  );

  rule("[definitions] a type deleted before its definitions arrive: records under them fold all the same", async () => {
    await withReplicas(["writer", "late"], async ([writer, late]) => {
      const at = await prepared([writer!], STAMPED);
      await write(writer!, at.objectId, "x");
      await deleteType(writer!, at.typeId);
      for (const packet of (await writer!.packets()).toReversed()) await late!.services.engine.ingest([packet]);
      expect(late!.parkedCount()).toBe(0);
      expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
    });
  });

  rule("[definitions] the content of a deleted type is dropped after a while, but for its definitions", async () => {
    await withReplicas(["writer", "late"], async ([writer, late], { wait }) => {
      const at = await prepared([writer!], STAMPED);
      await write(writer!, at.objectId, "x");
      const { engine } = writer!.services;
      await deleteType(writer!, at.typeId);
      await engine.tearDownDeleted();
      let purged = 0;
      for (let day = 0; day * DAY_MS < DELETED_GRACE_MS; day++) {
        wait(DAY_MS);
        purged += await engine.purgeDeleted();
      }
      expect(purged).toBeGreaterThan(0);
      const kept = engine.store.changes.wholeOf(engine.object(at.typeId)!.no, { lamport: -1, no: 0 }, 100);
      expect([...new Set(kept.map(({ datasetNo }) => engine.store.datasetName(datasetNo)))]).toEqual([
        "definition_versions",
      ]);
      await late!.services.engine.ingest(await writer!.packets());
      expect(late!.parkedCount()).toBe(0);
      expect(late!.services.engine.store.unopened.count()).toBe(0);
      expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
      await engine.rebuildProjection();
      expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
      expect(late!.schemaText()).toEqual(writer!.schemaText());
    });
  });

  rule(
    "[definitions] a change that names no definition of its dataset has no effect and holds nothing up",
    async () => {
      await withReplicas(["writer", "reader"], async ([writer, reader]) => {
        const at = await prepared([writer!, reader!], STAMPED);
        await write(writer!, at.objectId, "x");
        const { engine, schema } = writer!.services;
        const { definition } = await engine.write((tx) => schema.datasetForWrite("notes", tx)!);
        for (const [dataset, name] of [
          ["notes", "nonsense"],
          ["other", definition!],
        ] as const) {
          const answer = schema.registry.rulesFor(dataset, name);
          if (!("rules" in answer)) throw new Error("it should fold, without effect");
          const ops: RecordOp[] = [{ type: "$set", path: "free", value: 2 }];
          const appended = await engine.write((tx) =>
            tx.append(
              tx.object(at.objectId)!,
              { dataset, definition: name, records: [{ id: "x", upsert: true, ops }] },
              answer.rules,
            ),
          );
          expect(appended.effective).toBe(false);
        }
        await meet(createRng(5), [writer!, reader!]);
        expect(reader!.parkedCount()).toBe(0);
        expect(await reader!.rowTexts()).toEqual(await writer!.rowTexts());
      });
    },
  );
});
