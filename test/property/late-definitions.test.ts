/** Definitions that come after the records that need them, or do not count: every replica ends with the same. */
import { describe, expect } from "bun:test";
import type { RecordOp } from "../../src/change/codec/change-body.ts";
import { DELETED_GRACE_MS } from "../../src/change/fold/object-deletions.ts";
import { createRng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";
import { expectSame, firstSeed, meet, prepared, STAMPED, withReplicas } from "../support/worlds/definition-replicas.ts";
import { createAuthor, type SchemaReplica } from "../support/worlds/schema-replica.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** No route deletes a type; a peer that is laxer may. */
async function deleteType({ services: { engine } }: SchemaReplica, typeId: string): Promise<void> {
  await engine.write((tx) => tx.deleteObject(tx.object(typeId)!));
}

describe("definitions that come late, or do not count", () => {
  const write = (replica: SchemaReplica, objectId: string, id: string) =>
    replica.services.records.modify({
      objectId,
      dataset: "notes",
      records: [{ id, upsert: true, ops: [{ type: "$set", path: "free", value: 1 }] }],
    });

  rule("[CHANGE-5] records that come before their definition wait durably and are folded when it comes", async () => {
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
  });

  rule("[CHANGE-5] what another account declared is waited for, over a restart too", async () => {
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
    "[TYPE-6] a definition whose author loses the right, and whose type is deleted, still folds what was written",
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

  rule("[TYPE-6] a type deleted before its definitions arrive: records under them fold all the same", async () => {
    await withReplicas(["writer", "late"], async ([writer, late]) => {
      const at = await prepared([writer!], STAMPED);
      await write(writer!, at.objectId, "x");
      await deleteType(writer!, at.typeId);
      for (const packet of (await writer!.packets()).toReversed()) await late!.services.engine.ingest([packet]);
      expect(late!.parkedCount()).toBe(0);
      expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
    });
  });

  rule("[CHANGE-8] the content of a deleted type is dropped after a while, but for its definitions", async () => {
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
      expect(late!.services.engine.store.pendingBodies.count()).toBe(0);
      expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
      await engine.rebuildProjection();
      expect(await late!.rowTexts()).toEqual(await writer!.rowTexts());
      expect(late!.schemaText()).toEqual(writer!.schemaText());
    });
  });

  rule("[CHANGE-4] a change that names no definition of its dataset has no effect and holds nothing up", async () => {
    await withReplicas(["writer", "reader"], async ([writer, reader]) => {
      const at = await prepared([writer!, reader!], STAMPED);
      await write(writer!, at.objectId, "x");
      const { engine, schema, registry } = writer!.services;
      const { definition } = await engine.write((tx) => schema.datasetForWrite("notes", tx)!);
      for (const [dataset, name] of [
        ["notes", "nonsense"],
        ["other", definition!],
      ] as const) {
        const answer = registry.rulesFor(dataset, name);
        if (!("rules" in answer)) throw new Error("it should fold, without effect");
        const ops: RecordOp[] = [{ type: "$set", path: "free", value: 2 }];
        const appended = await engine.write((tx) =>
          tx.appendPartly(
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
  });
});
