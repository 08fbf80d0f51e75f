import type { Database } from "bun:sqlite";

/** What a change of the graph waits for whose body is not folded: the body itself, or what parked changes may wait for. */
export type UnopenedWait = "body" | "key" | "definition" | "version";

/**
 * Changes that are in the graph by their stubs, or whose bodies cannot be read yet; stubs of deleted objects, of which
 * nobody misses the bodies, are not among them. Part of the truth.
 */
export type UnopenedTable = ReturnType<typeof createUnopenedTable>;

export function createUnopenedTable(db: Database) {
  const put = db.query<null, [number, number, string, Uint8Array]>(
    "INSERT OR REPLACE INTO unopened(change, obj, wait_kind, wait_for) VALUES(?,?,?,?)",
  );
  const has = db.query<{ one: number }, [number]>("SELECT 1 AS one FROM unopened WHERE change = ?");
  const drop = db.query<null, [number]>("DELETE FROM unopened WHERE change = ?");
  const waitingFor = db.query<{ change: number }, [string, Uint8Array]>(
    "SELECT change FROM unopened WHERE wait_kind = ? AND wait_for = ?",
  );
  const ofKind = db.query<{ change: number }, [string]>("SELECT change FROM unopened WHERE wait_kind = ?");
  const count = db.query<{ count: number }, []>("SELECT count(*) AS count FROM unopened");
  const countOf = db.query<{ count: number }, [number]>("SELECT count(*) AS count FROM unopened WHERE obj = ?");
  const objects = db.query<{ obj: number }, [number]>("SELECT DISTINCT obj FROM unopened LIMIT ?");
  const bodies = db.query<{ wait_for: Uint8Array }, [number]>(
    "SELECT wait_for FROM unopened WHERE wait_kind = 'body' LIMIT ?",
  );
  const dropBodies = db.query<null, [number]>("DELETE FROM unopened WHERE obj = ? AND wait_kind = 'body'");
  // Stubs: a map of three fields that begins with the body's hash (change-stub.ts).
  const missStubs = db.query<null, [number]>(
    `INSERT OR REPLACE INTO unopened(change, obj, wait_kind, wait_for)
     SELECT no, obj, 'body', id FROM changes WHERE obj = ? AND substr(bytes, 1, 3) = x'a36163'`,
  );
  const numbersOf = (rows: { change: number }[]): number[] => rows.map(({ change }) => change);

  return {
    put: (change: number, obj: number, kind: UnopenedWait, what: Uint8Array) => void put.run(change, obj, kind, what),
    has: (change: number): boolean => has.get(change) !== null,
    drop: (change: number) => void drop.run(change),
    waitingFor: (kind: UnopenedWait, what: Uint8Array): number[] => numbersOf(waitingFor.all(kind, what)),
    ofKind: (kind: UnopenedWait): number[] => numbersOf(ofKind.all(kind)),
    count: (): number => count.get()!.count,
    countOf: (obj: number): number => countOf.get(obj)!.count,
    /** Numbers of the objects that they are in. */
    objects: (limit: number): number[] => objects.all(limit).map(({ obj }) => obj),
    /** Ids of the changes whose bodies are missed. */
    missingBodies: (limit: number): Uint8Array[] => bodies.all(limit).map((row) => row.wait_for),
    /** The object is deleted: nobody misses its bodies. */
    settle: (obj: number) => void dropBodies.run(obj),
    /** It is not, after all: the bodies of its stubs are missed. */
    missStubs: (obj: number) => void missStubs.run(obj),
  };
}
