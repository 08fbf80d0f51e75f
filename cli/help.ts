import { type ArgsDef, type CommandDef, renderUsage } from "citty";
import { COMMAND_SECTIONS, ROOT_EXAMPLES, WORD_ALIASES } from "./command-root.ts";
import { wantsColor } from "./io/output.ts";
import type { CommandNode, Leaf } from "./parse/command-spec.ts";
import type { FlagSpecs } from "./parse/flag-parser.ts";
import { shownFlagsOf } from "./parse/global-flags.ts";

/** Writes a command's help as citty renders it. `words` are the command as typed, `svc` first. */
export async function printHelp(
  node: CommandNode,
  words: readonly string[],
  stream: NodeJS.WriteStream & { isTTY?: boolean },
): Promise<void> {
  const isRoot = words.length === 1;
  const usage = await renderUsage(isRoot ? rootDef(node) : await commandDef(node, words.join(" ")));
  const sections = isRoot ? await rootSections(node) : "";
  const tidy = [usage.trimEnd(), sections, footer(node.leaf, isRoot ? ROOT_EXAMPLES : undefined)]
    .filter((part) => part !== "")
    .join("\n\n")
    .replace(/ +$/gm, "");
  const text = `${wantsColor(stream) ? tidy : Bun.stripANSI(tidy)}\n`;
  await new Promise<void>((resolve) => stream.write(text, () => resolve()));
}

/** Flags as citty knows them. */
export function cittyFlags(flags: FlagSpecs): ArgsDef {
  const args: ArgsDef = {};
  for (const [name, spec] of Object.entries(flags)) {
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

async function commandDef({ description, leaf, subCommands }: CommandNode, name: string): Promise<CommandDef> {
  const args: ArgsDef = {};
  for (const [arg, { summary, optional }] of Object.entries(leaf?.args ?? {})) {
    args[arg] = { type: "positional", description: summary, required: !optional };
  }
  const described: [string, CommandDef][] = [];
  for (const [word, entry] of Object.entries(subCommands ?? {})) {
    described.push([word, { meta: { description: await descriptionOf(entry) } }]);
  }
  return {
    meta: { name, description },
    args: { ...args, ...cittyFlags(shownFlagsOf(leaf)) },
    ...(subCommands && { subCommands: Object.fromEntries(described) }),
  };
}

/** Shows the first-level words by section, which citty cannot do. */
function rootDef({ description, leaf }: CommandNode): CommandDef {
  const command = { type: "positional", description: "One of the commands below", required: true } as const;
  return { meta: { name: "svc", description }, args: { command, ...cittyFlags(shownFlagsOf(leaf)) } };
}

async function rootSections({ subCommands }: CommandNode): Promise<string> {
  const labelOf = (word: string) => [word, ...aliasesOf(word)].join(", ");
  const width = Math.max(...Object.keys(subCommands ?? {}).map((word) => labelOf(word).length));
  const sections = Object.entries(COMMAND_SECTIONS).map(async ([title, commands]) => {
    const lines = Object.entries(commands).map(
      async ([word, load]) => `  ${labelOf(word).padEnd(width)}  ${await descriptionOf(load)}`,
    );
    return [title.toUpperCase(), "", ...(await Promise.all(lines))].join("\n");
  });
  return `${(await Promise.all(sections)).join("\n\n")}\n\nUse svc <command> --help for more information about a command.`;
}

async function descriptionOf(entry: CommandNode | (() => Promise<CommandNode>)): Promise<string> {
  return (typeof entry === "function" ? await entry() : entry).description;
}

const aliasesOf = (word: string): string[] => [...WORD_ALIASES].flatMap(([alias, of]) => (of === word ? alias : []));

function footer(leaf: Leaf | undefined, examples: readonly string[] = leaf?.examples ?? []): string {
  const routes = (leaf?.routes ?? []).map((route) => route.replace(/:([a-zA-Z]+)/g, "<$1>"));
  const parts = [
    examples.length > 0 ? `EXAMPLES\n\n${examples.map((example) => `  svc ${example}`).join("\n")}` : "",
    routes.length > 0 ? `Calls ${routes.join(" or ")}.` : "",
    "Exit codes: 0 success, 1 user error or 4xx, 2 5xx, 3 server unreachable.",
  ];
  return parts.filter((part) => part !== "").join("\n\n");
}
