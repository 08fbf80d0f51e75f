import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRng } from "../../../test/support/rng.ts";
import { checkIndex } from "../../store/search/index-check.ts";
import { openIndexStore } from "../../store/search/index-store.ts";
import { indexTokens, tokensFingerprint } from "./index-tokens.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-index-check-"));
afterAll(() => rmSync(folder, { recursive: true }));

const WORDS = [
  ...["it's", "O'Neill-Smith", "naïve", "STRASSE", "straße", "e\u0301cole", "10,000.5", "a_b", "x\u0000y", "İstanbul"],
  ...[
    "東京都",
    "全文検索",
    "ไทย",
    "한국어",
    "поиск",
    "ΣΟΦΟΣ",
    "مرحبا",
    "हिन्दी",
    "😀👍🏽",
    "snake_case::path/to#frag",
    "\ud800",
  ],
];

test("[STORE-3] an index in order is found in order, whatever its texts are, and another after some of them have gone", () => {
  const path = join(folder, "index.db");
  const { store } = openIndexStore(path, { tokenise: indexTokens, fingerprint: tokensFingerprint() });
  const rng = createRng(11);
  const unit = (n: number) => ({
    object: `object${n % 7}`,
    dataset: "texts",
    record: `r${n}`,
    chunk: n % 3,
    scope: "prop/Name",
    text: Array.from({ length: rng.int(0, 40) }, () => WORDS[rng.int(0, WORDS.length - 1)]!).join(" "),
    embed: n % 2 === 0,
  });
  const look = (): void => {
    for (const _ of checkIndex(path, indexTokens));
  };
  store.transaction(() => {
    for (let n = 0; n < 400; n++) store.setSource(1, n, [unit(n)]);
  });
  expect(look).not.toThrow();
  store.transaction(() => {
    for (let n = 0; n < 400; n += 3) store.setSource(1, n, n % 2 === 0 ? [] : [unit(n)]);
  });
  expect(look).not.toThrow();
  store.db.run("UPDATE units SET text = 'another' WHERE id = (SELECT max(id) FROM units)");
  expect(look).toThrow("is not what it was");
  store.close();
});
