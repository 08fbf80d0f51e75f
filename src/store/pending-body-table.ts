import type { Database } from "bun:sqlite";

/** Set when bodies are missed that this device had and dropped: whoever keeps what was sent long ago is to be asked anew. */
export const BODIES_GIVEN_UP = "bodies.given-up";

/** What a change of the graph waits for whose body is not folded: the body itself, or what parked changes may wait for. */
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
/** What was missed so long that nobody who was asked has it: it counts as waiting no more. */
const IN_VAIN = "rounds >= ?";

/**
 * Changes that are in the graph by their stubs, or whose bodies cannot be read yet; stubs of deleted objects, of which
 * nobody misses the bodies, are not among them. Part of the truth.
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
  const age = db.query<null, [number]>("UPDATE pending_bodies SET rounds = rounds + 1 WHERE rounds < ?");
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
    /** Moves whenever something here does; a rollback does not take it back. */
    revision: (): number => revision,
    get: (change: number) => toPendingBody(get.get(change)),
    anyWaitingFor: (kind: PendingBodyWait, what: Uint8Array): boolean => anyWaitingFor.get(kind, what) !== null,
    /** By number, the first one after a number. */
    nextWaitingFor: (kind: PendingBodyWait, what: Uint8Array, after: number) =>
      toPendingBody(nextWaitingFor.get(kind, what, after)),
    /** By what they wait for and their numbers, the first one after such a place. */
    nextOfKind: (kind: PendingBodyWait, afterFor: Uint8Array, after: number) =>
      toPendingBody(nextOfKind.get(kind, afterFor, after)),
    ofKind: (kind: PendingBodyWait): number[] => ofKind.all(kind).map(({ change }) => change),
    /** What changes wait for, each once. */
    wanted: (kind: PendingBodyWait, limit: number): Uint8Array[] => wanted.all(kind, limit).map((row) => row.wait_for),
    count: (): number => count.get()!.count,
    /** But for what was missed in vain through `patience` rounds. */
    waitingCount: (patience: number): number => waitingCount.get(patience)!.count,
    waitingCountOf: (objectNo: number, patience: number): number => waitingCountOf.get(objectNo, patience)!.count,
    /** Numbers of the objects that they are in. */
    waitingObjects: (patience: number, limit: number): number[] =>
      waitingObjects.all(patience, limit).map(({ objectNo }) => objectNo),
    /** Ids of the changes that wait in vain. They are folded should that come. */
    inVain: (patience: number, limit: number): Uint8Array[] => inVain.all(patience, limit).map((row) => row.wait_for),
    /** Ids of those whose bytes the disk changed. */
    damaged: (limit: number): Uint8Array[] => damaged.all(limit).map((row) => row.id),
    /** Missing bodies of which it is not known that nobody has them. */
    waitingBodies: (patience: number): number => waitingBodies.get(patience)!.count,
    countBodies: (): number => countBodies.get()!.count,
    /** Ids of the changes whose bodies are missed, sorted, after one. */
    missingBodies: (limit: number, after: Uint8Array = new Uint8Array(0)): Uint8Array[] =>
      bodies.all(after, limit).map((row) => row.wait_for),
    /** One round with somebody passed without what is missed; more than `patience` are not counted. */
    age: (patience: number): void => void age.run(patience),
    /** The object is deleted: nobody misses its bodies. */
    settle(objectNo: number): void {
      revision++;
      dropBodies.run(objectNo);
    },
    /** It is not, after all: the bodies of its stubs are missed. Answers how many. */
    missStubs(objectNo: number): number {
      revision++;
      return missStubs.run(objectNo).changes;
    },
  };
}
