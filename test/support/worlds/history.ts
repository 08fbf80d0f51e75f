/** Random concurrent histories over a few replicas: what each writes, what reaches whom, in which order. */
import type { Value } from "../oracle/reference-fold.ts";
import type { Rng } from "../rng.ts";
import type { Packet, Replica, WriteOp, WriteRecord } from "./replica-port.ts";

export interface HistoryPlan {
  replicas: number;
  steps: number;
  /** Few records make many conflicts. */
  records: number;
  /** The engine's own is 256; with fewer ops between them every record passes some. */
  checkpointEveryOps: number;
}

/** One history in ten is long and about one or two records, so that their logs pass the engine's own checkpoints. */
export function planHistory(rng: Rng): HistoryPlan {
  if (rng.chance(0.1))
    return { replicas: rng.int(2, 3), steps: rng.int(200, 500), records: rng.int(1, 2), checkpointEveryOps: 256 };
  const checkpointEveryOps = rng.pick([1, 2, 3, 7, 256]);
  return { replicas: rng.int(2, 4), steps: rng.int(10, 45), records: rng.int(1, 6), checkpointEveryOps };
}

/**
 * One op. Paths keep to their kind of value (`s` text, `n` number, `t` array, `o` object), except `f`, which is set to
 * text, numbers and arrays alike, so that `$inc`, `$addToSet` and `$pull` meet what does not fit them. Some values are not
 * what they are once they were stored (-0, a lone surrogate).
 */
function randomOp(rng: Rng): WriteOp {
  const element = (): Value => rng.pick<Value>(["a", "b", "c", 1, 2, true, { k: 1 }, 0, -0, [-0], { k: -0 }, "\ud800"]);
  return rng.pick<() => WriteOp>([
    () => ({ type: "$set", path: "s", value: rng.pick(["x", "y", "z", "", "\udc00\ud800", "\ufffd"]) }),
    () => ({ type: "$set", path: "n", value: rng.pick([rng.int(-9, 9), -0]) }),
    () => ({ type: "$inc", path: "n", value: rng.int(-5, 5) }),
    () => ({ type: "$inc", path: "n", value: rng.pick([rng.int(1, 3), -0]) }),
    () => ({ type: "$unset", path: rng.pick(["s", "n", "t", "o", "f"]) }),
    () => ({ type: "$addToSet", path: "t", value: element() }),
    () => ({ type: "$addToSet", path: "t", value: element() }),
    () => ({ type: "$pull", path: "t", value: element() }),
    () => ({ type: "$set", path: "t", value: [element(), element()] }),
    () => ({ type: "$set", path: `o.${rng.pick(["x", "y"])}`, value: rng.int(0, 9) }),
    () => ({ type: "$set", path: "o", value: { [rng.pick(["x", "y", "z", "\ud800"])]: rng.int(0, 9) } }),
    () => ({ type: "$unset", path: `o.${rng.pick(["x", "y"])}` }),
    () => ({ type: "$inc", path: "o.count", value: 1 }),
    () => ({ type: "$addToSet", path: "o.tags", value: element() }),
    () => ({ type: "$set", path: "", value: { s: rng.pick(["m", "k"]), "o.y": rng.int(0, 9), n: rng.int(0, 9) } }),
    () => ({ type: "$unset", path: "", value: { s: 1, "o.x": 1 } }),
    () => ({ type: "$set", path: "f", value: rng.pick<Value>(["text", 5, ["a"]]) }),
    () => ({ type: "$inc", path: "f", value: 1 }),
    () => ({ type: "$addToSet", path: "f", value: "a" }),
    () => ({ type: "$pull", path: "f", value: "a" }),
  ])();
}

/** Stored as texts these would be one id. */
const ILL_FORMED_IDS = ["r\ud800", "r\udfff"];

export function randomRecords(rng: Rng, count: number): WriteRecord[] {
  return Array.from({ length: rng.int(1, 3) }, () => ({
    id: rng.chance(0.02) ? rng.pick(ILL_FORMED_IDS) : `r${rng.int(0, count - 1)}`,
    upsert: rng.chance(0.7),
    ops: Array.from({ length: rng.int(1, 3) }, () => randomOp(rng)),
  }));
}

/** One random step: a write, a deletion, or a delivery of a part of what one replica holds to another. */
export async function takeStep(
  rng: Rng,
  replicas: readonly Replica[],
  plan: Pick<HistoryPlan, "steps" | "records">,
): Promise<string> {
  const actor = rng.pick(replicas);
  if (rng.chance(0.55)) {
    if (rng.chance(0.06 / Math.max(1, plan.steps / 40))) {
      const id = `r${rng.int(0, plan.records - 1)}`;
      await actor.deleteRecords([id]);
      return `${actor.name} deletes ${id}`;
    }
    const records = randomRecords(rng, plan.records);
    await actor.write(records);
    return `${actor.name} writes ${JSON.stringify(records)}`;
  }
  const other = rng.pick(replicas.filter((replica) => replica !== actor));
  const delivered = mangle(rng, await actor.packets());
  for (const batch of batches(rng, delivered)) await other.ingest(batch);
  return `${actor.name} → ${other.name}: ${delivered.length} packets`;
}

/** Drops some, repeats some, and disturbs the order: whatever a bad network would do to a delivery. */
function mangle(rng: Rng, packets: readonly Packet[]): Packet[] {
  const dropRate = rng.pick([0, 0, 0.1, 0.5]);
  const kept = packets.filter(() => !rng.chance(dropRate));
  const repeated = kept.flatMap((packet) => (rng.chance(0.1) ? [packet, packet] : [packet]));
  return rng.chance(0.6) ? rng.shuffle(repeated) : repeated;
}

export function batches<T>(rng: Rng, items: readonly T[]): T[][] {
  const result: T[][] = [];
  for (let start = 0; start < items.length; ) {
    const size = rng.pick([1, 2, 7, 50]);
    result.push(items.slice(start, start + size));
    start += size;
  }
  return result;
}

/** Everybody gets everything, in random order, until nobody learns anything new. */
export async function heal(rng: Rng, replicas: readonly Replica[]): Promise<void> {
  for (let round = 0; round < replicas.length + 1; round++) {
    const all = new Map<string, Packet>();
    for (const replica of replicas) for (const packet of await replica.packets()) all.set(packet.id, packet);
    let news = 0;
    for (const replica of replicas) {
      const held = new Set((await replica.packets()).map((packet) => packet.id));
      const lacking = rng.shuffle([...all.values()].filter((packet) => !held.has(packet.id)));
      news += lacking.length;
      for (const batch of batches(rng, lacking)) await replica.ingest(batch);
    }
    if (news === 0) return;
  }
  throw new Error("the replicas still lack packets after everybody was given everything");
}
