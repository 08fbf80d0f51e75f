import type { Database } from "bun:sqlite";
import type { ObjectId } from "../../base/ids.ts";
import { cidFromDigest, digestOfCid } from "../../crypto/cid.ts";
import type { ChangeTable } from "../../store/tables/change-table.ts";
import { createObjectTable } from "../../store/tables/object-table.ts";
import { type HeadRef, headsChanged } from "./heads.ts";

/** An object as the engine holds it. Fields are replaced, never mutated, so that a rollback can restore them. */
export interface ObjectEntry {
  readonly no: number;
  readonly id: Uint8Array;
  readonly idText: ObjectId;
  readonly derived: boolean;
  /** Public key of the root's author; absent for a derived object. */
  readonly author: Uint8Array | undefined;
  readonly createdMs: number;
  deleted: boolean;
  /** Deleted long ago: of its changes only stubs are kept. */
  purged: boolean;
  /** Sorted by id. */
  heads: readonly HeadRef[];
  /** As they are in the database. */
  storedHeads: readonly HeadRef[];
  /** The newest change that counts: what `modifiedAt` of the object's row shows. */
  modified: { lamport: number; change: Uint8Array; ms: number };
  headsDirty: boolean;
  modifiedDirty: boolean;
}

const MAX_ENTRIES = 20_000;
/** How many derived roots may come in before they are counted anew. */
const RECOUNT_AFTER = 256;

/** Objects by id and number; heads and modification stamps are written back once a batch. */
export type ObjectCache = ReturnType<typeof createObjectCache>;

export function createObjectCache(db: Database, changes: ChangeTable, projectionVersion: number) {
  const table = createObjectTable(db);
  let byId = new Map<string, ObjectEntry>();
  let byText = new Map<string, ObjectEntry>();
  let byNo = new Map<number, ObjectEntry>();
  const dirty = new Set<ObjectEntry>();
  let idleDerived: number | undefined;
  let sinceCounted = 0;

  const remember = (row: NonNullable<ReturnType<typeof table.byNo>>): ObjectEntry => {
    const heads = changes.heads(row.no);
    const entry: ObjectEntry = {
      no: row.no,
      id: row.id,
      idText: cidFromDigest(row.id) as ObjectId,
      derived: row.derived,
      author: row.author ?? undefined,
      createdMs: row.createdMs,
      deleted: row.deleted,
      purged: row.purged,
      heads,
      storedHeads: heads,
      modified: { lamport: row.modLamport, change: row.modChange ?? new Uint8Array(0), ms: row.modMs },
      headsDirty: false,
      modifiedDirty: false,
    };
    byId.set(Buffer.from(row.id.buffer, row.id.byteOffset, 32).toString("latin1"), entry);
    byText.set(entry.idText, entry);
    byNo.set(entry.no, entry);
    return entry;
  };

  return {
    byId(id: Uint8Array): ObjectEntry | undefined {
      const known = byId.get(Buffer.from(id.buffer, id.byteOffset, 32).toString("latin1"));
      if (known) return known;
      const row = table.byId(id);
      return row ? remember(row) : undefined;
    },
    byNo(no: number): ObjectEntry | undefined {
      const known = byNo.get(no);
      if (known) return known;
      const row = table.byNo(no);
      return row ? remember(row) : undefined;
    },
    /** By an id as text. */
    byText(text: string): ObjectEntry | undefined {
      const known = byText.get(text);
      if (known) return known;
      const id = digestOfCid(text);
      return id && this.byId(id);
    },
    insert(id: Uint8Array, root: Uint8Array, author: Uint8Array | undefined, createdMs: number): ObjectEntry {
      const no = table.insert(id, root, author, createdMs, projectionVersion);
      return remember({
        no,
        id,
        derived: author === undefined,
        author: author ?? null,
        createdMs,
        deleted: false,
        purged: false,
        projection: projectionVersion,
        modLamport: 0,
        modChange: null,
        modMs: 0,
      });
    },
    forget(entry: ObjectEntry): void {
      byId.delete(Buffer.from(entry.id.buffer, entry.id.byteOffset, 32).toString("latin1"));
      byText.delete(entry.idText);
      byNo.delete(entry.no);
      dirty.delete(entry);
    },
    setHeads(entry: ObjectEntry, heads: readonly HeadRef[]): void {
      entry.heads = heads;
      entry.headsDirty = true;
      dirty.add(entry);
    },
    /** None of the object's heads is stored any more: these are to be. */
    restoreHeads(entry: ObjectEntry, heads: readonly HeadRef[]): void {
      entry.storedHeads = [];
      this.setHeads(entry, heads);
    },
    setModified(entry: ObjectEntry, modified: ObjectEntry["modified"]): void {
      entry.modified = modified;
      entry.modifiedDirty = true;
      dirty.add(entry);
    },
    setDeleted(entry: ObjectEntry, deleted: boolean, nowMs: number): void {
      entry.deleted = deleted;
      entry.purged = false;
      table.setDeleted(entry.no, deleted, nowMs);
    },
    /** Numbers of objects deleted until then that are not purged. */
    purgeable: (untilMs: number) => table.purgeable(untilMs),
    setPurged(entry: ObjectEntry): void {
      entry.purged = true;
      table.setPurged(entry.no);
    },
    setProjection: (no: number, version: number) => table.setProjection(no, version),
    /** Objects whose rows were folded by another version of the program. */
    stale: () => table.stale(projectionVersion),
    all: () => table.all(),
    /** How many derived objects have nothing but their root, about. */
    idleDerived(): number {
      if (idleDerived === undefined || ++sinceCounted > RECOUNT_AFTER) {
        idleDerived = table.idleDerived();
        sinceCounted = 0;
      }
      return idleDerived + sinceCounted;
    },
    rootOf: (no: number) => table.root(no),
    /** Writes what the batch changed; answers the objects whose modification stamp moved. */
    flush(): ObjectEntry[] {
      const stamped: ObjectEntry[] = [];
      for (const entry of dirty) {
        if (entry.headsDirty) {
          const { added, dropped } = headsChanged(entry.storedHeads, entry.heads);
          for (const change of dropped) changes.dropHead(entry.no, change);
          for (const change of added) changes.addHead(entry.no, change);
          entry.storedHeads = entry.heads;
        }
        if (entry.modifiedDirty) {
          table.saveModified(entry.no, entry.modified.lamport, entry.modified.change, entry.modified.ms);
          stamped.push(entry);
        }
        entry.headsDirty = false;
        entry.modifiedDirty = false;
      }
      dirty.clear();
      return stamped;
    },
    /** After a commit: keeps memory bounded. After a failure: forgets what was never written. */
    clear(): void {
      byId = new Map();
      byText = new Map();
      byNo = new Map();
      dirty.clear();
    },
    trim(): void {
      if (byId.size <= MAX_ENTRIES) return;
      byId = new Map();
      byText = new Map();
      byNo = new Map();
    },
  };
}
