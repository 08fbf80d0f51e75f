import { createSemaphore } from "../../base/semaphore.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { PROGRAM_LIMITS } from "../../sandbox/program-limits.ts";
import { CallFailure } from "./call-error.ts";
import type { HostReply } from "./host-reply.ts";
import type { HttpFetch } from "./http-fetch.ts";
import type { LlmChat } from "./llm-chat.ts";
import type { LocalApi } from "./local-api.ts";

export interface HostApiDeps {
  readonly api: LocalApi;
  readonly llm: LlmChat;
  readonly http: HttpFetch;
  readonly agentSpaceId: string;
}

/** Facts about the run that makes the call. */
export interface HostCallContext {
  /** Under this name the run writes into chats. */
  readonly agentName: string;
  readonly dry: boolean;
  /** Aborts when the run is over, too. */
  readonly signal: AbortSignal;
  /** Called with every message that the run has written. */
  readonly onMessage: (messageId: string) => void;
}

/** How large a file may be that a program reads whole. */
const MAX_FILE_BYTES = 2 << 20;

type Call = (input: JsonObject, context: HostCallContext) => Promise<HostReply>;

export type HostApi = (name: string, input: Json, context: HostCallContext) => Promise<HostReply>;

/**
 * The host API of programs. Each function takes one object: the body of the corresponding HTTP endpoint together with the ids in
 * its path. It returns that endpoint's reply. Failures are CallFailure. The API is one run's: what that writes is counted here.
 */
export function createHostApi(deps: HostApiDeps): HostApi {
  const { api, agentSpaceId } = deps;

  const spacePath = (input: JsonObject): string => {
    const { spaceId = agentSpaceId } = input;
    if (typeof spaceId !== "string") throw invalid("spaceId", "a text");
    return `/v1/spaces/${encodeURIComponent(spaceId)}`;
  };
  const objectPath = (input: JsonObject): string => `${spacePath(input)}/objects/${segment(input, "objectId")}`;
  const read = async (method: string, path: string, body?: JsonObject, signal?: AbortSignal): Promise<HostReply> => ({
    output: await api(method, path, body, { mostChars: PROGRAM_LIMITS.callBytes, ...(signal ? { signal } : {}) }),
  });
  const oneAtATime = createSemaphore(1);
  /** Reads what the server may have to go over all records for: one after the other, as long as the run goes on. */
  const search = (path: string, input: JsonObject, { signal }: HostCallContext): Promise<HostReply> =>
    oneAtATime(async () => {
      if (signal.aborted) throw new CallFailure("host.run_over", "the run is over");
      return read("POST", path, without(input, "spaceId"), signal);
    });
  let writtenBytes = 0;
  /** A dry run reports what it would have written, is refused what would be, and writes nothing. */
  const write = async (
    context: HostCallContext,
    method: string,
    path: string,
    body: JsonObject,
  ): Promise<HostReply> => {
    const bytes = Buffer.byteLength(JSON.stringify(body));
    if (writtenBytes + bytes > PROGRAM_LIMITS.writtenBytes) throw writtenTooMuch();
    writtenBytes += bytes;
    return context.dry ? { output: dryReply(body) } : read(method, path, body);
  };

  const calls: Record<string, Call> = {
    "svc.query": async (input, context) =>
      search(`${spacePath(input)}${input["objectId"] === undefined ? "/objects" : ""}/query`, input, context),
    "svc.aggregate": async (input, context) => {
      const path = `${spacePath(input)}${input["objectId"] === undefined ? "/objects" : ""}/aggregate`;
      return search(path, { ...input, memoryLimitBytes: memoryOf(input) }, context);
    },
    "svc.search": async (input, context) => search(`${spacePath(input)}/search`, input, context),
    "svc.get": async (input) => read("GET", `${spacePath(input)}/properties/${segment(input, "objectId")}`),
    "svc.create": async (input, context) =>
      write(context, "POST", `${spacePath(input)}/objects`, without(input, "spaceId")),
    "svc.modify": async (input, context) =>
      write(context, "POST", `${spacePath(input)}/modify`, without(input, "spaceId")),
    "svc.upsert": async (input, context) =>
      write(context, "POST", `${spacePath(input)}/upsert`, without(input, "spaceId")),
    "svc.deleteRecords": async (input, context) =>
      write(context, "POST", `${spacePath(input)}/delete-records`, without(input, "spaceId")),
    "svc.chat.send": async (input, context) => {
      const message = without(input, "spaceId", "objectId");
      // Readers see that a program wrote the message, and no trigger takes it for a person's.
      const body = { agent: { name: context.agentName, done: true }, ...message };
      const reply = await write(context, "POST", `${objectPath(input)}/chat/messages`, body);
      const [messageId] = ((reply.output as JsonObject)["recordIds"] ?? []) as string[];
      if (messageId !== undefined) context.onMessage(messageId);
      return reply;
    },
    "svc.chat.edit": async (input, context) =>
      write(context, "PATCH", `${objectPath(input)}/chat/messages/${segment(input, "messageId")}`, {
        ...without(input, "spaceId", "objectId", "messageId"),
      }),
    "svc.editor.read": async (input) => read("GET", `${objectPath(input)}/editor/markdown`),
    "svc.editor.append": async (input, context) =>
      write(context, "POST", `${objectPath(input)}/editor/markdown/append`, without(input, "spaceId", "objectId")),
    "svc.files.read": async (input) => {
      const path = `${spacePath(input)}/files/${segment(input, "fileId")}`;
      const info = (await api("GET", path)) as JsonObject;
      if ((info["size"] as number) > MAX_FILE_BYTES)
        throw new CallFailure("host.file_too_large", `a program reads files of up to ${MAX_FILE_BYTES >> 20} MiB`);
      const content = (await api("GET", `${path}/content`, undefined, { as: "content" })) as JsonObject;
      return { output: { ...info, ...content } };
    },
    "events.publish": async (input, context) => write(context, "POST", "/v1/events", input),
    "llm.chat": (input, { signal }) => deps.llm(input, signal),
    "http.fetch": async (input, { dry, signal }) => {
      const method = typeof input["method"] === "string" ? input["method"].toUpperCase() : "GET";
      if (dry && method !== "GET" && method !== "HEAD")
        return { output: { status: 0, headers: {}, body: "", dry: true } };
      return { output: await deps.http(input, signal) };
    },
    log: async () => ({ output: null }),
  };

  return async (name, input, context) => {
    const call = Object.hasOwn(calls, name) ? calls[name] : undefined;
    if (!call) throw new CallFailure("host.unknown_call", `there is no ${name}`);
    if (name === "log") return { output: null };
    if (!isJsonObject(input)) throw new CallFailure("request.schema", `${name} takes one object`);
    return call(input, context);
  };
}

function writtenTooMuch(): CallFailure {
  const limitBytes = PROGRAM_LIMITS.writtenBytes;
  const reason = `a run writes up to ${limitBytes >> 20} MiB: write less, or go on in another run`;
  return new CallFailure("host.written_too_much", reason, { limitBytes });
}

/** What a pipeline of a program may hold: no more than what is held for others by default. Other types are refused later. */
function memoryOf({ memoryLimitBytes: asked }: JsonObject): Json {
  const most = LIMITS.memoryLimitBytesDefault;
  return typeof asked === "number" && (asked < 0 || asked > most) ? most : (asked ?? 0);
}

function dryReply(body: JsonObject): JsonObject {
  const recordIds = Array.isArray(body["records"])
    ? body["records"].map((record) => (isJsonObject(record) ? (record["id"] ?? "") : ""))
    : [];
  return { dry: true, id: "", objectId: "", versionId: "", changeId: "", recordIds };
}

function without(input: JsonObject, ...keys: string[]): JsonObject {
  return Object.fromEntries(Object.entries(input).filter(([key]) => !keys.includes(key)));
}

function segment(input: JsonObject, key: string): string {
  const value = input[key];
  if (typeof value !== "string" || value === "" || value === "." || value === "..") throw invalid(key, "an id");
  return encodeURIComponent(value);
}

function invalid(field: string, reason: string): CallFailure {
  return new CallFailure("request.invalid_field", `${field} must be ${reason}`, { field, reason });
}
