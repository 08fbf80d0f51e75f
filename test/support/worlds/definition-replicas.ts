/** Replicas with types and datasets that meet, and what has to be the same on all of them. */
import { expect } from "bun:test";
import type { JsonObject } from "../../../src/protocol/json.ts";
import { createRng, type Rng, runSeed } from "../rng.ts";
import { scratchDir } from "../scratch.ts";
import { createRights } from "./open-engine.ts";
import { createAuthor, openSchemaReplica, type SchemaReplica } from "./schema-replica.ts";

export const firstSeed = runSeed("definitions");

/** Replicas of one space, each with its own account, on one clock. */
export async function withReplicas(
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
export type Rights = ReturnType<typeof createRights>;

/** Everybody gets what everybody has, shuffled, in portions. */
export async function meet(rng: Rng, replicas: readonly SchemaReplica[]): Promise<void> {
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

export async function expectSame(rng: Rng, replicas: readonly SchemaReplica[], open: (name: string) => SchemaReplica) {
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

/** A space where one author's replica has a type with a dataset and an object, known to all. */
export async function prepared(replicas: readonly SchemaReplica[], draft: JsonObject) {
  const { types, datasets, objects } = replicas[0]!.services;
  const type = await types.create({ xKey: "note" });
  const defId = await datasets.add(type.id, draft as unknown as Parameters<typeof datasets.add>[1]);
  const object = await objects.create({ types: [type.id] });
  await meet(createRng(1), replicas);
  return { typeId: type.id, defId, objectId: object.id };
}

export const STAMPED = {
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
