import type { CommandContext, CommandNode, Leaf } from "./command.ts";
import { commandRoot, WORD_ALIASES } from "./command-root.ts";
import { CliError, EXIT, type ExitCode, exitCodeOfStatus, UsageError } from "./exit.ts";
import { asksForHelp, isFlag, nameWords, parseTokens, spellings, splitInline } from "./flag-parser.ts";
import { readFlagValues } from "./flag-values.ts";
import { flagsOf, GLOBAL_FLAGS, type GlobalValues, targetOf } from "./global-flags.ts";
import { createInputReader } from "./input-reader.ts";
import { describeError, isCoded, say } from "./output.ts";

/**
 * Runs one command line and resolves to its exit code. citty describes the commands and renders their help; finding
 * the command and reading its flags is done here, because citty passes over unknown flags and surplus arguments,
 * keeps only the last of a repeated flag and takes every `--no-x` for a negation.
 */
export async function runCommandLine(tokens: readonly string[]): Promise<ExitCode> {
  try {
    const found = await findCommand(tokens);
    const { leaf } = found.node;
    if (asksForHelp(found.rest, flagsOf(leaf))) {
      const { printHelp } = await import("./help.ts");
      await printHelp(found.node, found.words, process.stdout);
      return EXIT.ok;
    }
    if (!leaf || (found.node.subCommands && found.strayWord !== undefined)) return await refuseWord(found);
    return await runLeaf(leaf, found.rest, found.words);
  } catch (error) {
    return explain(error as Error);
  }
}

function explain(error: Error): ExitCode {
  say(describeError(error));
  if (error instanceof CliError) return error.exitCode;
  return isCoded(error) ? exitCodeOfStatus(error.status) : EXIT.user;
}

interface Found {
  readonly node: CommandNode;
  /** The command's words as typed, `svc` first. */
  readonly words: readonly string[];
  /** What follows the words, and the global flags that stood before or between them. */
  readonly rest: readonly string[];
  /** The word that stands where a subcommand was expected. */
  readonly strayWord: string | undefined;
}

/** Follows the words down the tree. Only global flags may stand before the last of them. */
async function findCommand(tokens: readonly string[]): Promise<Found> {
  const globals = spellings(GLOBAL_FLAGS);
  const leading: string[] = [];
  const words = ["svc"];
  let node: CommandNode = commandRoot;
  let index = 0;
  while (node.subCommands && index < tokens.length) {
    const token = tokens[index] as string;
    if (!isFlag(token)) {
      const next: CommandNode | undefined = await subCommandOf(node, token);
      if (!next) return { node, words, rest: [...leading, ...tokens.slice(index)], strayWord: token };
      words.push(token);
      node = next;
      index++;
      continue;
    }
    const { spelling, inline } = splitInline(token);
    const name = globals.get(spelling) as keyof typeof GLOBAL_FLAGS | undefined;
    if (token !== "--help" && token !== "-h" && name === undefined) {
      if (node.leaf) break;
      throw new UsageError(
        `unknown flag ${spelling} before the command; ${[...globals.keys()].join(" ")} may stand there`,
      );
    }
    leading.push(token);
    index++;
    if (name && GLOBAL_FLAGS[name].kind !== "switch" && inline === undefined && index < tokens.length) {
      leading.push(tokens[index++] as string);
    }
  }
  return { node, words, rest: [...leading, ...tokens.slice(index)], strayWord: undefined };
}

async function subCommandOf(node: CommandNode, word: string): Promise<CommandNode | undefined> {
  const key = node === commandRoot ? (WORD_ALIASES.get(word) ?? word) : word;
  const entry = Object.hasOwn(node.subCommands ?? {}, key) ? node.subCommands?.[key] : undefined;
  return typeof entry === "function" ? entry() : entry;
}

async function refuseWord({ node, words, strayWord }: Found): Promise<ExitCode> {
  const { printHelp } = await import("./help.ts");
  if (strayWord === undefined) {
    await printHelp(node, words, process.stderr);
    say("svc: no command given");
  } else {
    const known = Object.keys(node.subCommands ?? {}).join(", ");
    say(`svc: unknown command ${JSON.stringify(strayWord)}; ${words.join(" ")} has ${known}`);
  }
  return EXIT.user;
}

async function runLeaf(leaf: Leaf, tokens: readonly string[], words: readonly string[]): Promise<ExitCode> {
  const allFlags = flagsOf(leaf);
  const { textsByFlag, words: argWords } = parseTokens(tokens, allFlags);
  const args = nameWords(argWords, leaf.args);
  const reader = createInputReader();
  const flags = await readFlagValues(textsByFlag, allFlags, reader);
  const globals = flags as GlobalValues;
  if (leaf.confirm && !flags["yes"]) throw new UsageError(`${words.join(" ")} cannot be undone; add --yes to go ahead`);
  const context: CommandContext = {
    get target() {
      return targetOf(globals);
    },
    globals,
    reader,
  };
  return leaf.run({ args, flags }, context);
}
