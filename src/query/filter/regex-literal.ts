/** Finds plain texts that every match of a regex contains: they are cheap to look for before the regex is run. */
import { RE2JS } from "re2js";

export interface RegexLiterals {
  /** Every match begins with this text, character for character. */
  readonly prefix: string | undefined;
  /** Every match contains this text once both are folded (`foldText`). The longest such text that was found. */
  readonly required: string | undefined;
}

const PLAIN = /^[A-Za-z0-9 _:/@,"'<>=!;%&~`#-]$/;
const ESCAPED = /^[!-/:-@[-`{-~]$/;
const REPEATED = /^\{\d+(,\d*)?\}/;

/**
 * Finds literals by reading the source cautiously: it stops at the first part whose meaning it is not sure of, and finds none in
 * a regex with alternatives.
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

/** Returns the plain texts of a source that every match contains, in order. */
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
      // The quantifier may remove the character before it.
      if (open) open.text = open.text.slice(0, -1);
      at += (repeated?.length ?? 1) - 1;
    } else if (char !== "+" && char !== "." && char !== "^" && char !== "$" && char.charCodeAt(0) < 0x80) break;
    open = undefined;
  }
  return runs.filter(({ text }) => text !== "");
}

/**
 * Folds the case of a text. Texts that a case-insensitive regex of ASCII letters treats as the same fold to the same text; such a
 * regex also matches the Kelvin sign and the long s.
 */
export function foldText(text: string): string {
  return text.toLowerCase().replaceAll("\u017f", "s");
}

/** Returns the least text that sorts after all texts that begin with a prefix from `literalsOf`. */
export function afterPrefix(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
