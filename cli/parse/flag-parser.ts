import { UsageError } from "../io/exit.ts";
import { didYouMean } from "./suggestion.ts";

/**
 * How a flag's text is read. `texts` may be repeated; `list` may be repeated and each value is split at commas; `json` is
 * `<json>`, `@FILE` or `-`; the others may occur once.
 */
type FlagKind = "text" | "switch" | "integer" | "json" | "texts" | "list";

export interface FlagSpec {
  readonly kind: FlagKind;
  readonly summary: string;
  /** How help shows the value, `--limit=<N>`. */
  readonly hint?: string;
  /** Other spellings: one letter (`o` is `-o`) or a word. */
  readonly alias?: string;
  readonly required?: true;
  /** Where the value goes in the request body, as a dotted path. */
  readonly field?: string;
  /** The query parameter that carries the value. */
  readonly query?: string;
}
export type FlagSpecs = Readonly<Record<string, FlagSpec>>;

export interface ArgSpec {
  readonly summary: string;
  readonly optional?: true;
  /** Where the word goes in the request body, as a dotted path. */
  readonly field?: string;
  /** The body needs a whole number there. */
  readonly integer?: true;
  /** Only for the last argument: further words belong to it, joined by NUL, which no word contains. */
  readonly many?: true;
}
export type ArgSpecs = Readonly<Record<string, ArgSpec>>;

/** The tokens of the command line: every occurrence of every flag, as text, and the words between them. */
export interface ParsedTokens {
  readonly textsByFlag: Map<string, string[]>;
  readonly words: string[];
}

/**
 * Splits a command's tokens into flags and words, strictly: an unknown flag, a flag without its value, a value for a
 * switch, or a flag given twice is a {@link UsageError} that names it. A flag with a value takes the next token whatever
 * it looks like (`--sort -ts`), unless that is itself a long flag of the command. `--` ends the flags.
 */
export function parseTokens(tokens: readonly string[], flags: FlagSpecs): ParsedTokens {
  const nameBySpelling = spellings(flags);
  const textsByFlag = new Map<string, string[]>();
  const words: string[] = [];
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as string;
    if (token === "--") {
      words.push(...tokens.slice(index + 1));
      break;
    }
    if (!isFlag(token)) {
      words.push(token);
      continue;
    }
    const { spelling, inline } = splitInline(token);
    const name = nameBySpelling.get(spelling);
    if (name === undefined) throw new UsageError(unknownFlag(spelling, flags));
    const spec = flags[name] as FlagSpec;
    let text = inline;
    if (spec.kind === "switch") {
      text ??= "true";
      if (text !== "true" && text !== "false") throw new UsageError(`${spelling} takes no value (or =true, =false)`);
    } else if (text === undefined) {
      text = tokens[++index];
      if (text === undefined || (text.startsWith("--") && nameBySpelling.has(splitInline(text).spelling))) {
        throw new UsageError(`${spelling} needs a value: ${spelling}=<${spec.hint ?? "value"}>`);
      }
    }
    const texts = textsByFlag.get(name) ?? [];
    if (texts.length > 0 && spec.kind !== "texts" && spec.kind !== "list") {
      throw new UsageError(`${spelling} is given twice; it takes one value`);
    }
    textsByFlag.set(name, [...texts, text]);
  }
  return { textsByFlag, words };
}

/** Whether the tokens contain `--help` or `-h` as a flag, not as the value of another flag. */
export function asksForHelp(tokens: readonly string[], flags: FlagSpecs): boolean {
  const nameBySpelling = spellings(flags);
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as string;
    if (token === "--") return false;
    if (token === "--help" || token === "-h") return true;
    const name = isFlag(token) ? nameBySpelling.get(token) : undefined;
    const next = tokens[index + 1];
    if (name !== undefined && flags[name]?.kind !== "switch" && next !== "--help") index++;
  }
  return false;
}

/** Assigns the words to the arguments' names, in order. A missing or surplus word is a {@link UsageError}. */
export function nameWords(words: readonly string[], args: ArgSpecs): Record<string, string> {
  const names = Object.keys(args);
  const named: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const word = words[index];
    if (word !== undefined) named[name] = word;
    else if (!args[name]?.optional) throw new UsageError(`missing argument <${name}>: ${args[name]?.summary}`);
  }
  const last = names.at(-1);
  if (last !== undefined && args[last]?.many && words.length > names.length) {
    named[last] = words.slice(names.length - 1).join("\0");
    return named;
  }
  if (words.length > names.length) {
    const takes = names.length === 0 ? "none" : names.map((name) => `<${name}>`).join(" ");
    const surplus = JSON.stringify(words[names.length]);
    throw new UsageError(`unexpected argument ${surplus}; the command takes ${takes}${quoting(words, names.length)}`);
  }
  return named;
}

/** Most often the words are one text, and its quotes were forgotten. */
function quoting(words: readonly string[], takes: number): string {
  if (takes === 0) return "";
  return `; if the last ones are one text, quote it: ${JSON.stringify(words.slice(takes - 1).join(" "))}`;
}

/** A lone `-` is a word, because it means stdin or stdout. */
export const isFlag = (token: string): boolean => token.startsWith("-") && token !== "-";

/** `--name=value` → its two halves. */
export function splitInline(token: string): { spelling: string; inline: string | undefined } {
  const at = token.indexOf("=");
  return at < 0
    ? { spelling: token, inline: undefined }
    : { spelling: token.slice(0, at), inline: token.slice(at + 1) };
}

/** Every spelling of every flag, with the flag's name. */
export function spellings(flags: FlagSpecs): Map<string, string> {
  const nameBySpelling = new Map<string, string>();
  for (const [name, { alias }] of Object.entries(flags)) {
    nameBySpelling.set(`--${name}`, name);
    if (alias) nameBySpelling.set(alias.length === 1 ? `-${alias}` : `--${alias}`, name);
  }
  return nameBySpelling;
}

function unknownFlag(spelling: string, flags: FlagSpecs): string {
  const known = Object.keys(flags).map((name) => `--${name}`);
  return `unknown flag ${spelling}${didYouMean(spelling, known)}; the command takes ${known.join(" ")} (a word that begins with - goes after --)`;
}
