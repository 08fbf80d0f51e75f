import { compareBytes } from "../../base/bytes.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { Change } from "../codec/change-codec.ts";
import type { AclView } from "../codec/ports.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";
import { type SetAside, STRANGER } from "./set-aside.ts";

/** Where a change stands in the graph and under the ACL. */
export interface GraphPosition {
  readonly aclPos: number;
  /** Numbers of its parents. */
  readonly parents: readonly number[];
  /** Undefined for a root. */
  readonly object: ObjectEntry | undefined;
  /** Whether its author had the right to it. */
  readonly counts: boolean;
}

interface PositionFinderDeps {
  store: Pick<SpaceStore, "changes">;
  objects: Pick<ObjectCache, "byNo">;
  acl: AclView;
  aside: Pick<SetAside, "quarantine" | "park" | "parkBehind">;
}

/**
 * Finds the position of a change that its author signed (CHANGE-6): its ACL record, its parents and its writer's chain; and checks that
 * its clock fits (CHANGE-11).
 */
export function createPositionFinder({ store, objects, acl, aside }: PositionFinderDeps) {
  const { changes } = store;
  const { quarantine, park, parkBehind } = aside;

  /** The position of a change, or what becomes of a change that has none, or none yet. */
  return ({ header, id }: Change, bytes: Uint8Array): { position: GraphPosition } | { verdict: IngestVerdict } => {
    const refused = (why: Refusal) => ({ verdict: quarantine(id, why, bytes) });
    const position = acl.at(header.acl);
    const waiting = { id, object: header.object ?? id, bytes };
    if (!position) return { verdict: park({ ...waiting, author: header.author }, "acl", header.acl) };
    const { author, writer, seq } = header;
    const hasRight = acl.counts({ author, writer, seq, id, aclPos: position.pos });
    /** The author that the waiting is counted against. Nobody misses what an author without the right waits for. */
    const waiter = hasRight ? author : STRANGER;
    let { clock } = position;
    let notBefore = 0;
    let object: ObjectEntry | undefined;
    const parents: number[] = [];
    for (const parentId of header.parents) {
      const parent = changes.byId(parentId);
      if (!parent) return { verdict: parkBehind(parentId, { ...waiting, author: waiter }) };
      parents.push(parent.no);
      object ??= objects.byNo(parent.objectNo);
      if (!object || parent.objectNo !== object.no) return refused(refusal("change.parents_apart"));
      clock = Math.max(clock, parent.lamport);
      notBefore = Math.max(notBefore, parent.aclPos);
    }
    if (object && compareBytes(object.id, header.object!) !== 0) return refused(refusal("change.parents_elsewhere"));
    if (header.prev) {
      const prev = changes.byId(header.prev);
      if (!prev) return { verdict: parkBehind(header.prev, { ...waiting, author: waiter }) };
      const prevWriter = changes.writerByNo(prev.writer);
      if (
        compareBytes(prevWriter.id, writer) !== 0 ||
        compareBytes(prevWriter.author, author) !== 0 ||
        prev.seq !== seq - 1
      )
        return refused(refusal("change.writers_chain"));
      clock = Math.max(clock, prev.lamport);
      notBefore = Math.max(notBefore, prev.aclPos);
    }
    if (header.lamport !== clock + 1) return refused(refusal("change.lamport", { is: header.lamport, due: clock + 1 }));
    const counts = position.pos >= notBefore && hasRight;
    return { position: { aclPos: position.pos, parents, object, counts } };
  };
}
