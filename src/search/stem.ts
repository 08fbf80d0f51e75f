/** Endings are taken off plain English words alone; a word that is spelt with other letters stays as it is. */
const PLAIN = /^[a-z]{4,30}$/;
const VOWEL = /[aeiouy]/;
const SHORT = /^[^aeiou][aeiou][^aeiouwxy]$/;
const DOUBLE = /([bdfgmnprt])\1$/;
/** Words that only look as if they had an ending. */
const WHOLE = new Set(
  "news this thus always alias analysis basis bias bonus bus campus canvas census chaos corpus during evening gas ies iris lens mathematics nothing anything something everything physics plus process series species status string thing virus yes access address process class less across business being morning wedding building united".split(
    " ",
  ),
);

/**
 * The stem that the forms of an English word have in common (Porter's first step: plurals, -ed, -ing), or undefined where
 * the word is its own stem. Later steps of Porter's bring together words that mean different things, in English and more
 * so in the languages it was not made for, and find nothing more in return.
 */
export function englishStem(word: string): string | undefined {
  if (!mayHaveEnding(word, 0, word.length)) return undefined;
  const stem = known.get(word);
  if (stem !== undefined) return stem === "" ? undefined : stem;
  const made = stemAnew(word);
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(word, made ?? "");
  return made;
}

const MAX_KNOWN = 50_000;
/** Stems of words seen lately; empty where a word is its own. */
const known = new Map<string, string>();

const SHORTEST = 4;
const CAPITAL_TO_SMALL = 0x20;
const [D, E, G, S] = [..."degs"].map((char) => char.charCodeAt(0));

/** Most words end otherwise than an ending does: they need not be looked at any further. */
export function mayHaveEnding(text: string, start: number, end: number): boolean {
  if (end - start < SHORTEST) return false;
  const last = text.charCodeAt(end - 1) | CAPITAL_TO_SMALL;
  return last === S || last === E || last === D || last === G;
}

function stemAnew(word: string): string | undefined {
  if (!PLAIN.test(word) || WHOLE.has(word)) return undefined;
  const stem = withoutE(withoutParticiple(withoutPlural(word)));
  return stem === word ? undefined : stem;
}

function withoutPlural(word: string): string {
  if (word.endsWith("sses")) return word.slice(0, -2);
  if (word.endsWith("ies")) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  if (/(?:ch|sh|x)es$/.test(word)) return word.slice(0, -2);
  return /(?:[^s]|^)s$/.test(word) && !/(?:us|is)$/.test(word) ? word.slice(0, -1) : word;
}

function withoutParticiple(word: string): string {
  const cut = word.endsWith("ing") ? 3 : word.endsWith("ed") && !word.endsWith("eed") ? 2 : 0;
  const stem = cut === 0 ? "" : word.slice(0, -cut);
  if (stem === "us") return "use";
  if (stem.length < 3 || !VOWEL.test(stem)) return word;
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (DOUBLE.test(stem)) return stem.slice(0, -1);
  // hoping comes from hope, hopping from hop.
  return stem.length === 3 && SHORT.test(stem) ? `${stem}e` : stem;
}

/** Longer words meet without their last e: cache and caches, create and creating. */
function withoutE(word: string): string {
  return word.length > 4 && word.endsWith("e") ? word.slice(0, -1) : word;
}

const ARABIC_ARTICLES = ["وال", "بال", "كال", "فال", "لل", "ال"];

/** The word without its article, where enough of a word is left. */
export function arabicStem(word: string): string | undefined {
  const article = ARABIC_ARTICLES.find((each) => word.startsWith(each));
  return article !== undefined && word.length - article.length >= 3 ? word.slice(article.length) : undefined;
}
