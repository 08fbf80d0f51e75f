import type { Database } from "bun:sqlite";
import { oneRoundMore } from "./parked-table.ts";

/** Set when bodies are missed that this device had and dropped: peers that keep what was sent long ago have to be asked again. */
export const BODIES_GIVEN_UP = "bodies.given-up";

/** What a change in the graph whose body is not folded waits for: the body itself, or what parked changes may wait for. */
export type PendingBodyWait = "body" | "key" | "definition" | "version";

export interface PendingBody {
  /** Local number of the change. */
  readonly change: number;
  readonly waitKind: PendingBodyWait;
  readonly waitFor: Uint8Array;
}

interface RawPendingBody {
  change: number;
  wait_kind: string;
  wait_for: Uint8Array;
}
/** A body that was missed so long that no peer that was asked has it: it counts as waiting no more. */
const IN_VAIN = "rounds >= ?";

/**
 * Holds changes that are in the graph as stubs, or whose bodies cannot be read yet. Stubs of deleted objects are not included,
 * because nobody misses their bodies. This table is part of the truth: nothing else can restore it.
 */
export type PendingBodyTable = ReturnType<typeof createPendingBodyTable>;

export function createPendingBodyTable(db: Database) {
  const put = db.query<null, [number, number, string, Uint8Array]>(
    `INSERT INTO pending_bodies(change, objectNo, wait_kind, wait_for) VALUES(?,?,?,?)
     ON CONFLICT(change) DO UPDATE SET wait_kind = excluded.wait_kind, wait_for = excluded.wait_for, rounds = 0
       WHERE wait_kind <> excluded.wait_kind OR wait_for <> excluded.wait_for`,
  );
  const has = db.query<{ one: number }, [number]>("SELECT 1 AS one FROM pending_bodies WHERE change = ?");
  const drop = db.query<null, [number]>("DELETE FROM pending_bodies WHERE change = ?");
  const anyWaitingFor = db.query<{ found: number }, [string, Uint8Array]>(
    "SELECT 1 AS found FROM pending_bodies WHERE wait_kind = ? AND wait_for = ? LIMIT 1",
  );
  const nextWaitingFor = db.query<RawPendingBody, [string, Uint8Array, number]>(
    `SELECT change, wait_kind, wait_for FROM pending_bodies WHERE wait_kind = ? AND wait_for = ? AND change > ?
     ORDER BY change LIMIT 1`,
  );
  const nextOfKind = db.query<RawPendingBody, [string, Uint8Array, number]>(
    `SELECT change, wait_kind, wait_for FROM pending_bodies WHERE wait_kind = ? AND (wait_for, change) > (?, ?)
     ORDER BY wait_for, change LIMIT 1`,
  );
  const ofKind = db.query<{ change: number }, [string]>("SELECT change FROM pending_bodies WHERE wait_kind = ?");
  const get = db.query<RawPendingBody, [number]>(
    "SELECT change, wait_kind, wait_for FROM pending_bodies WHERE change = ?",
  );
  const wanted = db.query<{ wait_for: Uint8Array }, [string, number]>(
    "SELECT DISTINCT wait_for FROM pending_bodies WHERE wait_kind = ? LIMIT ?",
  );
  const count = db.query<{ count: number }, []>("SELECT count(*) AS count FROM pending_bodies");
  const waitingCount = db.query<{ count: number }, [number]>(
    `SELECT count(*) AS count FROM pending_bodies WHERE NOT (${IN_VAIN})`,
  );
  const waitingCountOf = db.query<{ count: number }, [number, number]>(
    `SELECT count(*) AS count FROM pending_bodies WHERE objectNo = ? AND NOT (${IN_VAIN})`,
  );
  const waitingObjects = db.query<{ objectNo: number }, [number, number]>(
    `SELECT DISTINCT objectNo FROM pending_bodies WHERE NOT (${IN_VAIN}) LIMIT ?`,
  );
  const inVain = db.query<{ wait_for: Uint8Array }, [number, number]>(
    `SELECT c.id AS wait_for FROM pending_bodies u JOIN changes c ON c.no = u.change WHERE ${IN_VAIN} LIMIT ?`,
  );
  const damaged = db.query<{ id: Uint8Array }, [number]>(
    `SELECT c.id FROM pending_bodies u JOIN changes c ON c.no = u.change
     WHERE u.wait_kind = 'body' AND length(c.bytes) = 0 LIMIT ?`,
  );
  const waitingBodies = db.query<{ count: number }, [number]>(
    "SELECT count(*) AS count FROM pending_bodies WHERE wait_kind = 'body' AND rounds < ?",
  );
  const countBodies = db.query<{ count: number }, []>(
    "SELECT count(*) AS count FROM pending_bodies WHERE wait_kind = 'body'",
  );
  const bodies = db.query<{ wait_for: Uint8Array }, [Uint8Array, number]>(
    "SELECT wait_for FROM pending_bodies WHERE wait_kind = 'body' AND wait_for > ? ORDER BY wait_for LIMIT ?",
  );
  const age = db.query<null, [number]>(oneRoundMore("pending_bodies"));
  const dropBodies = db.query<null, [number]>("DELETE FROM pending_bodies WHERE objectNo = ? AND wait_kind = 'body'");
  const missStubs = db.query<null, [number]>(
    `INSERT OR REPLACE INTO pending_bodies(change, objectNo, wait_kind, wait_for)
     SELECT no, objectNo, 'body', id FROM changes WHERE objectNo = ? AND kind = 2`,
  );
  const toPendingBody = (row: RawPendingBody | null): PendingBody | undefined =>
    row ? { change: row.change, waitKind: row.wait_kind as PendingBodyWait, waitFor: row.wait_for } : undefined;
  let revision = 0;

  return {
    put(change: number, objectNo: number, kind: PendingBodyWait, what: Uint8Array): void {
      revision++;
      put.run(change, objectNo, kind, what);
    },
    has: (change: number): boolean => has.get(change) !== null,
    drop(change: number): void {
      revision++;
      drop.run(change);
    },
    /** A number that changes whenever something here does; a rollback does not take it back. */
    revision: (): number => revision,
    get: (change: number) => toPendingBody(get.get(change)),
    anyWaitingFor: (kind: PendingBodyWait, what: Uint8Array): boolean => anyWaitingFor.get(kind, what) !== null,
    /** Returns the first waiting change after a number, by number. */
    nextWaitingFor: (kind: PendingBodyWait, what: Uint8Array, after: number) =>
      toPendingBody(nextWaitingFor.get(kind, what, after)),
    /** Returns the first change after a position in the order of what changes wait for and their numbers. */
    nextOfKind: (kind: PendingBodyWait, afterFor: Uint8Array, after: number) =>
      toPendingBody(nextOfKind.get(kind, afterFor, after)),
    ofKind: (kind: PendingBodyWait): number[] => ofKind.all(kind).map(({ change }) => change),
    /** Returns what changes wait for, each once. */
    wanted: (kind: PendingBodyWait, limit: number): Uint8Array[] => wanted.all(kind, limit).map((row) => row.wait_for),
    count: (): number => count.get()!.count,
    /** Counts the waiting changes, without those that were missed in vain through `patience` rounds. */
    waitingCount: (patience: number): number => waitingCount.get(patience)!.count,
    waitingCountOf: (objectNo: number, patience: number): number => waitingCountOf.get(objectNo, patience)!.count,
    /** Returns the numbers of the objects that have waiting changes. */
    waitingObjects: (patience: number, limit: number): number[] =>
      waitingObjects.all(patience, limit).map(({ objectNo }) => objectNo),
    /** Returns ids of the changes that wait in vain. They are still folded if what they wait for comes. */
    inVain: (patience: number, limit: number): Uint8Array[] => inVain.all(patience, limit).map((row) => row.wait_for),
    /** Returns ids of changes whose bytes are damaged. */
    damaged: (limit: number): Uint8Array[] => damaged.all(limit).map((row) => row.id),
    /** Counts the missing bodies, without those that evidently nobody has. */
    waitingBodies: (patience: number): number => waitingBodies.get(patience)!.count,
    countBodies: (): number => countBodies.get()!.count,
    /** Returns the ids of the changes whose bodies are missing, sorted, after one. */
    missingBodies: (limit: number, after: Uint8Array = new Uint8Array(0)): Uint8Array[] =>
      bodies.all(after, limit).map((row) => row.wait_for),
    /** Notes that a round with a peer passed without bringing what is missing; no more than `patience` rounds are counted. */
    age: (patience: number): void => void age.run(patience),
    /** Stops missing the bodies of an object that was deleted. */
    dropOfObject(objectNo: number): void {
      revision++;
      dropBodies.run(objectNo);
    },
    /** Begins to miss the bodies of an object's stubs again, because it is not deleted after all. Returns how many. */
    missStubs(objectNo: number): number {
      revision++;
      return missStubs.run(objectNo).changes;
    },
  };
}
