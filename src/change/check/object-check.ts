import { equalBytes } from "../../base/bytes.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { CHANGE_STUB } from "../../store/tables/change-table.ts";
import { decodeCheckedChange, isDerivedRoot } from "../codec/change-codec.ts";
import { changeIdOf } from "../codec/change-stub.ts";
import type { OnRepair } from "../codec/ports.ts";
import type { ObjectDeletions } from "../fold/object-deletions.ts";
import type { Projection } from "../fold/projection.ts";
import type { HeadRef } from "../graph/heads.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";

/** So many changes of an object are gone over in a step. */
const STRIDE = 200;

interface ObjectCheckDeps {
  store: Pick<SpaceStore, "changes" | "derived">;
  objects: ObjectCache;
  projection: Pick<Projection, "findNewestAnew">;
  deletions: Pick<ObjectDeletions, "apply" | "isDeletedByLog">;
  onRepair: OnRepair;
  soon(run: () => void): void;
}

export type ObjectCheck = ReturnType<typeof createObjectCheck>;

/** The graph of one object, as far as it was gone over. */
interface Walk {
  readonly objectNo: number;
  /** The newest change of the space when it began: what is newer is looked at last. */
  readonly upTo: number;
  after: { lamport: number; no: number };
  readonly heads: Map<string, HeadRef>;
  /** Named as parents before they were met. */
  readonly named: Set<string>;
  /** A change has lost its bytes: what its parents were is not known. */
  isTorn: boolean;
}

const nameOf = (id: Uint8Array): string => Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("latin1");

/**
 * Derives again what is kept of objects: their heads, from the parents that their changes name; their roots, from the first
 * change; their newest change and whether they are deleted. An object of many changes takes many steps.
 */
export function createObjectCheck({ store, objects, projection, deletions, onRepair, soon }: ObjectCheckDeps) {
  const { changes, derived } = store;
  let walk: Walk | undefined;

  const pass = (on: Walk, page: ReturnType<typeof derived.graph>): void => {
    for (const { no, id, lamport, acl_pos: aclPos, bytes } of page) {
      const name = nameOf(id);
      if (!on.named.has(name)) on.heads.set(name, { no, id, lamport, aclPos });
      if (bytes.length === 0) {
        on.isTorn = true;
        continue;
      }
      const change = decodeCheckedChange(bytes, id);
      if (isDerivedRoot(change)) continue;
      for (const parent of change.header.parents) {
        const parentName = nameOf(parent);
        on.named.add(parentName);
        on.heads.delete(parentName);
      }
    }
  };

  /** What the stored heads should be; undefined where that cannot be told. */
  const headsOf = (on: Walk): HeadRef[] | undefined => {
    pass(on, derived.graphSince(on.objectNo, on.upTo));
    return on.isTorn ? undefined : [...on.heads.values()].sort((a, b) => Buffer.compare(a.id, b.id));
  };

  const differ = (objectNo: number, heads: readonly HeadRef[]): boolean =>
    heads
      .map(({ no }) => no)
      .sort((a, b) => a - b)
      .join() !== derived.heads(objectNo).join();

  const checkHeads = (on: Walk): void => {
    const now = headsOf(on);
    if (!now || !differ(on.objectNo, now)) return;
    soon(() => {
      const object = objects.byNo(on.objectNo);
      const heads = headsOf(on);
      if (!object || !heads) return;
      derived.dropHeads(object.no);
      objects.restoreHeads(object, heads);
      repaired(object, "heads");
    });
  };

  const repaired = (object: ObjectEntry, table: string): void =>
    onRepair("object.derived", {
      objectId: object.idText,
      tables: [table],
    });

  /** The root stands among the changes too. Answers whether the object is what that says. */
  const isAsItsRoot = (object: ObjectEntry): boolean => {
    const root = objects.rootOf(object.no);
    const stored = changes.byId(object.id) ?? (root && changes.byId(changeIdOf(root)));
    if (!stored || stored.bytes.length === 0 || stored.objectNo !== object.no) return stored !== undefined;
    const change = decodeCheckedChange(stored.bytes, stored.id);
    const [author, createdMs] = isDerivedRoot(change) ? [undefined, 0] : [change.header.author, change.header.time];
    const isAuthorSame = author ? object.author && equalBytes(object.author, author) : !object.author;
    const isSame =
      root !== undefined &&
      equalBytes(changeIdOf(root), object.id) &&
      equalBytes(stored.id, object.id) &&
      isAuthorSame &&
      object.createdMs === createdMs &&
      object.derived === (author === undefined);
    if (isSame) return true;
    soon(() => {
      if (object.headsDirty || object.modifiedDirty) return; // the next pass meets it again
      derived.mendObject(object.no, { id: stored.id, root: stored.bytes, author, createdMs });
      objects.forget(object);
      repaired(object, "objects");
    });
    return false;
  };

  const checkNewest = (object: ObjectEntry): void => {
    const newest = changes.newestOfObject(object.no);
    const { lamport, change, ms } = object.modified;
    const isLost = change.length > 0 && changes.byId(change)?.kind === CHANGE_STUB;
    const isSame = newest
      ? lamport === newest.lamport && ms === newest.timeMs && equalBytes(change, newest.id)
      : lamport === 0;
    if (!isSame && !isLost)
      soon(() => {
        projection.findNewestAnew(object);
        repaired(object, "objects");
      });
    if (deletions.isDeletedByLog(object) !== object.deleted)
      soon(() => {
        deletions.apply(object);
        repaired(object, "objects");
      });
  };

  /** A step from the object with a number on. Answers the number to go on from; undefined when all were gone over. */
  return (after: number): number | undefined => {
    if (!walk || walk.objectNo <= after) {
      const objectNo = derived.objectAfter(after);
      if (objectNo === undefined) {
        walk = undefined;
        return undefined;
      }
      const object = objects.byNo(objectNo);
      if (object && isAsItsRoot(object)) checkNewest(object);
      walk = {
        objectNo,
        upTo: derived.newestChange(),
        after: { lamport: -1, no: 0 },
        heads: new Map(),
        named: new Set(),
        isTorn: false,
      };
    }
    const page = derived.graph(walk.objectNo, walk.after, STRIDE);
    pass(walk, page);
    const last = page.at(-1);
    if (last && page.length === STRIDE) {
      walk.after = last;
      return after;
    }
    const ended = walk;
    walk = undefined;
    checkHeads(ended);
    return ended.objectNo;
  };
}
