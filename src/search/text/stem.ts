/** Endings are removed only from plain English words; a word with other letters stays as it is. */
const PLAIN = /^[a-z]{4,30}$/;
const VOWEL = /[aeiouy]/;
const SHORT = /^[^aeiou][aeiou][^aeiouwxy]$/;
const DOUBLE = /..([bdfgmnprt])\1$/;
/** Words that only look as if they had an ending. */
const WHOLE = new Set(
  "news this thus always alias analysis basis bias bonus bus campus canvas census chaos corpus during evening gas ies iris lens mathematics nothing anything something everything physics plus process series species status string thing virus yes access address process class less across business being morning wedding building united".split(
    " ",
  ),
);

/**
 * A mark behind the stem of a form whose word may end in an e: storing comes from store, sorting from sort. Only such forms match
 * both words, so that past and paste, plan and plane, local and locale stay apart.
 */
const MAYBE_E = "\ue065";

/**
 * Returns what the forms of an English word have in common (Porter's first step: plurals, -ed, -ing), or undefined where the word
 * has no ending. Porter's later steps merge words of different meaning, in English and even more so in the languages for which
 * they were not made, and find nothing more in return.
 */
export function englishStem(word: string): string | undefined {
  if (!mayHaveEnding(word, 0, word.length) || !PLAIN.test(word) || WHOLE.has(word)) return undefined;
  if (word.endsWith("ies")) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
  if (/.(?:[sxzo]|ch|sh)es$/.test(word) && word.length > 4) return word.slice(0, -2) + MAYBE_E;
  const singular = /[^s]s$/.test(word) && !/(?:us|is)$/.test(word) ? word.slice(0, -1) : word;
  const stem = withoutParticiple(singular);
  return stem === word ? undefined : stem;
}

const ASKED = /^[a-z]{3,30}$/;

/** Returns what to look for in place of a plain English word of a query: words as they are written, and stems of other forms. */
export function englishForms(word: string): { exact: string[]; words: string[] } | undefined {
  if (!ASKED.test(word)) return undefined;
  const stem = englishStem(word) ?? word;
  const isOpen = stem.endsWith(MAYBE_E);
  const base = isOpen ? stem.slice(0, -1) : stem;
  const bases = isOpen ? [base, `${base}e`] : [base];
  const cut = /[^e]e$/.test(base) ? base.slice(0, -1) : base;
  return { exact: [...new Set([word, ...bases])], words: [...bases, cut + MAYBE_E] };
}

const SHORTEST = 4;
const CAPITAL_TO_SMALL = 0x20;
const [D, G, S] = [..."dgs"].map((char) => char.charCodeAt(0));

/** Most words do not end like an ending, so they need no closer look. */
export function mayHaveEnding(text: string, start: number, end: number): boolean {
  if (end - start < SHORTEST) return false;
  const last = text.charCodeAt(end - 1) | CAPITAL_TO_SMALL;
  return last === S || last === D || last === G;
}

function withoutParticiple(word: string): string {
  const cut = word.endsWith("ing") ? 3 : word.endsWith("ed") && !word.endsWith("eed") ? 2 : 0;
  const stem = cut === 0 ? "" : word.slice(0, -cut);
  if (stem === "us") return "use";
  if (stem.length < 3 || !VOWEL.test(stem)) return word;
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (DOUBLE.test(stem)) return stem.slice(0, -1);
  // hoping comes from hope, hopping from hop.
  return stem.length === 3 && SHORT.test(stem) ? `${stem}e` : stem + MAYBE_E;
}

const ARABIC_ARTICLES = ["وال", "بال", "كال", "فال", "لل", "ال"];

/** Returns the word without its article, where enough of the word is left. */
export function arabicStem(word: string): string | undefined {
  const article = ARABIC_ARTICLES.find((each) => word.startsWith(each));
  return article !== undefined && word.length - article.length >= 3 ? word.slice(article.length) : undefined;
}
