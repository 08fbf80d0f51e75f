import type { JsonObject } from "../../src/protocol/json.ts";
import type { ExitCode } from "../io/exit.ts";
import type { InputReader } from "../io/input-reader.ts";
import type { Target } from "../io/target.ts";
import type { ArgSpecs, FlagSpecs } from "./flag-parser.ts";
import type { FlagValues } from "./flag-values.ts";
import type { GlobalValues } from "./global-flags.ts";

/** `GET /v1/spaces/:spaceId`. The names after colons are the command's first arguments, in that order. */
export type Route = `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`;

type IdsOf<R> = R extends `${string}:${infer Name}/${infer Rest}`
  ? Name | IdsOf<`/${Rest}`>
  : R extends `${string}:${infer Name}`
    ? Name
    : never;
type ArgValues<A extends ArgSpecs> = { [K in keyof A]: A[K] extends { optional: true } ? string | undefined : string };

/** The parsed and typed command line. */
export interface Input<R = never, A extends ArgSpecs = ArgSpecs, F extends FlagSpecs = FlagSpecs> {
  readonly args: { readonly [K in IdsOf<R>]: string } & ArgValues<A>;
  readonly flags: FlagValues<F>;
}

/** `--file FILE`, which commands with a JSON body may take. */
type FileFlag = { file: { kind: "text"; summary: string } };

interface SpecBase<A extends ArgSpecs, F extends FlagSpecs> {
  readonly summary: string;
  /** Arguments; for an API call, those besides the ids in its route. */
  readonly args?: A;
  readonly flags?: F;
  /** Command lines that help shows, without the leading `svc`. */
  readonly examples?: readonly string[];
}

/** A command that is one HTTP call. */
export interface ApiSpec<R extends Route = Route, A extends ArgSpecs = ArgSpecs, F extends FlagSpecs = FlagSpecs>
  extends SpecBase<A, F> {
  readonly route: R;
  /** Another route, chosen by the input; its ids are arguments that `args` lists. */
  readonly other?: { readonly route: Route; readonly when: (input: Input<R, A, F & FileFlag>) => boolean };
  /** `--file FILE` holds a JSON body; flags and arguments override its members. */
  readonly file?: true;
  /** Refuses to run without `--yes`. */
  readonly confirm?: true;
  /** The answer is a stream of events. */
  readonly stream?: true;
  /** Members of the body that no single flag or argument sets; they override the rest. Refusals belong here too. */
  readonly body?: (input: Input<R, A, F & FileFlag>, context: CommandContext) => JsonObject | Promise<JsonObject>;
  /** Text printed to stderr after the answer: what the user must not miss. */
  readonly remark?: (answer: JsonObject) => string | undefined;
}

/** A command that does something else: a transfer, several calls, or work on this machine. */
export interface LocalSpec<A extends ArgSpecs = ArgSpecs, F extends FlagSpecs = FlagSpecs> extends SpecBase<A, F> {
  /** The call it makes, for help; a command without one calls no server. */
  readonly route?: Route;
  readonly run: (input: Input<never, A, F>, context: CommandContext) => Promise<ExitCode>;
}

export interface CommandContext {
  /** The server to call: `--addr`, else what the configuration says. Refuses an address that cannot be connected to. */
  target(): Promise<Target>;
  readonly globals: GlobalValues;
  readonly reader: InputReader;
}

/** A word of the command line: a command, a group of them, or both. */
export interface CommandNode {
  readonly description: string;
  readonly subCommands?: Readonly<Record<string, CommandNode | (() => Promise<CommandNode>)>>;
  /** Set if the command can be run; a group without it only leads to others. */
  readonly leaf?: Leaf;
}

export interface Leaf {
  readonly args: ArgSpecs;
  readonly flags: FlagSpecs;
  readonly confirm: boolean;
  readonly stream: boolean;
  /** The routes that the command calls, for help: `PATCH /v1/spaces/:spaceId`; it calls one of them. */
  readonly routes: readonly Route[];
  readonly examples: readonly string[];
  run(input: Input, context: CommandContext): Promise<ExitCode>;
}
