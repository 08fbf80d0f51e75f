/** Plain texts that a regex asks for: what is cheap to look for before it is run. */
import { RE2JS } from "re2js";

export interface RegexLiterals {
  /** Every match begins with it, as it stands. */
  readonly prefix: string | undefined;
  /** Folded (`foldText`), every match has it. The longest one found. */
  readonly required: string | undefined;
}

const PLAIN = /^[A-Za-z0-9 _:/@,"'<>=!;%&~`#-]$/;
const ESCAPED = /^[!-/:-@[-`{-~]$/;
const REPEATED = /^\{\d+(,\d*)?\}/;

/**
 * Literals by a cautious look at the source: where it is not sure what a part means, it looks no further, and a regex
 * with alternatives has none.
 */
export function literalsOf(regex: RE2JS): RegexLiterals {
  const source = regex.pattern();
  if (source.includes("|")) return { prefix: undefined, required: undefined };
  const isCased = (regex.flags() & RE2JS.CASE_INSENSITIVE) === 0;
  const beginsText = source.startsWith("^") && (regex.flags() & RE2JS.MULTILINE) === 0;
  const runs = runsOf(source);
  const [first] = runs;
  const prefix = beginsText && isCased && first?.at === 1 ? first.text : undefined;
  const longest = runs.reduce((best, { text }) => (text.length > best.length ? text : best), "");
  return { prefix, required: longest === "" ? undefined : foldText(longest) };
}

interface Run {
  readonly at: number;
  text: string;
}

/** The plain texts of a source that every match has, in order. */
function runsOf(source: string): Run[] {
  const runs: Run[] = [];
  let open: Run | undefined;
  for (let at = 0; at < source.length; at++) {
    const char = source[at] as string;
    const next = source[at + 1] ?? "";
    if (PLAIN.test(char) || (char === "\\" && ESCAPED.test(next))) {
      if (!open) {
        open = { at, text: "" };
        runs.push(open);
      }
      open.text += char === "\\" ? next : char;
      if (char === "\\") at++;
      continue;
    }
    const repeated = char === "{" ? REPEATED.exec(source.slice(at))?.[0] : undefined;
    if (char === "*" || char === "?" || repeated !== undefined) {
      // It may take the character before it away.
      if (open) open.text = open.text.slice(0, -1);
      at += (repeated?.length ?? 1) - 1;
    } else if (char !== "+" && char !== "." && char !== "^" && char !== "$" && char.charCodeAt(0) < 0x80) break;
    open = undefined;
  }
  return runs.filter(({ text }) => text !== "");
}

/**
 * A text with its case folded. What a regex of ASCII letters matches whatever the case has the same folded text: beside
 * those letters they match the Kelvin sign and the long s.
 */
export function foldText(text: string): string {
  return text.toLowerCase().replaceAll("\u017f", "s");
}

/** The least text that sorts after all that begin with a prefix of `literalsOf`. */
export function afterPrefix(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
