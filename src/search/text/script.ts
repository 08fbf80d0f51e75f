/** What a character means to the tokeniser. Unspaced scripts write words without spaces between them. */
export const SCRIPT = {
  gap: 0,
  /** Letters, digits and marks of scripts that separate words by spaces. */
  word: 1,
  /** Punctuation that holds an identifier, a path or a version together when it has words on both sides. */
  joiner: 2,
  /** Han, hiragana and bopomofo. */
  han: 3,
  katakana: 4,
  hangul: 5,
  thai: 6,
  lao: 7,
  khmer: 8,
  myanmar: 9,
  /** Emoji, currency, arrows: each is a word of its own. */
  symbol: 10,
} as const;
export type Script = (typeof SCRIPT)[keyof typeof SCRIPT];

/** From this class up to `symbol`, text is cut by a dictionary and into pairs. */
export const isUnspaced = (script: number): boolean => script >= SCRIPT.han && script <= SCRIPT.myanmar;

const UNKNOWN = 255;
const bmp = new Uint8Array(0x10000).fill(UNKNOWN);
const JOINERS = new Set([..."_.-/:@#+&=?%~'\\’"].map((char) => char.codePointAt(0)!));

/** The class of a code point. */
export function scriptOf(code: number): Script {
  if (code > 0xffff) return judge(code);
  const known = bmp[code]!;
  if (known !== UNKNOWN) return known as Script;
  const script = judge(code);
  bmp[code] = script;
  return script;
}

/** First and last code point, class; the first range that holds a code point counts. */
const RANGES: readonly (readonly [number, number, Script])[] = [
  [0x0e50, 0x0e59, SCRIPT.word],
  [0x0ed0, 0x0ed9, SCRIPT.word],
  [0x17e0, 0x17e9, SCRIPT.word],
  [0x1040, 0x1049, SCRIPT.word],
  [0x0e4f, 0x0e4f, SCRIPT.gap],
  [0x0e5a, 0x0e5b, SCRIPT.gap],
  [0x0e3f, 0x0e3f, SCRIPT.symbol],
  [0x104a, 0x104f, SCRIPT.gap],
  [0x17d4, 0x17d6, SCRIPT.gap],
  [0x17d8, 0x17da, SCRIPT.gap],
  [0x0e01, 0x0e7f, SCRIPT.thai],
  [0x0e80, 0x0eff, SCRIPT.lao],
  [0x1780, 0x17ff, SCRIPT.khmer],
  [0x19e0, 0x19ff, SCRIPT.khmer],
  [0x1000, 0x109f, SCRIPT.myanmar],
  [0xa9e0, 0xa9ff, SCRIPT.myanmar],
  [0xaa60, 0xaa7f, SCRIPT.myanmar],
  [0x2e80, 0x2fdf, SCRIPT.han],
  [0x3005, 0x3007, SCRIPT.han],
  [0x3021, 0x3029, SCRIPT.han],
  [0x3038, 0x303b, SCRIPT.han],
  [0x3041, 0x3096, SCRIPT.han],
  [0x3099, 0x309a, SCRIPT.han],
  [0x309d, 0x309f, SCRIPT.han],
  [0x3100, 0x312f, SCRIPT.han],
  [0x3400, 0x4dbf, SCRIPT.han],
  [0x4e00, 0x9fff, SCRIPT.han],
  [0xf900, 0xfaff, SCRIPT.han],
  [0x20000, 0x3ffff, SCRIPT.han],
  [0x30a1, 0x30fa, SCRIPT.katakana],
  [0x30fc, 0x30ff, SCRIPT.katakana],
  [0x31f0, 0x31ff, SCRIPT.katakana],
  [0xff66, 0xff9f, SCRIPT.katakana],
  [0x1100, 0x11ff, SCRIPT.hangul],
  [0x3130, 0x318f, SCRIPT.hangul],
  [0xa960, 0xa97f, SCRIPT.hangul],
  [0xac00, 0xd7ff, SCRIPT.hangul],
  [0xffa0, 0xffdc, SCRIPT.hangul],
  // These neither join nor separate words: soft hyphen, zero-width joiners, Hebrew punctuation within words.
  [0x00ad, 0x00ad, SCRIPT.word],
  [0x200c, 0x200d, SCRIPT.word],
  [0x05f3, 0x05f4, SCRIPT.word],
  [0xfe00, 0xfe0f, SCRIPT.gap],
];

const WORD = /[\p{L}\p{N}\p{M}]/u;
const SYMBOL = /[\p{Extended_Pictographic}\p{Regional_Indicator}\p{Sc}\p{Sm}\p{So}]/u;
const ASCII_WORD = /[A-Za-z0-9]/;

function judge(code: number): Script {
  if (code >= 0xff01 && code <= 0xff5e) return judge(code - 0xfee0);
  const char = String.fromCodePoint(code);
  if (JOINERS.has(code)) return SCRIPT.joiner;
  if (char === "$") return SCRIPT.symbol;
  if (code < 0x80) return ASCII_WORD.test(char) ? SCRIPT.word : SCRIPT.gap;
  for (const [first, last, script] of RANGES) if (code >= first && code <= last) return script;
  if (SYMBOL.test(char)) return SCRIPT.symbol;
  return WORD.test(char) ? SCRIPT.word : SCRIPT.gap;
}
