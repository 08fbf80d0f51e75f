import type { Json } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import { command, group } from "./command.ts";

/** These call the runtime's control API, whose address the server says. */
export const trigger = group("Triggers and their runs (the runtime's control API)", {
  list: command({ summary: "List triggers with what their runs came to", route: "GET /triggers" }),
  get: command({ summary: "Show a trigger", route: "GET /triggers/:id" }),
  runs: command({ summary: "List the last 20 runs of a trigger, newest first", route: "GET /triggers/:id/runs" }),
  run: command({
    summary: "Run a trigger now, on the server's device",
    route: "POST /triggers/:id/run",
    flags: {
      args: { kind: "json", summary: "Arguments instead of the trigger's own", field: "args" },
      dry: { kind: "switch", summary: "Read, but write nothing: writes are in the trace alone", field: "dry" },
    },
    examples: ["trigger run <id> --dry"],
  }),
  next: command({
    summary: "Show when a trigger would fire next",
    route: "GET /triggers/:id/next",
    flags: { n: { kind: "integer", summary: "How many times (default 5)", query: "n" } },
  }),
  enable: command({ summary: "Switch a trigger on; its breaker begins anew", route: "POST /triggers/:id/enable" }),
  disable: command({ summary: "Switch a trigger off", route: "POST /triggers/:id/disable" }),
  set: command({
    summary: "Change when a trigger fires, or whether",
    route: "PATCH /triggers/:id",
    flags: {
      spec: { kind: "text", hint: "cron|json", summary: 'A cron expression, or an object such as {"at": 1767225600}' },
      enabled: { kind: "text", hint: "true|false", summary: "Whether it fires" },
    },
    body: ({ flags }) => ({
      ...(flags.spec === undefined ? {} : { spec: specOf(flags.spec) }),
      ...(flags.enabled === undefined ? {} : { enabled: truthOf(flags.enabled) }),
    }),
    examples: ["trigger set <id> --spec '0 9 * * 1-5'"],
  }),
  logs: command({ summary: "Show a run with its trace", route: "GET /runs/:runId" }),
  cancel: command({ summary: "End a run that is under way", route: "POST /runs/:runId/cancel" }),
  replay: command({
    summary: "Run a program again on the answers of a run's trace, and compare",
    route: "POST /runs/:runId/replay",
  }),
});

/** Only a text that begins with { is read as JSON: a cron expression is not JSON, and a bare `5` must not become a number. */
function specOf(text: string): Json {
  if (!text.trimStart().startsWith("{")) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new UsageError(`--spec begins with { and is no JSON: ${text}`);
  }
}

function truthOf(text: string): boolean {
  if (text !== "true" && text !== "false") throw new UsageError(`--enabled takes true or false, not ${text}`);
  return text === "true";
}
