import type { Database } from "bun:sqlite";

/**
 * Places on the network. network_places: what sync notes about each place of the space, by the id of its epoch's read key.
 * place_hints: in the database of the account's own space, the secrets of places at which others say that spaces are.
 */
export const PLACE_SCHEMA = `
  CREATE TABLE network_places(id BLOB PRIMARY KEY, note BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE place_hints(no INTEGER PRIMARY KEY, spaceId TEXT NOT NULL, secret BLOB NOT NULL, UNIQUE(spaceId, secret));
`;

export function createPlaceTable(db: Database) {
  const get = db.query<{ note: Uint8Array }, [Uint8Array]>("SELECT note FROM network_places WHERE id = ?");
  const ids = db.query<{ id: Uint8Array }, []>("SELECT id FROM network_places");
  const put = db.query<null, [Uint8Array, Uint8Array]>("INSERT OR REPLACE INTO network_places(id, note) VALUES(?, ?)");
  const drop = db.query<null, [Uint8Array]>("DELETE FROM network_places WHERE id = ?");
  const hints = db.query<{ secret: Uint8Array }, [string]>(
    "SELECT secret FROM place_hints WHERE spaceId = ? ORDER BY no DESC",
  );
  const putHint = db.query<null, [string, Uint8Array]>(
    "INSERT OR REPLACE INTO place_hints(spaceId, secret) VALUES(?, ?)",
  );
  const dropOldestHints = db.query<null, [string, number]>(
    `DELETE FROM place_hints WHERE no IN
       (SELECT no FROM place_hints WHERE spaceId = ? ORDER BY no DESC LIMIT -1 OFFSET ?)`,
  );
  return {
    note: (id: Uint8Array): Uint8Array | undefined => get.get(id)?.note,
    ids: (): Uint8Array[] => ids.all().map((row) => row.id),
    putNote: (id: Uint8Array, note: Uint8Array) => void put.run(id, note),
    dropNote: (id: Uint8Array) => void drop.run(id),
    /** Newest first. */
    hintsOf: (spaceId: string): Uint8Array[] => hints.all(spaceId).map(({ secret }) => secret),
    /** Stores a hint; only the `kept` newest are kept. */
    putHint(spaceId: string, secret: Uint8Array, kept: number): void {
      putHint.run(spaceId, secret);
      dropOldestHints.run(spaceId, kept);
    },
  };
}
