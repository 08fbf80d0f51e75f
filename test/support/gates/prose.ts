/**
 * Where words for people are made. Below the edge a refusal is a code and facts, and only the tables of `src/protocol/` word it: so
 * a file that makes refusals holds no literal that reads as words, however it would reach one. Words may stand in a log line,
 * in an error of the program, which only the log shows, in SQL and in what people are shown of work under way. In the rooms
 * that talk to others, where words for the log abound, only what makes a refusal is looked into.
 */
import { join } from "node:path";

const STRICT = ["account", "acl", "change", "domain", "files", "query", "space"];
const MAKERS_ONLY = ["crypto", "engine", "search", "sync"];
const MAKES_REFUSALS = /from "(?:\.\.\/)+protocol\/(?:errors|refusals)\.ts"/;
const MAKER = /^(?:new SvcError|svcError|refusal|refuse|refused|refusedAs|refusedPart|validationFault)$/;
const FOR_THE_LOG = /[lL]og\.\w+$|\.warn$|^new \w*(?:Error|Damaged|Fault|Lost)$|\.startLongWork$|^Symbol$/;
const SQL = /^\s*(?:SELECT|PRAGMA)\b/;

/** One line for each literal of the project at `root` that words a refusal below the edge. */
export async function findProse(root: string): Promise<string[]> {
  const found: string[] = [];
  for await (const path of new Bun.Glob(`src/{${[...STRICT, ...MAKERS_ONLY].join(",")}}/**/*.ts`).scan({ cwd: root })) {
    if (path.endsWith(".test.ts")) continue;
    const source = await Bun.file(join(root, path)).text();
    if (!MAKES_REFUSALS.test(source)) continue;
    const strict = STRICT.some((room) => path.startsWith(`src/${room}/`));
    for (const { text, calls, line } of findWords(source)) {
      const isWording =
        calls.some((name) => MAKER.test(name)) || (strict && !calls.some((name) => FOR_THE_LOG.test(name)));
      if (isWording && !SQL.test(text)) found.push(`${path}:${line} words a refusal: ${text.slice(0, 60)}`);
    }
  }
  return found.sort();
}

/** A literal of more than one word, the calls it is an argument of, outermost first, and its line. */
interface Words {
  readonly text: string;
  readonly calls: readonly string[];
  readonly line: number;
}

const OPENING = /[([{]/;
const CALLEE = /(?:new\s+)?[\w$.?#!]+$/;
const SPACED = /[A-Za-z]{2,}[,;:]? [\w$(]|\) [a-z]{2,}/;

/** Every literal of a TypeScript source that reads as words. */
function findWords(source: string): Words[] {
  const found: Words[] = [];
  const calls: string[] = [];
  const lineAt = (at: number): number => source.slice(0, at).split("\n").length;
  let at = 0;

  function literal(quote: string): void {
    const from = at++;
    let text = "";
    while (at < source.length && source[at] !== quote) {
      if (source[at] === "\\") {
        text += source.slice(at, at + 2);
        at += 2;
      } else if (quote === "`" && source[at] === "$" && source[at + 1] === "{") {
        text += "$()";
        at += 2;
        code("}");
      } else text += source[at++];
    }
    at++;
    if (SPACED.test(text)) found.push({ text, calls: calls.filter((name) => name !== ""), line: lineAt(from) });
  }

  /** Goes on to the bracket that closes, and past it. */
  function code(closing: string): void {
    while (at < source.length && source[at] !== closing) {
      const char = source[at] as string;
      if (source.startsWith("//", at)) at = endOf("\n");
      else if (source.startsWith("/*", at)) at = endOf("*/");
      else if (char === '"' || char === "'" || char === "`") literal(char);
      else if (char === "/" && isRegExp()) regExp();
      else if (OPENING.test(char)) {
        calls.push(char === "(" ? (CALLEE.exec(source.slice(Math.max(0, at - 80), at))?.[0] ?? "") : "");
        at++;
        code(char === "(" ? ")" : char === "[" ? "]" : "}");
        calls.pop();
      } else at++;
    }
    at++;
  }

  const endOf = (end: string): number => {
    const found = source.indexOf(end, at + 2);
    return found === -1 ? source.length : found + end.length;
  };
  const isRegExp = (): boolean => /(?:^|[=(,:[!&|?{};\n]|return|=>)\s*$/.test(source.slice(Math.max(0, at - 20), at));
  function regExp(): void {
    let inClass = false;
    for (at++; at < source.length && (inClass || source[at] !== "/"); at++) {
      if (source[at] === "\\") at++;
      else if (source[at] === "[") inClass = true;
      else if (source[at] === "]") inClass = false;
    }
    at++;
  }

  while (at < source.length) code("");
  return found;
}
