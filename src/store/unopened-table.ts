import type { Database } from "bun:sqlite";

/** What a change of the graph waits for whose body is not folded: the body itself, or what parked changes may wait for. */
export type UnopenedWait = "body" | "key" | "definition" | "version";

export interface Unopened {
  /** Local number of the change. */
  readonly change: number;
  readonly waitKind: UnopenedWait;
  readonly waitFor: Uint8Array;
}

interface RawUnopened {
  change: number;
  wait_kind: string;
  wait_for: Uint8Array;
}

/**
 * Changes that are in the graph by their stubs, or whose bodies cannot be read yet; stubs of deleted objects, of which
 * nobody misses the bodies, are not among them. Part of the truth.
 */
export type UnopenedTable = ReturnType<typeof createUnopenedTable>;

export function createUnopenedTable(db: Database) {
  const put = db.query<null, [number, number, string, Uint8Array]>(
    "INSERT OR REPLACE INTO unopened(change, obj, wait_kind, wait_for) VALUES(?,?,?,?)",
  );
  const drop = db.query<null, [number]>("DELETE FROM unopened WHERE change = ?");
  const anyWaitingFor = db.query<{ found: number }, [string, Uint8Array]>(
    "SELECT 1 AS found FROM unopened WHERE wait_kind = ? AND wait_for = ? LIMIT 1",
  );
  const nextWaitingFor = db.query<RawUnopened, [string, Uint8Array, number]>(
    `SELECT change, wait_kind, wait_for FROM unopened WHERE wait_kind = ? AND wait_for = ? AND change > ?
     ORDER BY change LIMIT 1`,
  );
  const nextOfKind = db.query<RawUnopened, [string, Uint8Array, number]>(
    `SELECT change, wait_kind, wait_for FROM unopened WHERE wait_kind = ? AND (wait_for, change) > (?, ?)
     ORDER BY wait_for, change LIMIT 1`,
  );
  const ofKind = db.query<{ change: number }, [string]>("SELECT change FROM unopened WHERE wait_kind = ?");
  const get = db.query<RawUnopened, [number]>("SELECT change, wait_kind, wait_for FROM unopened WHERE change = ?");
  const count = db.query<{ count: number }, []>("SELECT count(*) AS count FROM unopened");
  const countOf = db.query<{ count: number }, [number]>("SELECT count(*) AS count FROM unopened WHERE obj = ?");
  const objects = db.query<{ obj: number }, [number]>("SELECT DISTINCT obj FROM unopened LIMIT ?");
  const bodies = db.query<{ wait_for: Uint8Array }, [Uint8Array, number]>(
    "SELECT wait_for FROM unopened WHERE wait_kind = 'body' AND wait_for > ? ORDER BY wait_for LIMIT ?",
  );
  const dropBodies = db.query<null, [number]>("DELETE FROM unopened WHERE obj = ? AND wait_kind = 'body'");
  // Stubs: a map of three fields that begins with the body's hash (change-stub.ts).
  const missStubs = db.query<null, [number]>(
    `INSERT OR REPLACE INTO unopened(change, obj, wait_kind, wait_for)
     SELECT no, obj, 'body', id FROM changes WHERE obj = ? AND substr(bytes, 1, 3) = x'a36163'`,
  );
  const toUnopened = (row: RawUnopened | null): Unopened | undefined =>
    row ? { change: row.change, waitKind: row.wait_kind as UnopenedWait, waitFor: row.wait_for } : undefined;

  return {
    put: (change: number, obj: number, kind: UnopenedWait, what: Uint8Array) => void put.run(change, obj, kind, what),
    drop: (change: number) => void drop.run(change),
    get: (change: number) => toUnopened(get.get(change)),
    anyWaitingFor: (kind: UnopenedWait, what: Uint8Array): boolean => anyWaitingFor.get(kind, what) !== null,
    /** By number, the first one after a number. */
    nextWaitingFor: (kind: UnopenedWait, what: Uint8Array, after: number) =>
      toUnopened(nextWaitingFor.get(kind, what, after)),
    /** By what they wait for and their numbers, the first one after such a place. */
    nextOfKind: (kind: UnopenedWait, afterFor: Uint8Array, after: number) =>
      toUnopened(nextOfKind.get(kind, afterFor, after)),
    ofKind: (kind: UnopenedWait): number[] => ofKind.all(kind).map(({ change }) => change),
    count: (): number => count.get()!.count,
    countOf: (obj: number): number => countOf.get(obj)!.count,
    /** Numbers of the objects that they are in. */
    objects: (limit: number): number[] => objects.all(limit).map(({ obj }) => obj),
    /** Ids of the changes whose bodies are missed. */
    missingBodies: (limit: number, after: Uint8Array = new Uint8Array(0)): Uint8Array[] =>
      bodies.all(after, limit).map((row) => row.wait_for),
    /** The object is deleted: nobody misses its bodies. */
    settle: (obj: number) => void dropBodies.run(obj),
    /** It is not, after all: the bodies of its stubs are missed. */
    missStubs: (obj: number) => void missStubs.run(obj),
  };
}
