import type { Database } from "bun:sqlite";
import type { SummedDoc } from "./row-sums.ts";
import type { RowTable } from "./row-table.ts";

/** An object whose row says that it is a type. */
export interface TypeRow {
  id: string;
  doc: string;
}

/** A property of an object's row that links to another object. */
export interface LinkRow {
  /** Id of the object that links. */
  id: string;
  /** The namespace (type id) and the property that hold the link. */
  ns: string;
  prop: string;
}

const MAX_KNOWN_VERSIONS = 256;

/** Reads what a space's types are made from: their rows, the versions of definitions, and links by their target. */
export function createSchemaTable(db: Database, rows: Pick<RowTable, "soundDocs">) {
  // Repeats the condition of the index rows_of_types.
  const types = db.query<TypeRow & SummedDoc, []>(
    `SELECT no, id, doc, doc_sum FROM rows INDEXED BY rows_of_types WHERE collectionId = 0 AND state = 1 AND instr(doc, '"__type__"') > 0`,
  );
  const declaration = db.query<{ text: string }, [string]>("SELECT text FROM declarations WHERE id = ?");
  const addDeclaration = db.query<null, [string, string]>("INSERT OR IGNORE INTO declarations(id, text) VALUES(?, ?)");
  const linksTo = db.query<LinkRow, [string]>(
    `SELECT r.id, l.ns, l.prop FROM links l JOIN rows r ON r.no = l.row
     WHERE l.target = ? AND r.state = 1 AND EXISTS (SELECT 1 FROM json_each(r.doc, '$.svc.types') t WHERE t.value = l.ns)
     ORDER BY r.id, l.ns, l.prop`,
  );

  const LACKED = "SELECT target, row, ns, prop FROM links_of_rows WHERE row = ?1";
  const KEPT = "SELECT target, row, ns, prop FROM links WHERE row = ?1";
  const differing = db.query<{ one: number }, [number]>(
    `SELECT 1 AS one FROM (SELECT * FROM (${LACKED} EXCEPT ${KEPT}) UNION ALL SELECT * FROM (${KEPT} EXCEPT ${LACKED})) LIMIT 1`,
  );
  const dropLinks = db.query<null, [number]>("DELETE FROM links WHERE row = ?");
  const addLinks = db.query<null, [number]>(`INSERT OR IGNORE INTO links(target, row, ns, prop) ${LACKED}`);

  /** Versions that were read recently. They never change; only a rollback removes one. */
  const known = new Map<string, string>();

  return {
    /** Forgets the versions in memory after a rollback, because some of them may not be stored. */
    forget: () => known.clear(),
    typeRows: (): TypeRow[] => rows.soundDocs(() => types.all()),
    /** The text of a definition's version, once it has been seen. */
    declaration(versionId: string): string | undefined {
      const cached = known.get(versionId);
      if (cached !== undefined) return cached;
      const text = declaration.get(versionId)?.text;
      if (text === undefined) return undefined;
      if (known.size >= MAX_KNOWN_VERSIONS) known.clear();
      known.set(versionId, text);
      return text;
    },
    /** Keeps the text of a version; the caller has checked that the id is its hash. */
    addDeclaration: (versionId: string, text: string) => void addDeclaration.run(versionId, text),
    /** Computes the links of an object's row anew where they differ from those in its text. Returns whether they did. */
    mendLinks(row: number): boolean {
      if (differing.get(row) === null) return false;
      dropLinks.run(row);
      addLinks.run(row);
      return true;
    },
    /** Every place in the objects' rows that links to an object, under types that the linking object carries. */
    linksTo: (objectId: string): LinkRow[] => linksTo.all(objectId),
  };
}
