/**
 * Reads what people type: words, "a phrase", a beginning*. Any text is a query; nothing in it is an operator of the index.
 */
import { isUnspaced, SCRIPT, scriptOf } from "./script.ts";
import { englishForms } from "./stem.ts";
import { type Piece, type Tokens, tokenise } from "./tokens.ts";

/** Tokens that stand next to each other in one of the index's two rows. */
export interface TokenRun {
  readonly row: "exact" | "words";
  readonly tokens: readonly string[];
  /** The last token is a beginning. */
  readonly prefix: boolean;
}

/** What a text must contain for a term to be found in it: any one of the runs. */
export type Term = readonly TokenRun[];

/**
 * Tokens of a phrase that are looked for. Finding a phrase costs its tokens times the places where each may stand, and a text can
 * consist of one word; nobody tells two texts apart by more.
 */
export const MOST_ADJACENT = 32;

const QUOTED = /["“”„«»]([^"“”„«»]*)["“”„«»]|(\S+)/g;
/** Characters that are grammatical words by themselves: they occur everywhere, and nobody searches for them. */
const GRAMMAR = new Set([
  ..."的了是在我你他她它们这那有和与就不也都很吗呢吧啊着过地得个之其のはがをにへとでもなだたてるいれし",
]);

/** English grammatical words: a question asks about its other words. */
const FUNCTION_WORDS = new Set(
  "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my no not of on or our out should so than that the their them then there these they this to was we were what when where which who whom whose why will with would you your".split(
    " ",
  ),
);

/** Returns the terms of a query, any of which may match. Grammatical words count only where the query has no others. */
export function queryTerms(query: string): Term[] {
  const distinctive = readTerms(query, (word) => FUNCTION_WORDS.has(word.toLowerCase().replace(/[^a-z]/g, "")));
  return distinctive.length > 0 ? distinctive : readTerms(query, () => false);
}

function readTerms(query: string, isLeftOut: (word: string) => boolean): Term[] {
  const terms: Term[] = [];
  for (const [, phrase, word] of query.matchAll(QUOTED)) {
    if (phrase !== undefined) push(terms, phraseTerm(phrase));
    else if (isPrefix(word!)) push(terms, prefixTerm(word!.replace(/\*+$/, "")));
    else if (!isLeftOut(word!)) terms.push(...wordTerms(word!));
  }
  return distinct(terms);
}

/**
 * Returns a term that must match, or must not: a word in its forms, several words as a phrase, a beginning*. Undefined where the
 * text has no token.
 */
export function strictTerm(text: string): Term | undefined {
  const inner = text.trim().replace(/^["“”„«»](.*)["“”„«»]$/su, "$1");
  if (isPrefix(inner) && !/\s/.test(inner)) return prefixTerm(inner.replace(/\*+$/, ""));
  const tokens = tokenise(inner, { pieces: true });
  const [piece, ...more] = tokens.pieces!;
  if (!piece) return undefined;
  if (more.length === 0 && inner === text.trim() && piece.kind !== "run") return pieceTerms(inner, tokens, piece)[0];
  return phraseTerm(inner);
}

const isPrefix = (word: string): boolean => /[\p{L}\p{N}\p{M}]\*+$/u.test(word);

function push(terms: Term[], term: Term | undefined): void {
  if (term) terms.push(term);
}

function distinct(terms: readonly Term[]): Term[] {
  return [...new Map(terms.map((term) => [JSON.stringify(term), term])).values()];
}

function wordTerms(word: string): Term[] {
  const tokens = tokenise(word, { pieces: true });
  return tokens.pieces!.flatMap((piece) => pieceTerms(word, tokens, piece));
}

/** Returns the terms of a piece; the first one stands for all of it. */
function pieceTerms(text: string, tokens: Tokens, piece: Piece): Term[] {
  const exact = tokens.exact.texts.slice(piece.exactFrom, piece.exactTo);
  const words = tokens.words.texts.slice(piece.wordsFrom, piece.wordsTo);
  switch (piece.kind) {
    case "symbol":
      return [[run("exact", exact)]];
    case "word":
      return [wordTerm(exact[0]!, words[0])];
    case "compound": {
      const atoms = tokens.exact.texts.slice(piece.atomsFrom, piece.exactTo);
      const whole = compoundTerm(exact, atoms, piece.isWhole, false);
      // well-known and client/server are several words rather than one name.
      const [start, end] = [tokens.exact.starts[piece.atomsFrom], tokens.exact.ends[piece.exactTo - 1]];
      const isLoose = atoms.length > 1 && LOOSE.test(text.slice(start, end).toLowerCase());
      return [whole, ...(isLoose ? atoms.flatMap((atom) => wordTerms(atom)) : [])];
    }
    case "run":
      return runTerms(exact, words);
  }
}

const LETTERS = "[a-z\u00e0-\ud7ff]{2,}";
const LOOSE = new RegExp(`^${LETTERS}(?:(?:-${LETTERS})+|/${LETTERS})$`);

/** Matches a whole identifier or address: as one token where it is one, and by its adjacent parts. */
function compoundTerm(exact: readonly string[], atoms: readonly string[], isWhole: boolean, prefix: boolean): Term {
  return [
    ...(isWhole ? [run("exact", exact.slice(0, 1), prefix)] : []),
    ...(atoms.length > 1 || !isWhole ? [run("exact", atoms, prefix)] : []),
  ];
}

function wordTerm(word: string, stem: string | undefined): Term {
  const { exact, words } = englishForms(word) ?? {
    exact: stem === undefined ? [word] : [word, stem],
    words: [stem ?? word],
  };
  return [...exact.map((form) => run("exact", [form])), ...words.map((form) => run("words", [form]))];
}

/** Matches a run of a script without spaces: as a whole by its pairs, and by each of its words. */
function runTerms(pairs: readonly string[], words: readonly string[]): Term[] {
  if (pairs.length === 1) return [[run("words", [pairs[0]!]), run("exact", [pairs[0]!], true)]];
  const whole: Term = [run("exact", pairs.slice(0, -1)), run("words", [words.join("")])];
  if (words.length < 2) return [whole];
  const single: Term[] = [];
  for (const word of words) {
    const { exact } = tokenise(word);
    if (exact.texts.length > 1) single.push([run("words", [word]), run("exact", exact.texts.slice(0, -1))]);
    else if (!GRAMMAR.has(word)) single.push([run("words", [word])]);
  }
  return [whole, ...single];
}

function phraseTerm(text: string): Term | undefined {
  const { exact, pieces } = tokenise(text, { pieces: true });
  const last = pieces!.at(-1);
  if (!last) return undefined;
  if (last.kind !== "run") return [run("exact", exact.texts)];
  // The index holds a character by itself only where it is the last one of a run.
  const isSingle = last.exactTo - last.exactFrom === 1;
  return [run("exact", isSingle ? exact.texts : exact.texts.slice(0, -1), isSingle)];
}

function prefixTerm(text: string): Term | undefined {
  const trimmed = text.replace(/^[^\p{L}\p{N}\p{M}]+/u, "");
  if ([...trimmed].some((char) => isUnspaced(scriptOf(char.codePointAt(0)!)))) return phraseTerm(trimmed);
  const { exact, pieces } = tokenise(trimmed, { pieces: true });
  const [piece, ...more] = pieces!;
  if (!piece || scriptOf(trimmed.codePointAt(0)!) !== SCRIPT.word) return undefined;
  if (more.length > 0) return [run("exact", exact.texts, true)];
  return piece.kind === "compound"
    ? compoundTerm(exact.texts, exact.texts.slice(piece.atomsFrom, piece.exactTo), piece.isWhole, true)
    : [run("exact", [exact.texts[0]!], true)];
}

function run(row: TokenRun["row"], tokens: readonly string[], prefix = false): TokenRun {
  if (tokens.length <= MOST_ADJACENT) return { row, tokens, prefix };
  return { row, tokens: tokens.slice(0, MOST_ADJACENT), prefix: false };
}
