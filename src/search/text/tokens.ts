/**
 * Makes of a text the tokens that the index holds and that queries ask for. Both use the same function, so that they agree.
 *
 * There are two rows of tokens. `exact` holds words as they stand, folded; identifiers as a whole and in parts; and, for scripts
 * without spaces, the pairs of neighbouring characters, with the last character of a run by itself. Any word is thus found inside
 * a longer run, because its pairs stand next to each other. `words` holds the words that a dictionary finds in such runs, and the
 * stems of words that differ from their stem.
 */
import { fold } from "./fold.ts";
import { SCRIPT, scriptOf } from "./script.ts";
import { arabicStem, englishStem } from "./stem.ts";

/** Longer tokens cannot be searched for as a whole, only by their parts. */
export const MAX_TOKEN_CHARS = 100;
const MAX_COMPOUND_PARTS = 64;

/** Tokens and their positions: UTF-16 offsets into the text. */
export interface TokenRow {
  readonly texts: string[];
  readonly starts: number[];
  readonly ends: number[];
}

export interface Tokens {
  readonly exact: TokenRow;
  readonly words: TokenRow;
  /** What the tokens came from; kept for queries alone. */
  readonly pieces: Piece[] | undefined;
}

/** A word, an identifier, a symbol or a run of a script without spaces, with its ranges in the two rows. */
export interface Piece {
  readonly kind: "word" | "compound" | "symbol" | "run";
  readonly exactFrom: number;
  readonly exactTo: number;
  readonly wordsFrom: number;
  readonly wordsTo: number;
  /** Where in `exact` the adjacent parts of a compound begin. */
  readonly atomsFrom: number;
  /** Whether the first token of `exact` is the whole piece. */
  readonly isWhole: boolean;
}

export function tokenise(text: string, { pieces = false }: { pieces?: boolean } = {}): Tokens {
  const out = emptyTokens(pieces ? [] : undefined);
  for (let at = 0; at < text.length; ) at = tokenisePiece(text, at, out);
  return out;
}

export function emptyTokens(pieces?: Piece[]): Tokens {
  return { exact: emptyRow(), words: emptyRow(), pieces };
}

/** Tokenises what begins at a position: a word, an identifier, a symbol, a run, or nothing. Returns where that ends. */
export function tokenisePiece(text: string, at: number, out: Tokens): number {
  const code = text.codePointAt(at)!;
  const script = scriptOf(code);
  if (script === SCRIPT.gap || script === SCRIPT.joiner) return at + (code > 0xffff ? 2 : 1);
  if (script === SCRIPT.symbol) return symbol(text, at, out);
  if (script === SCRIPT.word) return compound(text, at, out);
  return unspacedRun(text, at, script, out);
}

function emptyRow(): TokenRow {
  return { texts: [], starts: [], ends: [] };
}

function put(row: TokenRow, text: string, start: number, end: number): void {
  if (text === "" || text.length > MAX_TOKEN_CHARS) return;
  row.texts.push(text);
  row.starts.push(start);
  row.ends.push(end);
}

const PLAIN = /^[a-z0-9\u0080-\uffff]*$/;
/** The index cuts at ASCII that is neither letter nor digit, so such characters are encoded in a private plane. */
function encode(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(/\p{ASCII}/gu, (char) =>
    /[a-z0-9]/.test(char) ? char : String.fromCharCode(0xe000 + char.charCodeAt(0)),
  );
}

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
const segmenter = new Intl.Segmenter("en", { granularity: "word" });
const SKIN = /\p{Emoji_Modifier}|\p{Variation_Selector}/gu;

/** Nothing can be joined to ASCII; and a Latin letter, an arrow or a line does not join what stands before it. */
const standsAlone = (symbol: number, next: number): boolean =>
  symbol < 0x2000 || (symbol <= 0xffff && !(next >= 0x300 && (next < 0x2190 || next > 0x2bff)));

/** Cuts an emoji with everything that is joined to it, but without its colour. */
function symbol(text: string, at: number, out: Tokens): number {
  const first = text.codePointAt(at)!;
  const size = first > 0xffff ? 2 : 1;
  const [cluster] = standsAlone(first, text.charCodeAt(at + size)) ? [] : graphemes.segment(text.slice(at, at + 32));
  const whole = cluster?.segment ?? text.slice(at, at + size);
  const plain = whole.replace(SKIN, "");
  note(out, "symbol", () => void put(out.exact, encode(plain === "" ? whole : plain), at, at + whole.length));
  return at + whole.length;
}

const HUMP = /(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;
const HAS_HUMP = /[\p{Ll}\d]\p{Lu}|\p{Lu}{2}\p{Ll}/u;
const BETWEEN_PARTS = /[^\u200c-\u200d\p{L}\p{N}\p{M}\u00ad\u05f3\u05f4]+/u;
const BETWEEN_SEGMENTS = /[/:?&=#@,;|\\~"'’+%]+/;
const APOSTROPHE = /['’]/;

/** Cuts a word, identifier, path, version or address: from `start` to where neither a word nor a joiner follows. */
function compound(text: string, start: number, out: Tokens): number {
  let end = start;
  let joined = false;
  let isAscii = true;
  let hump = false;
  let before = 0;
  for (let at = start; at < text.length; ) {
    const code = text.codePointAt(at)!;
    const script = scriptOf(code);
    const size = code > 0xffff ? 2 : 1;
    if (script === SCRIPT.word) {
      // Marks the end of the last word: a joiner with no word behind it joins nothing.
      joined ||= end < at;
      isAscii &&= code < 0x80;
      const isUpper = code >= 0x41 && code <= 0x5a;
      const wasUpper = before >= 0x41 && before <= 0x5a;
      hump ||= isUpper ? before > 0x2f && !wasUpper && before !== CAPITALS : before === CAPITALS && code > 0x60;
      // In two capitals followed by a small letter, the second capital begins a word.
      before = isUpper && (wasUpper || before === CAPITALS) ? CAPITALS : code;
      end = at + size;
    } else if (script === SCRIPT.joiner) before = 0;
    else break;
    at += size;
  }
  const raw = text.slice(start, end);
  if (!joined && !(isAscii ? hump : HAS_HUMP.test(raw))) {
    const next = text.charCodeAt(end);
    if ((next === PLUS || next === HASH) && languageName(text, raw, start, end, out)) return end;
    note(out, "word", () => void word(raw, start, end, out));
    return end;
  }
  const spelt = raw.length < 32 && APOSTROPHE.test(raw) ? contraction(raw) : undefined;
  if (spelt !== undefined) note(out, "word", () => void word(spelt, start, end, out));
  else note(out, "compound", () => parts(raw, start, end, out));
  return end;
}

/** Stands for a capital after a capital. */
const CAPITALS = 0x7f;
const PLUS = 0x2b;
const HASH = 0x23;

/** C++ and C#. */
function languageName(text: string, raw: string, start: number, end: number, out: Tokens): boolean {
  const suffix = /^(?:\+\+|#)(?![\w+#])/.exec(text.slice(end, end + 3));
  if (!suffix) return false;
  note(out, "compound", () => {
    put(out.exact, encode(fold(raw) + suffix[0]), start, end + suffix[0].length);
    const atomsFrom = out.exact.texts.length;
    word(raw, start, end, out);
    return { atomsFrom, isWhole: true };
  });
  return true;
}

/** Where in `exact` the parts of a compound begin, and whether the first token before them is the whole compound. */
interface Parts {
  readonly atomsFrom: number;
  readonly isWhole: boolean;
}

/** Records the tokens that a piece of a query became. */
function note(out: Tokens, kind: Piece["kind"], split: () => Parts | undefined): void {
  if (!out.pieces) return void split();
  const [exactFrom, wordsFrom] = [out.exact.texts.length, out.words.texts.length];
  const { atomsFrom, isWhole } = split() ?? { atomsFrom: exactFrom, isWhole: true };
  const [exactTo, wordsTo] = [out.exact.texts.length, out.words.texts.length];
  if (exactTo > exactFrom) out.pieces.push({ kind, exactFrom, exactTo, wordsFrom, wordsTo, atomsFrom, isWhole });
}

/** don't and server's are one word each; l'eau is two. */
function contraction(raw: string): string | undefined {
  const plain = raw.replace(/['’]s$/i, "").replace(/n['’]t$/i, "nt");
  return BETWEEN_PARTS.test(plain) || HAS_HUMP.test(plain) ? undefined : plain;
}

/**
 * An identifier, a version or a name is also a token as a whole. A path or an address is not: few texts share one, and its
 * adjacent parts find it as well.
 */
function parts(raw: string, start: number, end: number, out: Tokens): Parts {
  const whole = fold(raw);
  const segments = raw.split(BETWEEN_SEGMENTS);
  const isWhole = segments.length === 1 && whole.length <= MAX_TOKEN_CHARS;
  if (isWhole) put(out.exact, encode(whole), start, end);
  const emitted = new Set([whole]);
  if (/^v\d/i.test(raw)) segments.push(raw.slice(1));
  let from = start;
  for (const segment of segments) {
    const at = offsetOf(raw, segment, from - start) + start;
    from = at;
    const folded = fold(segment);
    if (emitted.has(folded) || !(BETWEEN_PARTS.test(segment) || HAS_HUMP.test(segment))) continue;
    emitted.add(folded);
    put(out.exact, encode(folded), at, at + segment.length);
    for (const piece of segment.split(BETWEEN_PARTS)) humped(piece, raw, start, emitted, out);
  }
  for (const piece of raw.split(BETWEEN_PARTS)) humped(piece, raw, start, emitted, out);
  const atomsFrom = out.exact.texts.length;
  let offset = 0;
  let count = 0;
  for (const piece of raw.split(BETWEEN_PARTS)) {
    for (const atom of piece.split(HUMP)) {
      if (atom === "" || count++ >= MAX_COMPOUND_PARTS) continue;
      offset = offsetOf(raw, atom, offset);
      word(atom, start + offset, start + offset + atom.length, out);
      offset += atom.length;
    }
  }
  return { atomsFrom, isWhole };
}

/** Cuts createServer out of lib/createServer.ts. */
function humped(piece: string, raw: string, start: number, emitted: Set<string>, out: Tokens): void {
  const folded = fold(piece);
  if (emitted.has(folded) || !HAS_HUMP.test(piece)) return;
  emitted.add(folded);
  const at = start + offsetOf(raw, piece, 0);
  put(out.exact, folded, at, at + piece.length);
}

/** Returns where `part` is in `raw`, at or after `from` if it occurs there. */
function offsetOf(raw: string, part: string, from: number): number {
  const at = raw.indexOf(part, from);
  return at < 0 ? Math.max(0, raw.indexOf(part)) : at;
}

const ARABIC = /[\u0600-\u06ff]/;
const MAX_KNOWN = 50_000;
interface KnownWord {
  readonly folded: string;
  readonly stem: string | undefined;
}
const knownWords = new Map<string, KnownWord>();

function word(raw: string, start: number, end: number, out: Tokens): void {
  let known = knownWords.get(raw);
  if (!known) {
    const folded = fold(raw);
    known = { folded, stem: englishStem(folded) ?? (ARABIC.test(folded) ? arabicStem(folded) : undefined) };
    if (knownWords.size >= MAX_KNOWN) knownWords.clear();
    knownWords.set(raw, known);
  }
  put(out.exact, known.folded, start, end);
  if (known.stem !== undefined) put(out.words, known.stem, start, end);
}

/** Marks that Unicode counts as characters of their own, but that belong to the character before them. */
const NEEDS_CLUSTERS = /[\u3099\u309a\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\ua960-\ua97f\ua9e0-\uaa7f\uff66-\uffdc]/;

function unspacedRun(text: string, start: number, script: number, out: Tokens): number {
  let end = start;
  while (end < text.length) {
    const code = text.codePointAt(end)!;
    const next = scriptOf(code);
    const goesOn =
      next === script || code === 0x200b || code === 0x200c || code === 0x200d || (code === 0x30fc && isKana(script));
    if (!goesOn) break;
    end += code > 0xffff ? 2 : 1;
  }
  note(out, "run", () => void tokeniseRun(text.slice(start, end), start, script, out));
  return end;
}

const isKana = (script: number): boolean => script === SCRIPT.han || script === SCRIPT.katakana;

function tokeniseRun(raw: string, start: number, script: number, out: Tokens): void {
  const clusters: string[] = [];
  const offsets: number[] = [];
  let at = 0;
  for (const cluster of NEEDS_CLUSTERS.test(raw) ? clustersOf(raw) : raw) {
    const folded = cluster.length === 1 && isPlainHan(cluster.charCodeAt(0)) ? cluster : fold(cluster);
    if (folded !== "") {
      clusters.push(folded);
      offsets.push(start + at);
    }
    at += cluster.length;
  }
  const count = clusters.length;
  if (count === 0) return;
  offsets.push(start + at);
  for (let i = 0; i + 1 < count; i++) put(out.exact, clusters[i]! + clusters[i + 1]!, offsets[i]!, offsets[i + 2]!);
  put(out.exact, clusters[count - 1]!, offsets[count - 1]!, offsets[count]!);
  if (script === SCRIPT.hangul) put(out.words, clusters.join(""), start, start + raw.length);
  else dictionaryWords(clusters, offsets, out);
}

/** Han and hiragana that folding does not change. */
const isPlainHan = (code: number): boolean => (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3041 && code <= 0x3096);

function* clustersOf(raw: string): Generator<string> {
  for (const { segment } of graphemes.segment(raw)) yield segment;
}

function dictionaryWords(clusters: readonly string[], offsets: readonly number[], out: Tokens): void {
  const joined = clusters.join("");
  let cluster = 0;
  let length = 0;
  let from = 0;
  let begun = 0;
  for (const { index, segment } of segmenter.segment(joined)) {
    const cut = index + segment.length;
    while (length < cut) length += clusters[cluster++]!.length;
    // A cut inside a cluster does not count.
    if (length > cut) continue;
    put(out.words, joined.slice(begun, cut), offsets[from]!, offsets[cluster]!);
    begun = cut;
    from = cluster;
  }
}
