import { createHash } from "node:crypto";
import { chunkText } from "./chunk.ts";
import { tokenise } from "./tokens.ts";

/** A text as the index takes it. */
export function cutText(text: string): { exact: string; words: string } {
  const { exact, words } = tokenise(text);
  return { exact: exact.texts.join(" "), words: words.texts.join(" ") };
}

/** Samples of what may be cut otherwise by another version of this program or of the dictionaries it runs with. */
const SAMPLES = [
  "The runner's createServer() in lib/foo_bar.ts v1.4.30 says don't: https://example.com/a?b=1 C++ caches hoping",
  "我想知道东京的天气怎么样。東京都に行きたいコンピューターを使って、日本語を書く。",
  "ภาษาไทยเป็นภาษาที่ไม่มีการเว้นวรรคระหว่างคำ ຂ້ອຍຮັກພາສາລາວ ខ្ញុំស្រឡាញ់ភាសាខ្មែរ မြန်မာဘာသာစကား",
  "학교에서 Straße café ＡＢＣ الكِتَاب הַשָּׁלוֹם ١٢٣ 👍🏽 🇩🇪",
];

/** Raised when records are read into other units. */
const UNITS_VERSION = 1;

/** Of the way texts are cut: an index with another one is made anew. */
export const CUT_FINGERPRINT = createHash("sha256")
  .update(JSON.stringify([UNITS_VERSION, SAMPLES.map(cutText), chunkText("t", "word. ".repeat(900)).length]))
  .digest("hex")
  .slice(0, 24);
