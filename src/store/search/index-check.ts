import type { Database } from "bun:sqlite";
import { checksumOf } from "../../base/checksum.ts";
import { openReader } from "../database/database.ts";
import {
  filtersOfUnit,
  IndexDamagedError,
  type IndexTokens,
  type RawUnit,
  sumOfUnit,
  UNIT_COLUMNS,
} from "./index-store.ts";

const BELOW = 2 ** 47;
/** Splits texts as FTS5's tokenizer `ascii` does. */
const TOKENS = /[0-9A-Za-z\u0080-\uffff]+/g;
const COLUMNS = ["exact", "words", "filters"] as const;
/** How many rows are checked before others get their turn. */
const ROWS_A_STEP = 500;

/** Sums the positions of all words into one number that does not depend on their order. */
function createWordSum() {
  let sum = 0;
  let lastTerm = "";
  let lastSum = checksumOf(lastTerm);
  return {
    add(term: string, unit: number, column: number, offset: number): void {
      if (term !== lastTerm) [lastTerm, lastSum] = [term, checksumOf(term)];
      sum = (sum + lastSum + unit * 31 + column * 1_000_003 + offset * 7) % BELOW;
    },
    value: () => sum,
  };
}

/**
 * Compares a whole index with its own checksums, and its words with the tokens of its units: FTS5 keeps no texts here,
 * and by itself finds only what is out of order. It reads one snapshot over a connection of its own, a step at a time.
 * @throws IndexDamagedError, or SQLite's own error
 */
export function* checkIndex(path: string, tokenise: (text: string) => IndexTokens): Generator<void, void> {
  const db = openReader(path);
  try {
    db.exec("PRAGMA query_only = OFF"); // allows a temporary table: the file itself is opened read-only
    db.exec("CREATE VIRTUAL TABLE temp.ft_terms USING fts5vocab(main, ft, instance)");
    db.exec("BEGIN");
    const due = yield* sumOfUnits(db, tokenise);
    const found = yield* sumOfWords(db);
    if (due !== found) throw new IndexDamagedError("its words");
    yield* checkEmbeddings(db);
  } finally {
    db.close();
  }
}

function* sumOfUnits(db: Database, tokenise: (text: string) => IndexTokens): Generator<void, number> {
  const words = createWordSum();
  let rows = 0;
  for (const unit of db.query<RawUnit, []>(`SELECT ${UNIT_COLUMNS} FROM units ORDER BY id`).iterate()) {
    if (sumOfUnit(unit) !== unit.sum) throw new IndexDamagedError("a text");
    const texts = tokenise(unit.text);
    const columns = [textOf(texts.exact), textOf(texts.words), filtersOfUnit(unit)];
    for (const [column, text] of columns.entries())
      for (const [offset, token] of (lowered(text).match(TOKENS) ?? []).entries())
        words.add(token, unit.id, column, offset);
    if (++rows % ROWS_A_STEP === 0) yield;
  }
  return words.value();
}

/** Lowers as that tokenizer does: ASCII letters only. */
const lowered = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
const decoder = new TextDecoder();
const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);

function* sumOfWords(db: Database): Generator<void, number> {
  const words = createWordSum();
  let rows = 0;
  const all = db.query<{ term: string; doc: number; col: (typeof COLUMNS)[number]; offset: number }, []>(
    `SELECT term, doc, col, "offset" FROM temp.ft_terms`,
  );
  for (const { term, doc, col, offset } of all.iterate()) {
    words.add(term, doc, COLUMNS.indexOf(col), offset);
    if (++rows % (10 * ROWS_A_STEP) === 0) yield;
  }
  return words.value();
}

function* checkEmbeddings(db: Database): Generator<void, void> {
  let rows = 0;
  for (const { vector, sum } of db
    .query<{ vector: Uint8Array; sum: number }, []>("SELECT vector, sum FROM embeddings")
    .iterate()) {
    if (checksumOf(vector) !== sum) throw new IndexDamagedError("what a text means");
    if (++rows % ROWS_A_STEP === 0) yield;
  }
}
