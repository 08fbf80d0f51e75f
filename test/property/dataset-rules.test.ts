/**
 * The rules of every built-in dataset, on replicas of several accounts that hear of each other's changes in any order: all come to
 * the same records. Rules are evaluated on every device, so one that looked at what has come so far would tell devices apart.
 */
import { describe, expect, test } from "bun:test";
import type { RecordChange, RecordOp } from "../../src/change/codec/change-body.ts";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import type { ChangeEngine, WriteTx } from "../../src/change/space-engine.ts";
import { accountIdOf } from "../../src/crypto/account-id.ts";
import { OBJECT_RULES } from "../../src/domain/object/object-rules.ts";
import { DEFINITION_RULES } from "../../src/domain/type/definition-rules.ts";
import { spaceDatasets, techDatasets } from "../../src/engine/built-in-datasets.ts";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { useSeededRandomness } from "../support/seeded-randomness.ts";
import { createAccount } from "../support/worlds/acl-world.ts";
import { DATASET_SAMPLES, type DatasetSample } from "../support/worlds/dataset-samples.ts";
import { createOpenGenesis, deliver, type OpenEngine, openEngine } from "../support/worlds/open-engine.ts";

const ROUNDS = rounds(2);
const STEPS = 40;
const firstSeed = runSeed("dataset rules");
const beginAnew = useSeededRandomness();

const DECLARED = new Set(DEFINITION_RULES.map(({ name }) => name));
const RULES = new Map(
  [...spaceDatasets().values(), ...techDatasets().values()]
    .filter(({ rules }) => !DECLARED.has(rules.name))
    .map(({ rules }) => [rules.name, rules]),
);

interface Replica {
  readonly engine: OpenEngine;
  readonly author: string;
}

test("every built-in dataset has a sample of what its records look like", () => {
  expect(Object.keys(DATASET_SAMPLES).sort()).toEqual([...RULES.keys()].sort());
});

describe.each([...RULES.values()].map((rules) => [rules.name, rules] as const))("%s", (name, rules) => {
  for (let round = 0; round < ROUNDS; round++)
    rule(`[CHANGE-2] round ${round}: in whatever order changes come, the records are the same`, () =>
      runRound((firstSeed + round) >>> 0, rules, DATASET_SAMPLES[name]!),
    );
});

async function runRound(seed: number, rules: DatasetRules, sample: DatasetSample): Promise<void> {
  const rng = createRng(seed).fork(rules.name);
  beginAnew(seed);
  using dir = scratchDir("svc-rules");
  const space = createOpenGenesis();
  let now = 1_760_000_000_000;
  const open = (name: string): Replica => {
    const account = createAccount();
    const engine = openEngine(dir.path, name, space, account, [...new Set([OBJECT_RULES, rules])], () => now++);
    return { engine, author: accountIdOf(account.signer.publicKey) };
  };
  const replicas = ["a", "b", "c"].map(open);
  const observer = open("observer");
  try {
    const objectId = await replicas[0]!.engine.write((tx) => newObject(tx));
    for (const other of replicas.slice(1)) await deliver(replicas[0]!.engine, other.engine, rng.shuffle);
    let effective = 0;
    for (let step = 0; step < STEPS; step++) {
      const replica = rng.pick(replicas);
      if (await writeOne(rng, replica, rules, sample, objectId)) effective++;
      const [from, to] = rng.shuffle(replicas);
      if (rng.chance(0.2)) await deliver(from!.engine, to!.engine, rng.shuffle);
    }
    for (let round = 0; round < 2; round++)
      for (const from of replicas)
        for (const to of replicas) if (from !== to) await deliver(from.engine, to.engine, rng.shuffle);
    await deliver(replicas[1]!.engine, observer.engine, rng.shuffle);

    const shown = [...replicas, observer].map(({ engine }) => recordsOf(engine, rules, sample, objectId));
    for (const records of shown) expect(records).toEqual(shown[0]!);
    expect(effective).toBeGreaterThan(0);
  } catch (error) {
    console.error(`SEED=${seed} ROUNDS=1, dataset ${rules.name}`);
    throw error;
  } finally {
    for (const { engine } of [...replicas, observer]) await engine.close();
  }
}

function newObject(tx: WriteTx): string {
  const object = tx.createObject();
  const ops: RecordOp[] = [{ type: "$set", path: "svc.name", value: "first" }];
  tx.append(object, { dataset: OBJECT_RULES.name, records: [{ id: "", upsert: true, ops }] }, OBJECT_RULES);
  return object.idText;
}

/** One change of a few records, some of which the rules refuse. Answers whether anything of it took effect. */
async function writeOne(
  rng: Rng,
  { engine, author }: Replica,
  rules: DatasetRules,
  sample: DatasetSample,
  objectId: string,
): Promise<boolean> {
  const filled = <T extends Json>(value: T): T =>
    JSON.parse(JSON.stringify(value).replaceAll("WRITER", author).replaceAll("OBJECT", objectId)) as T;
  const appended = await engine.write((tx) => {
    const { derivedType } = sample;
    const holder = derivedType === undefined ? tx.object(objectId)! : tx.ensureDerived(derivedType, objectId);
    const known = engine.records(holder, rules.name).map(({ id }) => id as string);
    const given = sample.idsAreWriters ? [author, "nobody"] : (sample.ids ?? []);
    const records = Array.from({ length: rng.int(1, 3) }, (): RecordChange => {
      if (rules.idRule === "object") return { id: "", upsert: true, ops: someOps(rng, sample, filled) };
      const ids = [...known, ...given];
      if (sample.created.length > 0 && (ids.length === 0 || rng.chance(0.4)))
        return {
          id: rules.idRule === "auto" ? "" : rng.pick(given),
          upsert: true,
          ops: [{ type: "$set", path: "", value: filled(rng.pick(sample.created)) }],
        };
      const id = rng.pick(ids);
      return rng.chance(0.05) ? { id, delete: true, ops: [] } : { id, ops: someOps(rng, sample, filled) };
    });
    return tx.appendPartly(holder, { dataset: rules.name, records: distinct(records) }, rules);
  });
  return appended.effective;
}

/** A body names a record once. */
function distinct(records: readonly RecordChange[]): RecordChange[] {
  const seen = new Set<string>();
  return records.filter(({ id }) => id === "" || (!seen.has(id) && seen.add(id)));
}

function someOps(rng: Rng, { set }: DatasetSample, filled: <T extends Json>(value: T) => T): RecordOp[] {
  return Array.from({ length: rng.int(1, 2) }, (): RecordOp => {
    const path = rng.pick(Object.keys(set));
    const value = rng.pick(set[path]!);
    const kind = rng.pick(["$set", "$set", "$set", "$unset", "$addToSet", "$inc"] as const);
    if (kind === "$unset") return { type: kind, path: filled(path) };
    return { type: kind, path: filled(path), value: kind === "$inc" ? 1 : filled(value) };
  });
}

/** The live records, and what became of those that have ids of their own. */
function recordsOf(
  engine: ChangeEngine,
  { name }: DatasetRules,
  { derivedType, ids = [] }: DatasetSample,
  objectId: string,
): { live: readonly JsonObject[]; states: readonly string[] } {
  const holder = engine.object(derivedType === undefined ? objectId : engine.derivedId(derivedType, objectId))!;
  const live = engine.records(holder, name).sort((a, b) => (String(a["id"]) < String(b["id"]) ? -1 : 1));
  return { live, states: ids.map((id) => engine.recordState(holder, name, id)) };
}
