/**
 * Random writes while subscribers apply the frames they take, now and then, to their snapshots. After each pause every
 * window must equal a fresh query. Subscribers object to frames that do not fit what they hold.
 */
import { afterAll, expect, test } from "bun:test";
import type { RecordChange, RecordOp } from "../../src/change/codec/change-body.ts";
import type { LiveBody } from "../../src/domain/live/live-request.ts";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { ALWAYS_ASIDE, type LiveSpace, openLiveSpace, watch } from "../support/worlds/live-space.ts";

const ROUNDS = 7;
const WRITES = 40;
const WATCHERS = 24;

/** Seeds that once failed stay here. */
const SEEDS = [1, 2, 3, 4, runSeed("live windows")];

const spaces: LiveSpace[] = [];
afterAll(async () => {
  for (const space of spaces) await space.close();
});

const OWNERS = ["ann", "bob", "cy", "dee", "eve", "fay"];
const STATES = ["open", "done", "late"];

function randomField(rng: Rng): [path: string, value: Json] {
  switch (rng.int(0, 6)) {
    case 0:
      return ["owner", rng.pick(OWNERS)];
    case 1:
      return ["state", rng.pick([...STATES, null])];
    case 2:
      return ["tags", rng.shuffle(["x", "y", "z", 1]).slice(0, rng.int(0, 4))];
    case 3:
      return [
        "nest.at",
        rng.chance(0.5) ? { $date: new Date(rng.int(0, 9) * 86_400_000).toISOString() } : rng.int(0, 5),
      ];
    case 4:
      return ["n", rng.pick([null, true, "9", 2.5, rng.int(-5, 20)])];
    default:
      return ["n", rng.int(0, 30)];
  }
}

function randomFilter(rng: Rng, depth = 1): JsonObject {
  const pick = rng.int(0, depth > 0 ? 12 : 9);
  switch (pick) {
    case 0:
      return {};
    case 1:
      return { owner: rng.pick(OWNERS) };
    case 2:
      return { state: { $in: rng.shuffle([...STATES, null]).slice(0, rng.int(0, 3)) } };
    case 3:
      return { n: { [rng.pick(["$gt", "$lte"])]: rng.int(0, 25) } };
    case 4:
      return { tags: rng.pick(["x", "y", 1]) };
    case 5:
      return { [rng.pick(["state", "nest.at", "n"])]: rng.pick([null, { $exists: true }, { $ne: 3 }]) };
    case 6:
      return { owner: { $regex: "^[a-c]" } };
    case 7:
      return { "nest.at": { $date: new Date(rng.int(0, 9) * 86_400_000).toISOString() } };
    case 8:
      return { owner: rng.pick(OWNERS), state: rng.pick(STATES) };
    case 9:
      return { unread: rng.pick([true, null]) };
    case 10:
      return { $or: [randomFilter(rng, 0), randomFilter(rng, 0)] };
    case 11:
      return { $and: [randomFilter(rng, 0), { n: { $type: "number" } }] };
    default:
      return { $nor: [randomFilter(rng, 0)] };
  }
}

function randomBody(rng: Rng): LiveBody {
  const sort = rng.pick([["n"], ["-n"], ["owner", "-n"], ["tags"], ["-nest.at", "state"], ["id"], ["-_ver.id"]]);
  const filter = randomFilter(rng);
  const budget = { mailboxCapacity: 1_000_000, driftBudgetPercent: 100 };
  if (rng.chance(0.25)) return { filter, ...budget, ...(rng.chance(0.3) ? { offset: rng.int(1, 6), sort } : {}) };
  return { filter, sort, limit: rng.int(1, 14), ...(rng.chance(0.5) ? { offset: rng.int(0, 8) } : {}), ...budget };
}

function randomOps(rng: Rng): RecordOp[] {
  return Array.from({ length: rng.int(1, 3) }, (): RecordOp => {
    const [path, value] = randomField(rng);
    switch (rng.int(0, 7)) {
      case 0:
        return { type: "$unset", path };
      case 1:
        return { type: "$inc", path: "n", value: rng.int(-4, 4) };
      case 2:
        return { type: "$addToSet", path: "tags", value: rng.pick(["x", "y", "w"]) };
      case 3:
        return { type: "$pull", path: "tags", value: rng.pick(["x", "z"]) };
      case 4:
        return { type: "$set", path: "", value: Object.fromEntries([randomField(rng), randomField(rng)]) };
      default:
        return { type: "$set", path, value };
    }
  });
}

/** Ids are drawn from a range that moves on, since deleted ones never return. */
function randomRecords(rng: Rng, writes: number): RecordChange[] {
  const first = Math.floor(writes / 3);
  const id = () => `r${rng.int(first, first + 90)}`;
  if (rng.chance(0.07)) return Array.from({ length: rng.int(4, 25) }, () => ({ id: id(), ops: [], delete: true }));
  if (rng.chance(0.08)) return [{ id: id(), ops: [], delete: true }];
  const count = rng.chance(0.25) ? rng.int(2, 20) : 1;
  return Array.from({ length: count }, () => ({ id: id(), upsert: rng.chance(0.8), ops: randomOps(rng) }));
}

async function write(space: LiveSpace, rng: Rng, writes: number): Promise<void> {
  if (rng.chance(0.06)) {
    const known = space.query(space.collection, {}).map((doc) => doc["id"] as string);
    if (known.length > 0) await space.setLocal(rng.pick(known), { unread: rng.pick([true, false, undefined]) });
    return;
  }
  await space.write(randomRecords(rng, writes));
}

/** How much of one space another has been given. */
const given = new Map<LiveSpace, number>();

async function exchange(from: LiveSpace, to: LiveSpace): Promise<void> {
  const changes = from.allChanges(given.get(from) ?? 0);
  given.set(from, (given.get(from) ?? 0) + changes.length);
  await to.engine.ingest(changes);
}

for (const seed of SEEDS) {
  for (const aside of [false, true]) {
    test(`[LIVE-2] windows equal fresh queries, seed ${seed}${aside ? ", every read aside" : ""}`, async () => {
      const rng = createRng(seed);
      // Little is held in reserve, so that windows are often short.
      const reserve = { min: 0, max: 2, wide: 2 };
      const space = await openLiveSpace(aside ? { readTimes: ALWAYS_ASIDE, reserve } : { reserve });
      const other = await openLiveSpace({ replicaOf: space });
      spaces.push(space, other);
      const rounds = rng.fork("other device");
      const watchers: { body: LiveBody; watcher: Awaited<ReturnType<typeof watch>> }[] = [];
      let writes = 0;
      let entries = 0;
      const join = async () => {
        const body = randomBody(rng);
        watchers.push({ body, watcher: await watch(space, body) });
      };
      while (watchers.length < WATCHERS / 2) await join();
      for (let round = 0; round < ROUNDS; round++) {
        for (let n = 0; n < WRITES; n++) {
          if (aside && rng.chance(0.3)) space.hold(rng.chance(0.6));
          const together = rng.chance(0.2) ? rng.int(2, 5) : 1;
          await Promise.all(Array.from({ length: together }, () => write(space, rng, writes++)));
          // Another device writes the same records; its changes come late and sort among ours.
          if (rounds.chance(0.3)) await other.write(randomRecords(rounds, writes));
          if (rounds.chance(0.08)) await exchange(other, space);
          if (rounds.chance(0.04)) await exchange(space, other);
          for (const { watcher } of watchers) if (rng.chance(0.2)) entries += watcher.take().length;
        }
        space.hold(false);
        await space.caughtUp();
        for (const { body, watcher } of watchers) {
          entries += watcher.take().length;
          const fresh = space.query(space.collection, body);
          const held = [...watcher.docs.values()].sort((a, b) => (a["id"] as string).localeCompare(b["id"] as string));
          const wanted = fresh.toSorted((a, b) => (a["id"] as string).localeCompare(b["id"] as string));
          expect({ seed, round, body, ended: watcher.ended, held }).toEqual({
            seed,
            round,
            body,
            ended: undefined,
            held: wanted,
          });
        }
        if (rng.chance(0.7) && watchers.length < WATCHERS) await join();
        if (rng.chance(0.3)) watchers.splice(rng.int(0, watchers.length - 1), 1)[0]?.watcher.subscription.close();
      }
      expect(entries).toBeGreaterThan(200);
    }, 60_000);
  }
}
