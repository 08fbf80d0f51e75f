import { isJsonObject, type Json, type JsonObject } from "../../src/protocol/json.ts";
import { CliError, EXIT, type ExitCode, UsageError } from "../io/exit.ts";
import { fillPath, readJson, send } from "../io/http-client.ts";
import type { InputReader } from "../io/input-reader.ts";
import { prettyJson, say, writeOut } from "../io/output.ts";
import { startLine } from "../io/progress.ts";
import type { Target } from "../io/target.ts";
import { localCommand } from "./command.ts";
import { readRecords } from "./record-source.ts";

const ROUTE = "POST /v1/spaces/:spaceId/upsert";
const PATH = "/v1/spaces/:spaceId/upsert";

/**
 * JSON characters of the records in one call: the body stays below the API's megabyte, and each of its pages fits into a
 * change.
 */
const CALL_CHARS = 256 * 1024;

/** The sum of all answers so far; `index` counts over all calls. */
interface Sum {
  readonly pages: Json[];
  created: number;
  updated: number;
  skipped: number;
  readonly rejections: Json[];
  /** Number of records sent. */
  sent: number;
}

export const upsert = localCommand({
  summary: "Create or update records under the ids you give; running it again changes nothing",
  route: ROUTE,
  args: { spaceId: { summary: "Id of the space" }, objectId: { summary: "Id of the object" } },
  flags: {
    dataset: { kind: "text", hint: "NAME", summary: "Dataset of the object, declared with idRule user" },
    records: {
      kind: "text",
      hint: "json|@FILE|-",
      summary: "Records {id, fields}: a JSON array, or one a line; of any size, sent in pages",
    },
    "page-size": { kind: "integer", summary: "Records per change (default 500)" },
    "trace-id": { kind: "texts", hint: "ID", summary: "Trace to mark the changes with; may be repeated" },
    file: { kind: "text", hint: "FILE", summary: "JSON body (- is stdin); flags given beside it are laid over it" },
  },
  examples: [
    'upsert <spaceId> <objectId> --dataset tasks --records \'[{"id":"t1","fields":{"title":"Milk"}}]\'',
    "upsert <spaceId> <objectId> --dataset tasks --records @tasks.json",
    "upsert <spaceId> <objectId> --dataset tasks --records - < tasks.jsonl",
  ],
  run: async ({ args, flags }, { target: findTarget, reader }): Promise<ExitCode> => {
    const target = await findTarget();
    const { records: listed, ...fromFile } = flags.file === undefined ? {} : await bodyInFile(flags.file, reader);
    const envelope: JsonObject = { ...fromFile, objectId: args.objectId };
    if (flags.dataset !== undefined) envelope["dataset"] = flags.dataset;
    if (flags["page-size"] !== undefined) envelope["pageSize"] = flags["page-size"];
    if (flags["trace-id"] !== undefined) envelope["traceIds"] = flags["trace-id"];
    const records =
      flags.records === undefined
        ? listedRecords(listed)
        : readRecords("--records", reader.chunks("--records", flags.records));
    return upsertAll(target, fillPath(PATH, args), envelope, records);
  },
});

async function bodyInFile(path: string, reader: InputReader): Promise<JsonObject> {
  const body = await reader.jsonFile("--file", path);
  if (!isJsonObject(body)) throw new UsageError("--file holds a JSON body, which is an object");
  return body;
}

async function* listedRecords(listed: Json | undefined): AsyncGenerator<Json> {
  if (listed === undefined) throw new UsageError("missing flag --records: the records, as JSON, @FILE or -");
  if (!Array.isArray(listed)) throw new UsageError("records in --file is an array of {id, fields}");
  yield* listed;
}

async function upsertAll(
  target: Target,
  path: string,
  envelope: JsonObject,
  records: AsyncGenerator<Json>,
): Promise<ExitCode> {
  const sum: Sum = { pages: [], created: 0, updated: 0, skipped: 0, rejections: [], sent: 0 };
  const line = startLine();
  try {
    for await (const call of callsOf(records)) {
      const answer = await readJson(
        target,
        await send(target, { method: "POST", path, json: { ...envelope, records: call } }),
      );
      add(sum, answer, call.length);
      line?.show(`sent ${sum.sent} records`);
    }
  } catch (error) {
    line?.end();
    if (sum.sent > 0)
      say(
        `svc: stopped after ${sum.sent} records, which are dealt with (places below count from there); run it again to go on`,
      );
    throw error;
  }
  line?.end();
  const { sent, ...answer } = sum;
  await writeOut(prettyJson(answer));
  const refused = sum.rejections.length;
  if (refused > 0) say(`svc: ${refused} of ${sent} records were refused; "rejections" says why`);
  return refused > 0 && refused === sent ? EXIT.user : EXIT.ok;
}

/** Groups records into calls, as many as fit. No records make one call, so that the server checks its arguments. */
async function* callsOf(records: AsyncGenerator<Json>): AsyncGenerator<Json[]> {
  let call: Json[] = [];
  let chars = 0;
  let any = false;
  for await (const record of records) {
    const size = JSON.stringify(record).length;
    if (call.length > 0 && chars + size > CALL_CHARS) {
      yield call;
      call = [];
      chars = 0;
    }
    call.push(record);
    chars += size + 1;
    any = true;
  }
  if (call.length > 0 || !any) yield call;
}

function add(sum: Sum, answer: Json | undefined, records: number): void {
  if (!isJsonObject(answer)) throw new CliError("the answer to upsert is no object; is it an svc server?", EXIT.server);
  const { pages, created, updated, skipped, rejections } = answer;
  sum.pages.push(...listOf(pages));
  sum.created += Number(created ?? 0);
  sum.updated += Number(updated ?? 0);
  sum.skipped += Number(skipped ?? 0);
  for (const rejection of listOf(rejections)) {
    const index = isJsonObject(rejection) ? Number(rejection["index"]) : Number.NaN;
    sum.rejections.push(isJsonObject(rejection) ? { ...rejection, index: sum.sent + index } : rejection);
  }
  sum.sent += records;
}

const listOf = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
