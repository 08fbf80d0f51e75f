import type { ApiSpec, CommandNode, Input, Leaf, LocalSpec, Route } from "../parse/command-spec.ts";
import type { ArgSpec, ArgSpecs, FlagSpecs } from "../parse/flag-parser.ts";

const FILE_FLAG = {
  file: { kind: "text", hint: "FILE", summary: "JSON body (- is stdin); flags given beside it are laid over it" },
} as const satisfies FlagSpecs;
const YES_FLAG = {
  yes: { kind: "switch", summary: "Really do it; without it the command refuses" },
} as const satisfies FlagSpecs;

/** The meaning of the names in routes. */
const ID_SUMMARIES: Readonly<Record<string, string>> = {
  spaceId: "Id of the space",
  objectId: "Id of the object",
  blockId: "Id of the block",
  msgId: "Id of the message",
  emoji: "The reaction",
  typeId: "Id of the type",
  propId: "Id of the property",
  defId: "Id of the dataset definition",
  fieldId: "Id of the field definition",
  fileId: "Id of the file",
  identity: "Account id",
  recordId: "Record id of the invite",
  peerId: "Peer id of the device",
  name: "Name of the derived space",
  id: "Id of the process, or of the trigger",
  runId: "Id of the run",
  program: "Name of the program",
  version: "Its version, a whole number from 1",
};

/** Declares the commands under one word. `own` is what the word itself does, if anything. */
export function group(
  description: string,
  subCommands: NonNullable<CommandNode["subCommands"]>,
  own?: CommandNode,
): CommandNode {
  return { ...own, description, subCommands };
}

/** Declares a command that is one call of the API. */
export function command<
  const R extends Route,
  const A extends ArgSpecs = Record<never, never>,
  const F extends FlagSpecs = Record<never, never>,
>(spec: ApiSpec<R, A, F>): CommandNode {
  return node(spec, {
    args: { ...idArgs(spec.route), ...spec.args },
    flags: { ...spec.flags, ...(spec.file && FILE_FLAG), ...(spec.confirm && YES_FLAG) },
    confirm: spec.confirm === true,
    stream: spec.stream === true,
    routes: spec.other ? [spec.route, spec.other.route] : [spec.route],
    run: async (input, context) => {
      const { callApi } = await import("./api-call.ts");
      return callApi(spec as unknown as ApiSpec, input, context);
    },
  });
}

/** Declares a command with code of its own instead of one API call. */
export function localCommand<
  const A extends ArgSpecs = Record<never, never>,
  const F extends FlagSpecs = Record<never, never>,
>(spec: LocalSpec<A, F>): CommandNode {
  return node(spec, {
    args: spec.args ?? {},
    flags: spec.flags ?? {},
    confirm: false,
    stream: false,
    routes: spec.route ? [spec.route] : [],
    run: (input, context) => spec.run(input as unknown as Input<never, A, F>, context),
  });
}

function node(spec: { summary: string; examples?: readonly string[] }, leaf: Omit<Leaf, "examples">): CommandNode {
  return { description: spec.summary, leaf: { ...leaf, examples: spec.examples ?? [] } };
}

/** The names in a route are the command's first arguments. */
function idArgs(route: Route): Record<string, ArgSpec> {
  const names = [...route.matchAll(/:([a-zA-Z]+)/g)].map(([, name]) => name as string);
  return Object.fromEntries(names.map((name) => [name, { summary: ID_SUMMARIES[name] ?? name }]));
}
