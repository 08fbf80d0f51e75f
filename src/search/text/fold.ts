const ASCII = /^\p{ASCII}*$/u;
/** Scripts whose marks say how a letter is pronounced, not which letter it is. */
const MARKS_FOLD = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}]/u;
const MARKS = /[\p{Mn}\p{Me}]+/gu;
/** Tatweel, soft hyphen, zero-width characters, Hebrew geresh and gershayim, variation selectors. */
const UNSEEN = /[\ufe00-\ufe0f\u0640\u00ad\u200b-\u200d\u2060\ufeff\u05f3\u05f4]+/g;
const LETTERS: Readonly<Record<string, string>> = {
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ø: "o",
  ł: "l",
  đ: "d",
  ð: "d",
  þ: "th",
  ı: "i",
  ς: "σ",
  ى: "ي",
  ی: "ي",
  ک: "ك",
  ة: "ه",
  ٱ: "ا",
};
const LETTER = new RegExp(`[${Object.keys(LETTERS).join("")}]`, "g");
const DIGIT = /\p{Nd}/gu;
const MAX_KNOWN = 20_000;

const known = new Map<string, string>();

/** Folds the variants in which people write a text into one form: case, width, diacritics, ligatures, digits of other scripts. */
export function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const folded = known.get(text);
  if (folded !== undefined) return folded;
  if (known.size >= MAX_KNOWN) known.clear();
  const made = foldAnew(text);
  known.set(text, made);
  return made;
}

function foldAnew(text: string): string {
  let folded = text.normalize("NFKC").toLowerCase().replace(UNSEEN, "");
  if (MARKS_FOLD.test(folded)) folded = folded.normalize("NFD").replace(MARKS, "").normalize("NFC");
  return folded.replace(LETTER, (letter) => LETTERS[letter]!).replace(DIGIT, asciiDigit);
}

/** Decimal digits are encoded in runs of ten, and the first of a run is its zero. */
function asciiDigit(char: string): string {
  const code = char.codePointAt(0)!;
  if (code < 0x80) return char;
  let zero = code;
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String((code - zero) % 10);
}
