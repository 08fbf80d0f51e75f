/** Replicas of one world that meet, and the slow fold that their rows have to equal. */
import { expect } from "bun:test";
import { type Doc, equal, type FoldedState, type Value } from "../oracle/reference-fold.ts";
import { createRng } from "../rng.ts";
import { heal } from "./history.ts";
import { openWorld } from "./replica.ts";
import type { Packet, Replica, World } from "./replica-port.ts";

export function expectFold(rowTexts: readonly string[], state: FoldedState): void {
  const live: [string, Doc][] = [];
  const gone: string[] = [];
  for (const text of rowTexts) {
    const { id, _ver, _traces, _deletedAt, ...fields } = JSON.parse(text) as Doc;
    expect(_ver).toBeDefined();
    expect(_traces).toBeUndefined();
    if (_deletedAt === undefined) live.push([id as string, fields]);
    else {
      expect([id, Object.keys(fields)]).toEqual([id!, []]); // a tombstone keeps only id, _deletedAt, _ver
      gone.push(id as string);
    }
  }
  expect(gone.sort()).toEqual([...state.tombstones].sort());
  expect(live.map(([id]) => id).sort()).toEqual([...state.docs.keys()].sort());
  for (const [id, fields] of live) {
    if (!equal(fields as Value, state.docs.get(id)!)) expect([id, fields]).toEqual([id, state.docs.get(id)!]);
  }
}

export async function open(dir: string, checkpointEveryOps?: number, foldSliceMs?: number): Promise<World> {
  let now = Date.UTC(2026, 0, 31);
  return openWorld({
    dir,
    now: () => (now += 7),
    ...(checkpointEveryOps ? { checkpointEveryOps } : {}),
    ...(foldSliceMs === undefined ? {} : { foldSliceMs }),
  });
}

export async function createReplicas(world: World, count: number): Promise<Replica[]> {
  const replicas: Replica[] = [];
  for (let i = 0; i < count; i++) replicas.push(await world.createReplica(`replica-${i}`));
  return replicas;
}

/** Gives every replica what the others hold, so that all know the space, the object and its dataset. */
export async function meet(replicas: readonly Replica[]): Promise<void> {
  await heal(createRng(1), replicas);
}

/** A few rows that all of the given replicas hold. */
export async function writeFirstRows(replicas: readonly Replica[]): Promise<void> {
  await meet(replicas);
  for (const [index, replica] of replicas.entries()) {
    await replica.write([{ id: `r${index}`, upsert: true, ops: [{ type: "$set", path: "n", value: index }] }]);
    await replica.write([{ id: "shared", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] }]);
  }
  await meet(replicas);
}

/** What `from` holds and `to` does not, parents first. */
export async function lacking(from: Replica, to: Replica): Promise<Packet[]> {
  const held = new Set((await to.packets()).map((packet) => packet.id));
  return (await from.packets()).filter((packet) => !held.has(packet.id));
}
