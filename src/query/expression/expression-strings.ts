/** Strings and sizes. A null, missing or wrongly typed operand gives null. */
import type { Json } from "../../protocol/json.ts";
import { below } from "./aggregate-faults.ts";
import { type Evaluate, type OperatorParser, parseArguments, parseNamed } from "./expression-types.ts";

export const STRING_OPERATORS: readonly [string, OperatorParser][] = [
  ["$concat", (operand, where, scope) => concat(parseArguments(operand, where, scope, 0, Number.POSITIVE_INFINITY))],
  ["$split", (operand, where, scope) => split(parseArguments(operand, where, scope, 2))],
  ["$replaceOne", replacer((input, find, replacement) => input.replace(find, () => replacement))],
  ["$replaceAll", replacer((input, find, replacement) => input.replaceAll(find, () => replacement))],
  ["$trim", trimmer(true, true)],
  ["$ltrim", trimmer(true, false)],
  ["$rtrim", trimmer(false, true)],
  ["$strLenBytes", ofString((text) => Buffer.byteLength(text, "utf8"))],
  ["$strLenCP", ofString(countCodePoints)],
  ["$size", (operand, where, scope) => size(parseArguments(operand, where, scope, 1))],
];

/** A result longer than this becomes null, because repeated doubling must not exhaust memory. */
const MAX_RESULT_CHARS = 16 << 20;

function concat(parts: readonly Evaluate[]): Evaluate {
  return (doc) => {
    let text = "";
    for (const part of parts) {
      const value = part(doc);
      if (typeof value !== "string") return null;
      text += value;
      if (text.length > MAX_RESULT_CHARS) return null;
    }
    return text;
  };
}

function split([input, delimiter]: readonly Evaluate[]): Evaluate {
  return (doc) => {
    const text = input?.(doc);
    const by = delimiter?.(doc);
    return typeof text === "string" && typeof by === "string" && by !== "" ? text.split(by) : null;
  };
}

function replacer(replace: (input: string, find: string, replacement: string) => string): OperatorParser {
  return (operand, where, scope) => {
    const named = parseNamed(operand, where, ["input", "find", "replacement"]);
    const part = (name: "input" | "find" | "replacement") => scope.parse(named[name], below(where, name)).evaluate;
    const [input, find, replacement] = [part("input"), part("find"), part("replacement")];
    return (doc) => {
      const [text, old, by] = [input(doc), find(doc), replacement(doc)];
      if (typeof text !== "string" || typeof old !== "string" || typeof by !== "string") return null;
      // Does not try a replacement that could grow too large: each character is replaced at most once, and each gap filled once.
      if ((text.length + 1) * (by.length + 1) > MAX_RESULT_CHARS && by.length > old.length) {
        const hits = countHits(text, old);
        if (text.length + hits * (by.length - old.length) > MAX_RESULT_CHARS) return null;
      }
      return replace(text, old, by);
    };
  };
}

function countHits(text: string, find: string): number {
  if (find === "") return text.length + 1;
  let hits = 0;
  for (let at = text.indexOf(find); at >= 0; at = text.indexOf(find, at + find.length)) hits++;
  return hits;
}

/** The characters that are trimmed when `chars` is absent: NUL, the ASCII and the Unicode spaces. */
const WHITESPACE: ReadonlySet<string> = new Set(
  "\0 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a",
);

function trimmer(left: boolean, right: boolean): OperatorParser {
  return (operand, where, scope) => {
    const named = parseNamed(operand, where, ["input"], ["chars"]);
    const input = scope.parse(named.input, below(where, "input")).evaluate;
    const chars = named.chars === undefined ? undefined : scope.parse(named.chars, below(where, "chars")).evaluate;
    return (doc) => {
      const text = input(doc);
      const cut = chars ? chars(doc) : undefined;
      if (typeof text !== "string" || (chars && typeof cut !== "string")) return null;
      return trim(text, typeof cut === "string" ? new Set(cut) : WHITESPACE, left, right);
    };
  };
}

function trim(text: string, cut: ReadonlySet<string>, left: boolean, right: boolean): string {
  const points = [...text];
  let start = 0;
  let end = points.length;
  if (left) while (start < end && cut.has(points[start] as string)) start++;
  if (right) while (end > start && cut.has(points[end - 1] as string)) end--;
  return points.slice(start, end).join("");
}

function ofString(measure: (text: string) => number): OperatorParser {
  return (operand, where, scope) => {
    const [input] = parseArguments(operand, where, scope, 1);
    return (doc): Json => {
      const text = input?.(doc);
      return typeof text === "string" ? measure(text) : null;
    };
  };
}

function countCodePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

function size([operand]: readonly Evaluate[]): Evaluate {
  return (doc) => {
    const value = operand?.(doc);
    return Array.isArray(value) ? value.length : null;
  };
}
