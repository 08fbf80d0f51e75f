import type { RowRepair } from "../../store/rows/row-sums.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { StoredChange } from "../../store/tables/change-table.ts";
import { decodeCheckedChange, isDerivedRoot } from "../codec/change-codec.ts";
import { kindOf } from "../codec/change-stub.ts";
import type { OnRepair } from "../codec/ports.ts";
import type { DamagedChanges } from "../graph/damaged-changes.ts";
import type { ObjectCache } from "../graph/object-cache.ts";
import type { DerivedCheck } from "./derived-check.ts";
import type { ObjectCheck } from "./object-check.ts";
import type { WaitingCheck } from "./waiting-check.ts";

/** How many of them are looked at before the time is. */
const PAGE = 50;

/**
 * What is looked at, in this order: what follows from changes is made anew of those that were found good, and finds its rows by
 * keys that were found good before.
 */
const PARTS = [
  "changes",
  "collections",
  "objects",
  "rows",
  "derived",
  "checkpoints",
  "locals",
  "parked",
  "quarantined",
] as const;

/** A step ends after this, even in the middle of a page: a body may say much. */
const STEP_MS = 2;

export interface Collection {
  readonly objectNo: number;
  readonly datasetNo: number;
}
const isSameCollection = (a: Collection, b: Collection): boolean =>
  a.objectNo === b.objectNo && a.datasetNo === b.datasetNo;

/** How far a pass over a space has come: behind which number of which part. */
export interface CheckCursor {
  readonly part: (typeof PARTS)[number];
  readonly after: number;
}

/** When this begins, what the tables point to is sound, so that those that point elsewhere can be told. */
export const POINTERS_BEFORE: CheckCursor["part"] = "objects";

export const CHECK_BEGIN: CheckCursor = { part: "changes", after: 0 };

interface SpaceCheckDeps {
  store: Pick<SpaceStore, "changes" | "rows" | "derived" | "queryIndexes" | "schema">;
  objects: Pick<ObjectCache, "byId" | "byNo">;
  damaged: DamagedChanges;
  onRepair: OnRepair;
  checkObject: ObjectCheck;
  checkDerived: DerivedCheck;
  waiting: WaitingCheck;
  repairRow: RowRepair;
  /** Folds everything of an object anew, soon. */
  rebuild(objectNo: number): void;
  /** Has those who hold what they read of a collection read it again, soon. */
  readAgain(collectionId: number, collection: Collection): void;
}

/**
 * Goes over what is stored and repairs what the disk changed, whether anybody reads it or not. A step is a page; between two,
 * others write.
 */
export function createSpaceCheck({ store, objects, damaged, onRepair, rebuild, ...deps }: SpaceCheckDeps) {
  const { changes, rows, derived, queryIndexes, schema } = store;

  /** What stands beside a change's bytes must be what they say, for the fold goes by that. */
  const checkColumns = (stored: StoredChange): void => {
    if (stored.bytes.length === 0) return;
    const change = decodeCheckedChange(stored.bytes, stored.id);
    if (isDerivedRoot(change)) return;
    const { header } = change;
    const writer = changes.writer(header.author, header.writer);
    const object = objects.byId(header.object ?? stored.id);
    if (!writer || !object) return;
    const said = {
      objectNo: object.no,
      lamport: header.lamport,
      writer: writer.no,
      seq: header.seq,
      timeMs: header.time,
      kind: kindOf(stored.bytes),
    };
    if (Object.entries(said).every(([name, value]) => stored[name as keyof typeof said] === value)) return;
    changes.setPosition(stored.no, said);
    rebuild(object.no);
    onRepair("change.place", {
      objectId: object.idText,
    });
  };

  /** A collection is where the changes of its rows belong. Where all of them say that it is another, it is made that. */
  const checkCollection = (after: number): number | undefined => {
    const found = derived.collectionAfter(after);
    if (!found) return undefined;
    const { no } = found;
    const collections = no === OBJECTS_COLLECTION ? [] : derived.touchedFrom(no);
    const [collection] = collections;
    if (!collection || collections.some((each) => isSameCollection(each, found))) return no;
    if (derived.moveCollection(no, collection.objectNo, collection.datasetNo)) {
      rows.forgetCollections();
      deps.readAgain(no, collection);
      onRepair("collection.name", { collection: no });
      return no;
    }
    // Its place was taken meanwhile: its rows move there, some a step.
    const [first, ...others] = derived.someRows(no);
    if (first === undefined) return no;
    for (const row of [first, ...others]) deps.repairRow(row);
    return derived.someRows(no)[0] === first ? no : after;
  };

  const pages: Record<CheckCursor["part"], (after: number) => number | undefined> = {
    changes(after) {
      const page = changes.after(after, PAGE);
      for (const stored of page) if (!damaged.setAside(stored)) checkColumns(stored);
      return page.length < PAGE ? undefined : page.at(-1)?.no;
    },
    collections: checkCollection,
    objects: deps.checkObject,
    derived(after) {
      const page = changes.after(after, PAGE);
      const until = performance.now() + STEP_MS;
      for (const stored of page) {
        deps.checkDerived(stored);
        if (performance.now() > until) return stored.no;
      }
      return page.length < PAGE ? undefined : page.at(-1)?.no;
    },
    rows(after) {
      const page = rows.pageUnchecked(after, PAGE);
      for (const { no, collectionId, id, isSound } of page) {
        if (!isSound || !rows.isKeyed(no, collectionId, id)) deps.repairRow(no);
        else if (queryIndexes.mend(collectionId, no)) onRepair("record.keys", { recordId: id });
        if (collectionId === OBJECTS_COLLECTION && schema.mendLinks(no)) onRepair("object.links", { objectId: id });
      }
      return page.length < PAGE ? undefined : page.at(-1)?.no;
    },
    checkpoints(after) {
      const { last, damaged: count } = rows.checkCheckpoints(after, PAGE);
      if (count > 0) onRepair("record.checkpoints", { count });
      return last;
    },
    locals(after) {
      if (after === 0) rows.markLocals();
      const { last, rows: numbers } = rows.damagedLocals(after, PAGE);
      for (const no of numbers) deps.repairRow(no);
      return last;
    },
    parked: deps.waiting.parked,
    quarantined: deps.waiting.quarantined,
  };

  /** One page from a position on. Answers where the next one begins; undefined when all was gone over. */
  return ({ part, after }: CheckCursor): CheckCursor | undefined => {
    const last = pages[part](after);
    if (last !== undefined) return { part, after: last };
    const next = PARTS[PARTS.indexOf(part) + 1];
    return next && { part: next, after: 0 };
  };
}
