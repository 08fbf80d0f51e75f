import { bytesToHex, concatBytes, equalBytes } from "../../base/bytes.ts";
import { isStub } from "../../change/codec/change-stub.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { type Pull, type PulledFrame, REPLICA_BOUNDS, type Replica } from "../port/replica.ts";
import {
  byWriter,
  isForked,
  sameState,
  stateIn,
  statesIn,
  type WriterState,
  writerKey,
} from "../port/version-vector.ts";
import { lowestAt, type StoredState, vectorOf } from "./own-vector.ts";
import type { ReplicaSource } from "./source.ts";

type PullSource = Pick<ReplicaSource, "engine" | "store" | "acl">;

/** The part of a replica that serves others. */
export const serving = (space: PullSource): Pick<Replica, "pull" | "changesNamed"> => ({
  pull: (request) => pullFrame(space, request),
  changesNamed: (ids) => changesNamed(space, ids),
});

/** Which changes of a writer the other lacks: all after a seq, or all whose ids it has not named. */
type Lacks = { readonly afterSeq: number } | { readonly except: ReadonlySet<string> };

/**
 * One frame of what the other lacks, in our order of arrival: parents come before their children, whatever is left out.
 * A derived root goes before the first change of its object.
 */
function pullFrame(space: PullSource, request: Pull): PulledFrame {
  const { store } = space;
  const { objects, soundBytes } = space.engine;
  const rootOf = (id: Uint8Array): Uint8Array | undefined => {
    const stored = store.changes.byId(id);
    return stored && soundBytes(stored);
  };
  const { lacksByWriter, needIds } = lackingOf(space, request);
  if (needIds.length > 0) return { changes: [], next: request.cursor, withheld: 0, needIds };
  if (lacksByWriter.size === 0) return { changes: [], next: 0, withheld: 0, needIds };
  const held = new Set(request.held.map(bytesToHex));
  const changes: Uint8Array[] = [];
  const rootsSent = new Set<number>();
  let bytes = 0;
  let withheld = 0;
  let scanned = 0;
  let at = request.cursor === 0 ? firstLacking(store, lacksByWriter) - 1 : request.cursor;
  for (;;) {
    const page = store.sync.positions(at, 1000);
    for (const { no, writer, seq } of page) {
      const lacks = lacksByWriter.get(writer);
      if (lacks && (!("afterSeq" in lacks) || seq > lacks.afterSeq)) {
        const change = store.changes.byNo(no)!;
        const id = bytesToHex(change.id);
        const sound = soundBytes(change);
        if (sound && (!("except" in lacks) || !lacks.except.has(id))) {
          // A change that waits for a key on the other side stands in its graph as a stub. If a stub is all that it has, it
          // gets the body.
          if (held.has(id) && !isStub(change.bytes)) withheld++;
          else {
            const object = objects.byNo(change.objectNo);
            const root = object?.derived && !rootsSent.has(object.no) ? rootOf(object.id) : undefined;
            const size = change.bytes.length + (root?.length ?? 0);
            const full = bytes + size > REPLICA_BOUNDS.frameBytes || changes.length + 2 > REPLICA_BOUNDS.frameChanges;
            if (full && changes.length > 0) return { changes, next: at, withheld, needIds };
            if (root) {
              rootsSent.add(change.objectNo);
              changes.push(root);
            }
            changes.push(sound);
            bytes += size;
          }
        }
      }
      at = no;
    }
    if (page.length < 1000) return { changes, next: 0, withheld, needIds };
    scanned += page.length;
    if (scanned >= REPLICA_BOUNDS.scanned) return { changes, next: at, withheld, needIds };
  }
}

function lackingOf(space: PullSource, request: Pull): { lacksByWriter: Map<number, Lacks>; needIds: Uint8Array[] } {
  const theirs = byWriter(request.vector);
  const chains = new Map(
    request.chains.map(({ author, writer, ids }) => [writerKey(author, writer), new Set(ids.map(bytesToHex))]),
  );
  const lacksByWriter = new Map<number, Lacks>();
  const needIds: Uint8Array[] = [];
  const { store } = space;
  const { parts } = vectorOf(space);
  const asked = request.only ? [...theirs.keys()].flatMap((key) => stateIn(parts, key) ?? []) : statesIn(parts);
  for (const mine of asked) {
    const { no, key } = mine;
    const other = theirs.get(key);
    if (!other || other.count === 0) {
      lacksByWriter.set(no, { afterSeq: 0 });
      continue;
    }
    if (sameState(mine, other)) continue;
    const except = chains.get(key);
    if (except) {
      lacksByWriter.set(no, { except });
      continue;
    }
    const from = plainlyFrom(store, mine, other);
    if (from === undefined) needIds.push(concatBytes(mine.author, mine.writer));
    else if (from < mine.seq) lacksByWriter.set(no, { afterSeq: from });
  }
  return { lacksByWriter, needIds };
}

/** Up to which seq the other has our chain if neither is seen to have forked. Undefined if only ids can tell. */
function plainlyFrom(store: SpaceStore, mine: StoredState, other: WriterState): number | undefined {
  if (isForked(mine) || isForked(other)) return undefined;
  if (other.seq > mine.seq) return mine.seq; // it knows the end of our chain; if that were not the end of its own, it would have sent ids
  if (other.seq === 0) return 0;
  const id = lowestAt(store, mine.no, other.seq);
  return id && equalBytes(id, other.last) ? other.seq : undefined;
}

/** The lowest number among the lacking changes: nothing before it needs a look. */
function firstLacking(store: SpaceStore, lacksByWriter: ReadonlyMap<number, Lacks>): number {
  let first = Number.MAX_SAFE_INTEGER;
  for (const [writer, lacks] of lacksByWriter) {
    const seq = "afterSeq" in lacks ? lacks.afterSeq + 1 : 1;
    for (const { no } of store.changes.atSeq(writer, seq)) first = Math.min(first, no);
  }
  return first === Number.MAX_SAFE_INTEGER ? 1 : first;
}

/** Changes asked for by name, as many as fit into a frame. */
function changesNamed(
  { engine, store }: Pick<ReplicaSource, "engine" | "store">,
  ids: readonly Uint8Array[],
): Uint8Array[] {
  const changes: Uint8Array[] = [];
  let bytes = 0;
  for (const id of ids) {
    const change = store.changes.byId(id);
    const sound = change && engine.soundBytes(change);
    if (!sound) continue;
    bytes += sound.length;
    if (bytes > REPLICA_BOUNDS.frameBytes && changes.length > 0) break;
    changes.push(sound);
  }
  return changes;
}
