/**
 * Our declarations as citty commands. citty finds the command by its words and renders help. We do what it cannot: it
 * drops flags that precede a word, ignores unknown flags and surplus arguments, keeps only the last of a repeated flag,
 * and reads every `--no-x` as a negation.
 */
import type { CommandDef } from "citty";
import { WORD_ALIASES } from "./command-root.ts";
import { cittyFlags, printHelp } from "./help.ts";
import { EXIT, type ExitCode, UsageError } from "./io/exit.ts";
import { createInputReader } from "./io/input-reader.ts";
import { say } from "./io/output.ts";
import type { CommandContext, CommandNode, Leaf } from "./parse/command-spec.ts";
import { asksForHelp, isFlag, nameWords, parseTokens, spellings, splitInline } from "./parse/flag-parser.ts";
import { readFlagValues } from "./parse/flag-values.ts";
import { flagsOf, GLOBAL_FLAGS, type GlobalValues, targetOf } from "./parse/global-flags.ts";
import { didYouMean } from "./parse/suggestion.ts";

/** State that the parts of one command line share. */
export interface LineState {
  /** Whether {@link sealFlags} inserted the first `--`. */
  readonly sealed: boolean;
  /** Global flags before or between the words. */
  readonly before: string[];
  /** Set once a command has run. */
  exitCode: ExitCode | undefined;
}

/**
 * Inserts `--` before the first flag that is not global. citty reads flags at every level of the words, where it does not
 * know a command's own flags: a value such as `-_ver.id` makes it throw.
 */
export function sealFlags(tokens: readonly string[]): { rawArgs: string[]; sealed: boolean } {
  const globals = spellings(GLOBAL_FLAGS);
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as string;
    if (token === "--") break;
    if (!isFlag(token) || isHelp(token)) continue;
    const { spelling, inline } = splitInline(token);
    const name = globals.get(spelling) as keyof typeof GLOBAL_FLAGS | undefined;
    if (name === undefined) return { rawArgs: tokens.toSpliced(index, 0, "--"), sealed: true };
    if (GLOBAL_FLAGS[name].kind !== "switch" && inline === undefined) index++;
  }
  return { rawArgs: [...tokens], sealed: false };
}

const isHelp = (token: string): boolean => token === "--help" || token === "-h";

/** Builds the citty command. `words` are the command as typed, `svc` first. */
export function cittyCommand(node: CommandNode, words: readonly string[], line: LineState): CommandDef {
  const { subCommands } = node;
  // citty skips these, with their values, on its way to the next word.
  const args = cittyFlags(GLOBAL_FLAGS);
  const runWith = async (tokens: string[]) => {
    const seal = line.sealed ? tokens.indexOf("--") : -1;
    line.exitCode ??= await runNode(node, words, seal < 0 ? tokens : tokens.toSpliced(seal, 1));
  };
  if (!subCommands) return { args, run: ({ rawArgs }) => runWith([...line.before, ...rawArgs]) };
  return {
    args,
    subCommands: cittySubCommands(subCommands, words, line),
    setup: ({ rawArgs }) => {
      const { flags, word } = beforeWord(rawArgs);
      line.before.push(...flags);
      if (word !== undefined && !knownWords(words, subCommands).includes(word)) {
        throw unknownWord(word, words, Object.keys(subCommands));
      }
    },
    // citty calls this after a subcommand too.
    run: () => runWith(line.before),
  };
}

type SubCommands = NonNullable<CommandNode["subCommands"]>;

function cittySubCommands(subCommands: SubCommands, words: readonly string[], line: LineState) {
  // The object has no prototype, so that no word matches an inherited name.
  const commands: Record<string, () => Promise<CommandDef>> = Object.create(null);
  for (const word of knownWords(words, subCommands)) {
    const entry = subCommands[word] ?? subCommands[WORD_ALIASES.get(word) as string];
    commands[word] = async () =>
      cittyCommand((typeof entry === "function" ? await entry() : entry) as CommandNode, [...words, word], line);
  }
  return commands;
}

/** The words that may follow, including aliases of first words. */
function knownWords(words: readonly string[], subCommands: SubCommands): string[] {
  return [...Object.keys(subCommands), ...(words.length === 1 ? WORD_ALIASES.keys() : [])];
}

/** The flags before the next word: global ones, or all that is left where no word follows. */
function beforeWord(tokens: readonly string[]): { flags: string[]; word?: string } {
  const globals = spellings(GLOBAL_FLAGS);
  const flags: string[] = [];
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as string;
    if (!isFlag(token)) return { flags, word: token };
    if (token === "--") return { flags: [...flags, ...tokens.slice(index)] };
    const { spelling, inline } = splitInline(token);
    const name = globals.get(spelling) as keyof typeof GLOBAL_FLAGS | undefined;
    flags.push(token);
    if (name && GLOBAL_FLAGS[name].kind !== "switch" && inline === undefined && index + 1 < tokens.length) {
      flags.push(tokens[++index] as string);
    }
  }
  return { flags };
}

function unknownWord(word: string, words: readonly string[], known: readonly string[]): UsageError {
  return new UsageError(
    `unknown command ${JSON.stringify(word)}${didYouMean(word, known)}; ${words.join(" ")} has ${known.join(", ")}`,
  );
}

async function runNode(node: CommandNode, words: readonly string[], tokens: readonly string[]): Promise<ExitCode> {
  const { leaf } = node;
  if (asksForHelp(tokens, flagsOf(leaf))) {
    await printHelp(node, words, process.stdout);
    return EXIT.ok;
  }
  if (leaf) return runLeaf(leaf, words, tokens);
  refuseFlags(tokens);
  await printHelp(node, words, process.stderr);
  say("svc: no command given");
  return EXIT.user;
}

/** Where a word was expected and a flag stands, the error names the flag. */
function refuseFlags(tokens: readonly string[]): void {
  const known = [...spellings(GLOBAL_FLAGS).keys()];
  const stray = tokens.find((token) => isFlag(token) && !known.includes(splitInline(token).spelling));
  if (stray === undefined || stray === "--") return;
  const { spelling } = splitInline(stray);
  throw new UsageError(
    `unknown flag ${spelling} before the command${didYouMean(spelling, known)}; ${known.join(" ")} may stand there`,
  );
}

async function runLeaf(leaf: Leaf, words: readonly string[], tokens: readonly string[]): Promise<ExitCode> {
  const allFlags = flagsOf(leaf);
  const { textsByFlag, words: argWords } = parseTokens(tokens, allFlags);
  const args = nameWords(argWords, leaf.args);
  const reader = createInputReader();
  const flags = await readFlagValues(textsByFlag, allFlags, reader);
  const globals = flags as GlobalValues;
  if (leaf.confirm && !flags["yes"]) throw new UsageError(`${words.join(" ")} cannot be undone; add --yes to go ahead`);
  const context: CommandContext = { target: () => targetOf(globals), globals, reader };
  return leaf.run({ args, flags }, context);
}
