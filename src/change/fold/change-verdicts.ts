import { bytesToHex } from "../../base/bytes.ts";
import { CHANGE_STUB, CHANGE_WHOLE, type ChangeTable, type StoredChange } from "../../store/tables/change-table.ts";
import { decodeChange, isDerivedRoot } from "../codec/change-codec.ts";
import type { AclView } from "../codec/ports.ts";
import type { ObjectCache } from "../graph/object-cache.ts";
import type { Projection } from "./projection.ts";

const PAGE = 500;

interface VerdictDeps {
  changes: ChangeTable;
  /** A change counts of which only the stub was kept: its body is missed from now on. */
  onBodyMissed(change: StoredChange): void;
  /** A change counts that was not folded for as long as it did not. */
  onUnfolded(change: StoredChange): void;
  objects: ObjectCache;
  acl: AclView;
  projection: Projection;
}

export type ChangeVerdicts = ReturnType<typeof createVerdicts>;

/**
 * Takes anew whether changes that are stored count, and folds the records concerned again. Runs inside the commit queue's
 * transaction.
 */
export function createVerdicts({ changes, objects, acl, projection, ...deps }: VerdictDeps) {
  const judge = (stored: StoredChange, author: Uint8Array, writer: Uint8Array): boolean => {
    const { seq, id, aclPos } = stored;
    return acl.counts({ author, writer, seq, id, aclPos }) && !ranBackwards(stored);
  };

  /** Answers whether the verdict changed. */
  const retake = (stored: StoredChange, author: Uint8Array, writerId: Uint8Array, isPositioned = true): boolean => {
    const counts = isPositioned && judge(stored, author, writerId);
    if (counts === stored.counts) return false;
    changes.setCounts(stored.no, counts);
    const object = objects.byNo(stored.objectNo);
    if (!object) return true;
    if (counts && stored.datasetNo === 0 && stored.kind === CHANGE_WHOLE) deps.onUnfolded(stored);
    if (object.deleted) return true;
    if (stored.datasetNo !== 0) projection.refoldTouchedBy({ ...stored, counts }, object);
    else if (counts && stored.kind === CHANGE_STUB) deps.onBodyMissed(stored);
    return true;
  };

  /** Whether a change names an ACL position before that of a parent or of its writer's previous change. */
  const ranBackwards = (stored: StoredChange): boolean => {
    if (stored.bytes.length === 0) return false; // damaged on the disk: judged by the rest until it comes again
    const change = decodeChange(stored.bytes, stored.id);
    if (isDerivedRoot(change)) return false;
    const before = change.header.prev ? [...change.header.parents, change.header.prev] : change.header.parents;
    return before.some((id) => (changes.byId(id)?.aclPos ?? 0) > stored.aclPos);
  };

  const hasPosition = ({ bytes, id }: StoredChange): boolean => {
    const change = decodeChange(bytes, id);
    return isDerivedRoot(change) || acl.at(change.header.acl) !== undefined;
  };

  return {
    /** Whether the verdict of a change whose record has a position is, as it is stored, not what the log of rights says. */
    isWrong(stored: StoredChange): boolean {
      const known = changes.findWriterByNo(stored.writer);
      return known !== undefined && judge(stored, known.author, known.id) !== stored.counts;
    },
    /** Of one change. */
    retakeOne(no: number): void {
      const stored = changes.byNo(no);
      const known = stored && changes.findWriterByNo(stored.writer);
      if (known) retake(stored, known.author, known.id, hasPosition(stored));
    },

    /** Takes the verdicts on all changes of these authors (hex) anew. */
    retakeOf(authors: ReadonlySet<string>): void {
      if (authors.size === 0) return;
      for (const known of changes.writers()) {
        if (!authors.has(bytesToHex(known.author))) continue;
        for (const stored of pages((after) => changes.ofWriterAfter(known.no, after, PAGE)))
          retake(stored, known.author, known.id);
      }
    },

    /** Takes every verdict anew. Answers how many changed. */
    retakeAll(): number {
      let changedCount = 0;
      const writers = new Map(changes.writers().map((known) => [known.no, known]));
      for (const stored of pages((after) => changes.after(after, PAGE))) {
        const known = writers.get(stored.writer);
        if (known && retake(stored, known.author, known.id)) changedCount++; // a derived root has no writer
      }
      return changedCount;
    },

    /** Places changes anew after a fork of the ACL was resolved. One whose record has no position here does not count. */
    repositionFrom(from: number): void {
      const writers = new Map(changes.writers().map((known) => [known.no, known]));
      for (const stored of pages((after) => changes.fromAclPos(from, after, PAGE))) {
        const known = writers.get(stored.writer);
        if (stored.bytes.length === 0) continue;
        const change = decodeChange(stored.bytes, stored.id);
        if (!known || isDerivedRoot(change)) continue;
        const pos = acl.at(change.header.acl)?.pos;
        const aclPos = pos ?? from;
        if (aclPos !== stored.aclPos) changes.setAclPos(stored.no, aclPos);
        retake({ ...stored, aclPos }, known.author, known.id, pos !== undefined);
      }
    },
  };
}

/** Changes in the order of their numbers, a page read at a time. */
function* pages(pageAfter: (no: number) => StoredChange[]): Generator<StoredChange> {
  for (let after = 0; ; ) {
    const page = pageAfter(after);
    yield* page;
    if (page.length < PAGE) return;
    after = page[page.length - 1]!.no;
  }
}
