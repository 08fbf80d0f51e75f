import { bytesToUtf8 } from "../../base/bytes.ts";
import { PATIENCE_ROUNDS, type Taken, type WriterChain } from "../replica.ts";
import type { WriterState } from "../version-vector.ts";
import type { ReplicaSource } from "./source.ts";

type WantedSource = Pick<ReplicaSource, "engine">;

/** Parents that parked changes wait for and changes without their bodies, in the order of their ids. */
export function wantedBehind({ engine }: WantedSource, after: Uint8Array, limit: number): Uint8Array[] {
  const { parked, unopened } = engine.store;
  return [...parked.wantedChanges(after, limit), ...unopened.missingBodies(limit, after)]
    .sort((a, b) => Buffer.compare(a, b))
    .slice(0, limit);
}

/** Stubs of types by whose definitions changes wait, a list a type. */
export function awaitedStubs({ engine }: WantedSource, limit: number): Uint8Array[][] {
  const { parked, unopened, changes } = engine.store;
  const names = [...parked.wanted("definition", limit), ...unopened.wanted("definition", limit)].map(
    (what) => bytesToUtf8(what) ?? "",
  );
  const types = new Set(names.map((name) => name.slice(0, name.indexOf("/"))));
  return [...types].flatMap((objectId) => {
    const object = engine.object(objectId);
    return object ? [changes.stubsOf(object.no, limit)] : [];
  });
}

/** What is here of these writers, newest first. */
export function chainsOf(
  { engine }: WantedSource,
  writers: readonly Pick<WriterState, "author" | "writer">[],
  limit: number,
): WriterChain[] {
  const { changes, sync } = engine.store;
  return writers.map(({ author, writer }) => {
    const row = changes.writer(author, writer);
    return { author, writer, ids: row ? sync.idsOfWriter(row.no, limit).map(({ id }) => id) : [] };
  });
}

/** Whether what had no room is missed. */
export const misses = ({ engine }: WantedSource, left: Pick<Taken, "refused" | "crowded">): boolean =>
  left.crowded > 0 || (left.refused > 0 && engine.store.parked.waitingCount(PATIENCE_ROUNDS) > 0);

/** Whether bodies are missing that may yet come. */
export const lacksBodies = ({ engine }: WantedSource): boolean =>
  engine.store.unopened.waitingBodies(PATIENCE_ROUNDS) > 0;
