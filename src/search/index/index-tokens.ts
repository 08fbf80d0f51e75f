import { createHash } from "node:crypto";
import { createByteRow } from "../text/byte-row.ts";
import { chunkText } from "../text/chunk.ts";
import { SCRIPT, scriptOf } from "../text/script.ts";
import { englishStem, mayHaveEnding } from "../text/stem.ts";
import { createTokenMemory, type TokenRows } from "../text/token-memory.ts";
import { emptyTokens, MAX_TOKEN_CHARS, tokenisePiece } from "../text/tokens.ts";

/** A text as the index takes it: rows of tokens as UTF-8, separated by characters at which FTS5 cuts. */
export interface IndexTokens {
  readonly exact: Uint8Array;
  readonly words: Uint8Array;
}

const exactRow = createByteRow();
const wordsRow = createByteRow();
const putCompound = createTokenMemory(tokeniseWhole);
/** The exact row already holds a plain word as it stands. */
const putStem = createTokenMemory((raw) => ({ exact: "", words: englishStem(raw.toLowerCase()) ?? "" }));

/**
 * Makes the tokens of a text, as `tokenise` does. FTS5 itself cuts at ASCII that is neither letter nor digit, and folds capitals, so
 * plain words are copied as they stand and only other text is taken apart here. The result is valid until the next text is tokenised.
 */
export function indexTokens(text: string): IndexTokens {
  exactRow.clear();
  wordsRow.clear();
  /** Where the stretch of plain words begins that is not in the row yet. */
  let from = 0;
  for (let at = 0; at < text.length; ) {
    const kind = kindAt(text, at);
    if (kind === KIND.gap || kind === KIND.joiner) {
      at++;
      continue;
    }
    const end = kind >= KIND.symbol ? at : plainWordEnd(text, at);
    if (end > at) {
      if (mayHaveEnding(text, at, end)) putStem(text, at, end, exactRow, wordsRow);
      at = end;
      continue;
    }
    exactRow.ascii(text, from, at);
    const compound = kind === KIND.symbol ? at + 1 : kind === KIND.other ? at : asciiCompoundEnd(text, at);
    if (compound > at) {
      putCompound(text, at, compound, exactRow, wordsRow);
      at = compound;
    } else {
      const out = emptyTokens();
      at = tokenisePiece(text, at, out);
      exactRow.text(out.exact.texts.join(" "));
      wordsRow.text(out.words.texts.join(" "));
    }
    from = at;
  }
  exactRow.ascii(text, from, text.length);
  return { exact: exactRow.view(), words: wordsRow.view() };
}

/** Tokenises an identifier, an address or a sign. */
function tokeniseWhole(raw: string): TokenRows {
  const out = emptyTokens();
  tokenisePiece(raw, 0, out);
  return { exact: out.exact.texts.join(" "), words: out.words.texts.join(" ") };
}

const KIND = { gap: 0, joiner: 1, lower: 2, upper: 3, digit: 4, symbol: 5, other: 6 } as const;

const ASCII_KINDS = Uint8Array.from({ length: 0x80 }, (_, code) => {
  const char = String.fromCharCode(code);
  if (/[a-z]/.test(char)) return KIND.lower;
  if (/[A-Z]/.test(char)) return KIND.upper;
  if (/[0-9]/.test(char)) return KIND.digit;
  const script = scriptOf(code);
  // SQLite would take a NUL for the end of a text.
  if (script === SCRIPT.gap && code > 0) return KIND.gap;
  if (script === SCRIPT.symbol) return KIND.symbol;
  return script === SCRIPT.joiner ? KIND.joiner : KIND.other;
});

function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 0x80 ? ASCII_KINDS[code]! : KIND.other;
}

/** Returns where the word of ASCII letters and digits that begins here ends; `start` where it is part of something longer. */
function plainWordEnd(text: string, start: number): number {
  let end = start;
  let before: number = KIND.gap;
  let capitals = 0;
  let kind = kindAt(text, start);
  for (; kind >= KIND.lower && kind <= KIND.digit; kind = ++end < text.length ? kindAt(text, end) : KIND.gap) {
    if (kind === KIND.upper) {
      if (before === KIND.lower || before === KIND.digit) return start;
      capitals++;
    } else {
      if (kind === KIND.lower && capitals > 1) return start;
      capitals = 0;
    }
    before = kind;
  }
  if (end - start > MAX_TOKEN_CHARS) return start;
  return kind === KIND.gap || !goesOn(text, end) ? end : start;
}

const PLUS = 0x2b;
const HASH = 0x23;

/** Whether the characters after a word make it part of something longer: joiners with another word behind them, or C++ and C#. */
function goesOn(text: string, end: number): boolean {
  const code = text.charCodeAt(end);
  if (code === PLUS || code === HASH) return true;
  for (let at = end; at < text.length; ) {
    const next = text.codePointAt(at)!;
    const script = scriptOf(next);
    if (script !== SCRIPT.joiner) return script === SCRIPT.word;
    at++;
  }
  return false;
}

/**
 * Returns where an identifier or address of ASCII only ends; `start` where it has other characters, or where more belongs to it
 * (C++).
 */
function asciiCompoundEnd(text: string, start: number): number {
  let end = start;
  let at = start;
  for (let kind = kindAt(text, at); kind !== KIND.gap; kind = ++at < text.length ? kindAt(text, at) : KIND.gap) {
    if (kind >= KIND.lower && kind <= KIND.digit) end = at + 1;
    else if (kind >= KIND.symbol) {
      if (text.charCodeAt(at) >= 0x80) return start;
      break;
    }
  }
  const next = text.charCodeAt(end);
  return next === PLUS || next === HASH ? start : end;
}

/** Samples that another version of this program, or of the dictionaries it runs with, may tokenise differently. */
const SAMPLES = [
  "The runner's createServer() in lib/foo_bar.ts v1.4.30 says don't: https://example.com/a?b=1 C++ caches hoping",
  "我想知道东京的天气怎么样。東京都に行きたいコンピューターを使って、日本語を書く。",
  "ภาษาไทยเป็นภาษาที่ไม่มีการเว้นวรรคระหว่างคำ ຂ້ອຍຮັກພາສາລາວ ខ្ញុំស្រឡាញ់ភាសាខ្មែរ မြန်မာဘာသာစကား",
  "학교에서 Straße café ＡＢＣ الكِتَاب הַשָּׁלוֹם ١٢٣ 👍🏽 🇩🇪",
];

/**
 * Must be raised when records are read into other units, or when texts are tokenised differently in a way that the samples do not show.
 */
const UNITS_VERSION = 3;

const sampleTokens = (sample: string): string[] => {
  const { exact, words } = indexTokens(sample);
  return [Buffer.from(exact).toString("hex"), Buffer.from(words).toString("hex")];
};

let fingerprint: string | undefined;

/**
 * Identifies the way texts are tokenised: an index with another fingerprint is made anew. It loads dictionaries, so only code that has
 * an index calls it.
 */
export function tokensFingerprint(): string {
  fingerprint ??= createHash("sha256")
    .update(JSON.stringify([UNITS_VERSION, SAMPLES.map(sampleTokens), chunkText("t", "word. ".repeat(900)).length]))
    .digest("hex")
    .slice(0, 24);
  return fingerprint;
}
