/**
 * Random histories over replicas that meet now and then. What each replica's records were when it wrote is the view at
 * the version it wrote, on every replica, whatever else came in between; and diffs lead from one version to another.
 */
import { describe, expect } from "bun:test";
import type { HistoryChange } from "../../src/protocol/history.ts";
import type { JsonObject } from "../../src/protocol/json.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import {
  applied,
  indexAnew,
  leaves,
  listAll,
  recordsNow,
  SHOWN,
  useHistory,
  viewOf,
  type World,
} from "../support/worlds/history-world.ts";
import { createAuthor } from "../support/worlds/schema-replica.ts";

/** Held against every history, in this order. Each is named as its test is. */
const RULES: Readonly<Record<string, (world: World) => Promise<void>>> = {
  async "[HIST-1] every replica lists the same, by pages of any size, and filters choose from it"({
    rng,
    replicas,
    objectId,
    written,
  }) {
    const [first] = replicas;
    const all = await listAll(first!, objectId, {});
    for (const replica of replicas) expect(await listAll(replica, objectId, { limit: rng.int(1, 9) })).toEqual(all);
    const quiet = new Set<string>();
    for (const { version } of written) if (!all.some((change) => change.version === version)) quiet.add(version);
    expect(all.length).toBe(written.length - quiet.size + 1); // and the one that made the object
    for (const { version, author, traceIds } of written) {
      if (quiet.has(version)) continue;
      expect(all.find((change) => change.version === version)).toMatchObject({ author, groupSize: 1 });
      expect(all.find((change) => change.version === version)!.traceIds ?? []).toEqual(traceIds);
    }
    const isAbout = (change: HistoryChange, dataset: string, id: string) =>
      change.touched!.some((touch) => touch.dataset === dataset && touch.recordId === id);
    for (const dataset of ["items", "auto", "objects", "quiet", "none"]) {
      const those = all.filter((change) => change.dataset === dataset);
      expect(await listAll(first!, objectId, { dataset, limit: 3 })).toEqual(those);
    }
    for (const id of ["r0", "r3", "r9"]) {
      const those = all.filter((change) => isAbout(change, "items", id));
      expect(await listAll(first!, objectId, { dataset: "items", recordId: id, limit: 2 })).toEqual(those);
      const mine = those.filter((change) => change.author === first!.author && change.traceIds?.includes("t1"));
      const query = { dataset: "items", recordId: id, author: first!.author, traceId: "t1" };
      expect(await listAll(first!, objectId, query)).toEqual(mine);
    }
    for (const traceId of ["t0", "t3", "t9"]) {
      const those = all.filter((change) => change.traceIds?.includes(traceId));
      expect(await listAll(first!, objectId, { traceId, limit: 1 })).toEqual(those);
    }
    const theirs = all.filter((change) => change.author !== first!.author);
    const author = replicas[1]!.author;
    expect(await listAll(first!, objectId, { author, limit: 4 })).toEqual(theirs);
  },

  async "[HIST-1] groups hold every change once, in its place, and their sizes add up"({ rng, replicas, objectId }) {
    const all = await listAll(replicas[0]!, objectId, {});
    for (const coalesceWindow of [1, 5, 86_400]) {
      const query = { coalesce: true, coalesceWindow, limit: rng.int(1, 7) };
      const groups = await listAll(replicas[0]!, objectId, query);
      expect(await listAll(replicas[1]!, objectId, query)).toEqual(groups);
      let at = 0;
      for (const group of groups) {
        const members = all.slice(at, at + group.groupSize);
        at += group.groupSize;
        expect(group.version).toBe(members[0]!.version);
        expect(new Set(members.map((member) => member.author))).toEqual(new Set([group.author]));
        expect(group.timestamp - members.at(-1)!.timestamp).toBeLessThanOrEqual(coalesceWindow);
        const touched = new Set(
          members.flatMap((member) => member.touched!.map((touch) => `${touch.dataset} ${touch.recordId}`)),
        );
        expect(new Set(group.touched!.map((touch) => `${touch.dataset} ${touch.recordId}`))).toEqual(touched);
      }
      expect(at).toBe(all.length);
    }
  },

  async "[HIST-3] a diff leads from its base, or from what the version was written upon, to the version"({
    rng,
    replicas,
    objectId,
    written,
  }) {
    const replica = rng.pick(replicas);
    for (const { version, records, before } of written) {
      const effect = await replica.history.diff(objectId, { version });
      expect(applied(leaves(before), effect)).toEqual(leaves(records));
      const other = rng.pick(written);
      const between = await replica.history.diff(objectId, { version, base: other.version });
      expect(applied(leaves(other.records), between)).toEqual(leaves(records));
    }
  },

  async "[HIST-2] the view at a version is what its writer had when it wrote it, on every replica"({
    rng,
    replicas,
    objectId,
    written,
  }) {
    if (rng.chance(0.5)) await replicas[1]!.engine.rebuildProjection();
    if (rng.chance(0.5)) await indexAnew(replicas[0]!);
    for (const { version, records } of written) {
      const replica = rng.pick(replicas);
      expect(await viewOf(replica, objectId, version)).toEqual(records);
      const dataset = rng.pick(SHOWN);
      const id = rng.pick([...Object.keys(records[dataset] ?? {}), "r0"]);
      const record = records[dataset]?.[id];
      expect(await replica.history.recordView(objectId, version, dataset, id)).toEqual({
        version,
        dataset,
        recordId: id,
        exists: record !== undefined,
        ...(record && "_deletedAt" in record ? { deleted: true } : {}),
        ...(record ? { record: record as JsonObject & { id: string } } : {}),
      });
    }
  },
};

/** Held against some. */
const RIGHTS: typeof RULES = {
  async "[HIST-1] what does not count is part of no view and of no list, and is again once it counts"({
    replicas,
    rights,
    objectId,
    written,
  }) {
    const [first, second] = replicas;
    const theirs = createAuthor(2).publicKey;
    const all = await listAll(first!, objectId, {});
    rights.deny(theirs);
    await first!.engine.recheckVerdicts();
    const left = await listAll(first!, objectId, {});
    expect(left).toEqual(all.filter((change) => change.author !== second!.author));
    const merge = await first!.write(objectId, "items", [
      { id: "r0", upsert: true, ops: [{ type: "$inc", path: "n", value: 1 }] },
    ]);
    expect(await viewOf(first!, objectId, merge)).toEqual(recordsNow(first!, objectId));
    rights.allow(theirs);
    await first!.engine.recheckVerdicts();
    expect(await viewOf(first!, objectId, merge)).toEqual(recordsNow(first!, objectId));
    expect((await listAll(first!, objectId, {})).slice(1)).toEqual(all);
    for (const { version, records } of written) expect(await viewOf(first!, objectId, version)).toEqual(records);
  },
};

const HISTORIES = rounds(12);

for (let i = 0; i < HISTORIES; i++)
  describe(`history ${i}`, () => {
    const history = useHistory(`history ${i}`);
    for (const [title, check] of Object.entries(i < 10 ? { ...RULES, ...RIGHTS } : RULES))
      rule(title, () => check(history()), 120_000);
  });
