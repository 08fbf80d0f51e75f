import { type ArgsDef, type CommandDef, renderUsage } from "citty";
import type { CommandNode, Leaf } from "./command.ts";
import { commandRoot, WORD_ALIASES } from "./command-root.ts";
import { flagsOf } from "./global-flags.ts";
import { wantsColor } from "./output.ts";

/** Writes a command's help as citty renders it. `words` are the command as typed, `svc` first. */
export async function printHelp(
  node: CommandNode,
  words: readonly string[],
  stream: NodeJS.WriteStream & { isTTY?: boolean },
): Promise<void> {
  const usage = await renderUsage(await describe(node, words.join(" ")));
  const tidy = (wantsColor(stream) ? usage : Bun.stripANSI(usage)).replace(/ +$/gm, "").trimEnd();
  const text = `${tidy}\n${footer(node)}\n`;
  await new Promise<void>((resolve) => stream.write(text, () => resolve()));
}

async function describe(node: CommandNode, name: string): Promise<CommandDef> {
  const subCommands: Record<string, CommandDef> = {};
  for (const [word, entry] of Object.entries(node.subCommands ?? {})) {
    const { meta } = typeof entry === "function" ? await entry() : entry;
    const alias = node === commandRoot ? aliasesOf(word) : [];
    subCommands[word] = { meta: { description: meta.description, ...(alias.length > 0 && { alias }) } };
  }
  return {
    meta: { name, description: node.meta.description },
    args: cittyArgs(node.leaf),
    ...(node.subCommands && { subCommands }),
  };
}

const aliasesOf = (word: string): string[] => [...WORD_ALIASES].flatMap(([alias, of]) => (of === word ? alias : []));

function cittyArgs(leaf: Leaf | undefined): ArgsDef {
  const args: ArgsDef = {};
  for (const [name, { summary, optional }] of Object.entries(leaf?.args ?? {})) {
    args[name] = { type: "positional", description: summary, required: !optional };
  }
  for (const [name, spec] of Object.entries(flagsOf(leaf))) {
    const description = spec.summary + (spec.alias && spec.alias.length > 1 ? ` (also --${spec.alias})` : "");
    const alias = spec.alias?.length === 1 ? spec.alias : [];
    if (spec.kind === "switch") args[name] = { type: "boolean", description, alias };
    else
      args[name] = {
        type: "string",
        description,
        alias,
        valueHint: spec.hint ?? HINTS[spec.kind],
        required: spec.required === true,
      };
  }
  return args;
}

const HINTS = { text: "text", integer: "N", json: "json|@FILE|-", texts: "text", list: "a,b" } as const;

function footer({ leaf }: CommandNode): string {
  const routes = (leaf?.routes ?? []).map((route) => route.replace(/:([a-zA-Z]+)/g, "<$1>"));
  const call = routes.length > 0 ? `\nCalls ${routes.join(" or ")}.\n` : "";
  return `${call}\nExit codes: 0 success, 1 user error or 4xx, 2 5xx, 3 server unreachable.`;
}
