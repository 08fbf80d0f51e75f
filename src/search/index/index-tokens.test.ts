import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createRng } from "../../../test/support/rng.ts";
import { tokenise } from "../text/tokens.ts";
import { indexTokens } from "./index-tokens.ts";

/** The tokens FTS5 makes of a column, in their order. */
const db = new Database(":memory:");
db.exec("CREATE VIRTUAL TABLE ft USING fts5(column, tokenize='ascii')");
db.exec("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(ft, instance)");
function indexed(column: Uint8Array): string[] {
  db.run("DELETE FROM ft");
  db.run("INSERT INTO ft(rowid, column) VALUES(1, ?)", [column]);
  return db
    .query<{ term: string }, []>("SELECT term FROM vocabulary ORDER BY offset")
    .all()
    .map(({ term }) => term);
}

function expectSame(text: string): void {
  const { exact, words } = tokenise(text);
  const cut = indexTokens(text);
  expect([text, indexed(cut.exact)]).toEqual([text, exact.texts]);
  expect([text, indexed(cut.words)]).toEqual([text, words.texts]);
}

describe("[SEARCH-2] the index holds the tokens that queries are cut into", () => {
  test("of words, identifiers and what stands between them", () => {
    for (const text of [
      "Plain words, and more: of them.",
      "HTTP2 is not HTTPServer; URLs, ABCd, aB, A1b2 and 3D",
      "C++ and C# but a+b, x#y, f#, c++11, ++ and #tag",
      "ends. in-joiners- .and/ begins ../with them",
      "the server's don't l’eau O'Brien",
      "caféBar naïve ÀÉ straße Straßen word—word “quoted” … x\u200dy soft\u00adhyphen",
      `nul\u0000between ${"long".repeat(30)} ${"a-".repeat(70)}b ${"x".repeat(100)} ${"y".repeat(101)}`,
      "$5 <b>bold</b> a|b ^up `code` ~home a=b & c %20",
      "我的iPhone手机v2 と東京タワーへ👍🏽 go 🇩🇪 ok",
      "\ud800 lone \udfff",
      "",
    ])
      expectSame(text);
  });

  test("of random text", () => {
    const rng = createRng(11);
    const alphabet = [..."abcSEDgins019 \n.,-_/'’+#:@$<|ÀßéЖعش手東タ한ไ👍\u00ad\u0301\u0000"];
    const pick = () => alphabet[Math.floor(rng.next() * alphabet.length)]!;
    for (let round = 0; round < 3_000; round++)
      expectSame(Array.from({ length: Math.floor(rng.next() * 30) }, pick).join(""));
  });

  test("of a long text about software", () => {
    const readme = join(import.meta.dir, "../../../README.md");
    for (const text of readFileSync(readme, "utf8").split("\n\n")) expectSame(text);
  });
});
