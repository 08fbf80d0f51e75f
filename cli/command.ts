import type { CommandDef } from "citty";
import type { JsonObject } from "../src/protocol/json.ts";
import type { ExitCode } from "./exit.ts";
import type { ArgSpec, ArgSpecs, FlagSpecs } from "./flag-parser.ts";
import type { FlagValues } from "./flag-values.ts";
import type { GlobalValues } from "./global-flags.ts";
import type { InputReader } from "./input-reader.ts";
import type { Target } from "./target.ts";

/** `GET /v1/spaces/:spaceId`. The names after colons are the command's first arguments, in their order. */
export type Route = `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`;

type IdsOf<R> = R extends `${string}:${infer Name}/${infer Rest}`
  ? Name | IdsOf<`/${Rest}`>
  : R extends `${string}:${infer Name}`
    ? Name
    : never;
type ArgValues<A extends ArgSpecs> = { [K in keyof A]: A[K] extends { optional: true } ? string | undefined : string };

/** What stood on the command line, read and typed. */
export interface Input<R = never, A extends ArgSpecs = ArgSpecs, F extends FlagSpecs = FlagSpecs> {
  readonly args: { readonly [K in IdsOf<R>]: string } & ArgValues<A>;
  readonly flags: FlagValues<F>;
}

/** A command that is one HTTP call. */
export interface ApiSpec<R extends Route = Route, A extends ArgSpecs = ArgSpecs, F extends FlagSpecs = FlagSpecs> {
  readonly summary: string;
  readonly route: R;
  /** Another route, taken by what was given; its ids are arguments that `args` lists. */
  readonly other?: { readonly route: Route; readonly when: (input: Input<R, A, F & FileFlag>) => boolean };
  /** Arguments beside those in the route. */
  readonly args?: A;
  readonly flags?: F;
  /** `--file FILE` holds a JSON body; flags and arguments are laid over its members. */
  readonly file?: true;
  /** Refuses to run without `--yes`. */
  readonly confirm?: true;
  /** The answer is a stream of events. */
  readonly stream?: true;
  /** Members of the body that no single flag or argument says; laid over the rest. Also where refusals belong. */
  readonly body?: (input: Input<R, A, F & FileFlag>, context: CommandContext) => JsonObject | Promise<JsonObject>;
}

/** A command that does something else: a transfer, or work on this machine. */
export interface LocalSpec<A extends ArgSpecs = ArgSpecs, F extends FlagSpecs = FlagSpecs> {
  readonly summary: string;
  /** The call it makes, for help. */
  readonly route?: Route;
  readonly args?: A;
  readonly flags?: F;
  readonly run: (input: Input<never, A, F>, context: CommandContext) => Promise<ExitCode>;
}

export interface CommandContext {
  /** The server to call, from the global flags; reading it refuses an `--addr` that cannot be connected to. */
  readonly target: Target;
  readonly globals: GlobalValues;
  readonly reader: InputReader;
}

/** A citty command with what our own strict parser and dispatcher need. */
export interface CommandNode extends CommandDef {
  readonly meta: { name?: string; description: string };
  readonly subCommands?: Record<string, CommandNode | (() => Promise<CommandNode>)>;
  /** Set on what can be run; a group without one only leads to others. */
  readonly leaf?: Leaf;
}

export interface Leaf {
  readonly args: ArgSpecs;
  readonly flags: FlagSpecs;
  readonly confirm: boolean;
  /** How the command reaches the server, for help: `PATCH /v1/spaces/:spaceId`, one of these. */
  readonly routes: readonly Route[];
  run(input: Input, context: CommandContext): Promise<ExitCode>;
}

type FileFlag = { file: { kind: "text"; summary: string } };

const FILE_FLAG = {
  file: { kind: "text", hint: "FILE", summary: "JSON body (- is stdin); flags given beside it are laid over it" },
} as const satisfies FlagSpecs;
const YES_FLAG = {
  yes: { kind: "switch", summary: "Really do it; without it the command refuses" },
} as const satisfies FlagSpecs;

/** What the names in routes stand for. */
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
  id: "Id of the process",
};

/** Commands under one word. `own` is what the word does by itself, where it does something. */
export function group(
  description: string,
  subCommands: NonNullable<CommandNode["subCommands"]>,
  own?: CommandNode,
): CommandNode {
  return own ? { ...own, meta: { description }, subCommands } : { meta: { description }, subCommands };
}

/** Declares a command that is one call of the API. */
export function command<
  const R extends Route,
  const A extends ArgSpecs = Record<never, never>,
  const F extends FlagSpecs = Record<never, never>,
>(spec: ApiSpec<R, A, F>): CommandNode {
  const ids: Record<string, ArgSpec> = {};
  for (const [, name] of spec.route.matchAll(/:([a-zA-Z]+)/g)) {
    ids[name as string] = { summary: ID_SUMMARIES[name as string] ?? (name as string) };
  }
  return node(
    spec,
    { ...ids, ...spec.args },
    { ...spec.flags, ...(spec.file && FILE_FLAG) },
    spec.other ? [spec.route, spec.other.route] : [spec.route],
    async (input, context) => {
      const { callApi } = await import("./api-call.ts");
      return callApi(spec as unknown as ApiSpec, input, context);
    },
  );
}

/** Declares a command that does its own work. */
export function localCommand<
  const A extends ArgSpecs = Record<never, never>,
  const F extends FlagSpecs = Record<never, never>,
>(spec: LocalSpec<A, F>): CommandNode {
  return node(spec, spec.args ?? {}, spec.flags ?? {}, spec.route ? [spec.route] : [], (input, context) =>
    spec.run(input as unknown as Input<never, A, F>, context),
  );
}

function node(
  spec: { summary: string; confirm?: true },
  args: ArgSpecs,
  flags: FlagSpecs,
  routes: readonly Route[],
  run: Leaf["run"],
): CommandNode {
  const leaf: Leaf = {
    args,
    flags: spec.confirm ? { ...flags, ...YES_FLAG } : flags,
    confirm: spec.confirm === true,
    routes,
    run,
  };
  return { meta: { description: spec.summary }, leaf };
}
