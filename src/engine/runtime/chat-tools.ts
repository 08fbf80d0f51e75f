import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { CallFailure, CostExceeded } from "./call-error.ts";
import type { HostApi, HostCallContext } from "./host-api.ts";

/** What people who wrote into a chat may do in a space: the least of what each of them may. */
export type MayDo = (spaceId: string) => Promise<"nothing" | "read" | "write">;

interface Tool {
  readonly call: string;
  readonly writes: boolean;
  readonly description: string;
  readonly properties: JsonObject;
  readonly required: readonly string[];
}

const text = (description: string): JsonObject => ({ type: "string", description });
const object = (description: string): JsonObject => ({ type: "object", description });
const OBJECT = { objectId: text("Id of the object") };
const DATASET = { ...OBJECT, dataset: text("Name of the dataset") };

/** The host API as a model sees it. Every function also takes spaceId. */
const TOOLS: readonly Tool[] = [
  tool(
    "svc.search",
    false,
    "Full text and semantic search",
    { query: text("Words, or a question"), limit: { type: "integer" } },
    ["query"],
  ),
  tool(
    "svc.query",
    false,
    "Query records of an object's dataset, or all objects when objectId and dataset are left out",
    {
      ...DATASET,
      filter: object("A MongoDB filter"),
      sort: { type: "array", items: { type: "string" } },
      limit: { type: "integer" },
    },
  ),
  tool(
    "svc.aggregate",
    false,
    "Run an aggregation pipeline",
    { ...DATASET, pipeline: { type: "array", items: { type: "object" } } },
    ["pipeline"],
  ),
  tool("svc.get", false, "Read an object's properties", OBJECT, ["objectId"]),
  tool("svc.editor.read", false, "Read an object's document as markdown", OBJECT, ["objectId"]),
  tool("svc.create", true, "Create an object", {
    types: { type: "array", items: { type: "string" } },
    initialProperties: object("By type"),
  }),
  tool(
    "svc.modify",
    true,
    "Change records of a dataset",
    { ...DATASET, records: { type: "array", items: { type: "object" } } },
    ["objectId", "dataset", "records"],
  ),
  tool(
    "svc.upsert",
    true,
    "Bring records to the given fields",
    { ...DATASET, records: { type: "array", items: { type: "object" } } },
    ["objectId", "dataset", "records"],
  ),
  tool("svc.editor.append", true, "Append markdown to an object's document", { ...OBJECT, content: text("Markdown") }, [
    "objectId",
    "content",
  ]),
];
const toolByName = new Map(TOOLS.map((one) => [nameOf(one), one]));

/** A confused model repeats itself, so the same call is made at most this often. */
const SAME_CALLS = 2;
const MAX_RESULT_CHARS = 6_000;

export interface ToolBelt {
  /** Returns the definitions in the form that an endpoint expects. */
  definitions(): Promise<JsonObject[]>;
  /** Makes a call; a failure is returned as text for the model. */
  call(name: string, args: string): Promise<string>;
}

/** Creates the tools for one answer, limited by the rights of the people who asked. */
export function createToolBelt(deps: {
  host: HostApi;
  context: HostCallContext;
  agentSpaceId: string;
  mayDo: MayDo;
}): ToolBelt {
  const madeByCall = new Map<string, number>();

  const run = async (tool: Tool, args: string): Promise<string> => {
    const input = parseArgs(args);
    if (!input) return "error: the arguments are no JSON object";
    const { spaceId = deps.agentSpaceId } = input;
    if (typeof spaceId !== "string") return "error: spaceId is a text";
    const may = await deps.mayDo(spaceId);
    if (may === "nothing" || (tool.writes && may !== "write")) return "error: whoever asked may not do that";
    const { output } = await deps.host(tool.call, { ...input, spaceId }, deps.context);
    const json = JSON.stringify(output);
    return json.length <= MAX_RESULT_CHARS ? json : `${json.slice(0, MAX_RESULT_CHARS)}… (cut)`;
  };

  return {
    async definitions() {
      const may = await deps.mayDo(deps.agentSpaceId);
      return TOOLS.filter(({ writes }) => !writes || may === "write").map(toDefinition);
    },
    async call(name, args) {
      const found = toolByName.get(name);
      if (!found) return `error: there is no tool ${name}`;
      const key = `${name}\0${args}`;
      const made = madeByCall.get(key) ?? 0;
      madeByCall.set(key, made + 1);
      if (made >= SAME_CALLS)
        return "error: this very call was made twice; its answer does not change. Go on without it";
      try {
        return await run(found, args);
      } catch (error) {
        if (error instanceof CostExceeded || !(error instanceof CallFailure)) throw error;
        return `error: ${error.error.code}: ${error.error.message}`;
      }
    },
  };
}

function tool(
  call: string,
  writes: boolean,
  description: string,
  properties: JsonObject,
  required: readonly string[] = [],
): Tool {
  return { call, writes, description, properties, required };
}

/** Names of functions have no dots in that protocol. */
function nameOf({ call }: Tool): string {
  return call.replaceAll(".", "_");
}

function toDefinition(one: Tool): JsonObject {
  return {
    type: "function",
    function: {
      name: nameOf(one),
      description: one.description,
      parameters: {
        type: "object",
        properties: { ...one.properties, spaceId: text("Another space than the agent's own") },
        required: [...one.required],
      },
    },
  };
}

function parseArgs(args: string): JsonObject | undefined {
  try {
    const value = (args.trim() === "" ? {} : JSON.parse(args)) as Json;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
