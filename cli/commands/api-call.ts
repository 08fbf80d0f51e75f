import { isJsonObject, type Json, type JsonObject } from "../../src/protocol/json.ts";
import { controlTarget } from "../io/control-address.ts";
import { EXIT, type ExitCode, UsageError } from "../io/exit.ts";
import { type ApiRequest, fillPath, readJson, send } from "../io/http-client.ts";
import { prettyJson, say, writeOut } from "../io/output.ts";
import type { ApiSpec, CommandContext, Input } from "../parse/command-spec.ts";
import type { FlagSpecs } from "../parse/flag-parser.ts";
import { integerOf } from "../parse/flag-values.ts";

/** Makes the one call of a command and prints the answer. */
export async function callApi(spec: ApiSpec, input: Input, context: CommandContext): Promise<ExitCode> {
  const request = await requestOf(spec, input, context);
  const server = await context.target();
  const target = request.path.startsWith("/v1/") ? server : await controlTarget(server);
  if (spec.stream) {
    const { printStream } = await import("../io/event-stream.ts");
    return printStream(target, request);
  }
  const answer = await readJson(target, await send(target, request));
  if (answer === undefined) return EXIT.ok;
  const remark = isJsonObject(answer) ? spec.remark?.(answer) : undefined;
  if (remark !== undefined) say(remark);
  await writeOut(prettyJson(answer));
  return EXIT.ok;
}

async function requestOf(spec: ApiSpec, input: Input, context: CommandContext): Promise<ApiRequest> {
  const route = spec.other?.when(input) ? spec.other.route : spec.route;
  const [method, template] = route.split(" ") as [string, string];
  return {
    method,
    path: fillPath(template, input.args),
    query: queryOf(spec.flags ?? {}, input),
    json: method === "GET" ? undefined : await bodyOf(spec, input, context),
  };
}

function queryOf(flags: FlagSpecs, input: Input): [string, string][] {
  return Object.entries(flags).flatMap(([name, { query }]) => {
    const value = input.flags[name];
    if (query === undefined || value === undefined) return [];
    return [value].flat().map((entry): [string, string] => [query, String(entry)]);
  });
}

/**
 * The body: the content of `--file`, then the values of flags and arguments. Undefined where the endpoint takes no body.
 */
async function bodyOf(spec: ApiSpec, input: Input, context: CommandContext): Promise<JsonObject | undefined> {
  const flags = Object.entries(spec.flags ?? {});
  const args = Object.entries(spec.args ?? {});
  const takesBody = spec.file || spec.body || [...flags, ...args].some(([, { field }]) => field !== undefined);
  if (!takesBody) return undefined;

  const file = input.flags["file"];
  // Spread instead of assigned, so that a member called __proto__ stays a member and the server can refuse it.
  const body = spec.file && typeof file === "string" ? { ...(await objectInFile(file, context)) } : {};
  for (const [name, { field, integer }] of args) {
    const word = input.args[name];
    setField(body, field, integer && word !== undefined ? integerOf(`<${name}>`, word) : word);
  }
  for (const [name, { field }] of flags) setField(body, field, input.flags[name]);
  return { ...body, ...(await spec.body?.(input, context)) };
}

async function objectInFile(path: string, context: CommandContext): Promise<JsonObject> {
  const body = await context.reader.jsonFile("--file", path);
  if (!isJsonObject(body)) throw new UsageError("--file holds a JSON body, which is an object");
  return body;
}

/** Sets a dotted path of the body and makes the objects on the way. */
function setField(body: JsonObject, field: string | undefined, value: Json | undefined): void {
  if (field === undefined || value === undefined) return;
  const segments = field.split(".");
  const last = segments.pop() as string;
  let parent = body;
  for (const segment of segments) {
    const child = parent[segment];
    parent = parent[segment] = isJsonObject(child) ? { ...child } : {};
  }
  parent[last] = value;
}
