import { bytesToUtf8 } from "../../base/bytes.ts";
import { PATIENCE_ROUNDS, type Replica } from "../port/replica.ts";
import type { ReplicaSource } from "./source.ts";

/** The part of a replica that says what it lacks, so that others can be asked for it. */
export function wanting({
  engine,
  store,
}: Pick<ReplicaSource, "engine" | "store">): Pick<
  Replica,
  "held" | "wanted" | "awaitedStubs" | "chainsOf" | "lacksBodies" | "misses" | "age"
> {
  const { parked, pendingBodies, changes, sync } = store;
  return {
    held: (limit) => [...parked.ids(limit / 2), ...parked.quarantinedIds(limit / 2)],
    wanted: (after, limit) =>
      [...parked.wantedChanges(after, limit), ...pendingBodies.missingBodies(limit, after)]
        .sort((a, b) => Buffer.compare(a, b))
        .slice(0, limit),
    awaitedStubs(limit) {
      const names = [...parked.wanted("definition", limit), ...pendingBodies.wanted("definition", limit)].map(
        (what) => bytesToUtf8(what) ?? "",
      );
      const types = new Set(names.map((name) => name.slice(0, name.indexOf("/"))));
      return [...types].flatMap((objectId) => {
        const object = engine.object(objectId);
        return object ? [changes.stubsOf(object.no, limit)] : [];
      });
    },
    chainsOf: (writers, limit) =>
      writers.map(({ author, writer }) => {
        const row = changes.writer(author, writer);
        return { author, writer, ids: row ? sync.idsOfWriter(row.no, limit).map(({ id }) => id) : [] };
      }),
    lacksBodies: () => pendingBodies.waitingBodies(PATIENCE_ROUNDS) > 0,
    misses: ({ crowded, refused }) => crowded > 0 || (refused > 0 && parked.waitingCount(PATIENCE_ROUNDS) > 0),
    async age() {
      if (parked.usage().count === 0 && pendingBodies.waitingCount(PATIENCE_ROUNDS) === 0) return;
      await engine.writeNotes(() => {
        parked.age(PATIENCE_ROUNDS);
        pendingBodies.age(PATIENCE_ROUNDS);
      });
    },
  };
}
