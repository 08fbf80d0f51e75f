import type { RunStatus } from "../../domain/trigger/port.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { CallFailure, CostExceeded } from "./call-error.ts";
import type { ToolBelt } from "./chat-tools.ts";
import type { HostReply } from "./host-reply.ts";

/** How many exchanges with the model one answer may take; the last one has no tools, so that the model gives an answer. */
const MAX_TURNS = 12;

export interface Answer {
  readonly text: string;
  readonly status: RunStatus;
  readonly error?: string;
}

export interface AnswerDeps {
  /** Asks the model; every exchange counts for the run. */
  ask(messages: readonly JsonObject[], tools: readonly JsonObject[] | undefined): Promise<HostReply>;
  readonly tools: ToolBelt;
  /** Shows what the model says before its final answer. */
  interim(text: string): Promise<void>;
  /** Returns messages that have come since, in the form for the model. */
  joined(): Promise<JsonObject[]>;
  readonly signal: AbortSignal;
}

/** Works out an answer, turn by turn. If a limit ends it, the answer says so. Rejects only for faults of the server itself. */
export async function answerChat(deps: AnswerDeps, context: readonly JsonObject[]): Promise<Answer> {
  const messages = [...context];
  let said = "";
  try {
    for (let turn = 1; turn <= MAX_TURNS; turn++) {
      deps.signal.throwIfAborted();
      messages.push(...(await deps.joined()));
      const tools = turn === MAX_TURNS ? undefined : await deps.tools.definitions();
      const { output } = await deps.ask(messages, tools);
      const { message } = output as { message: JsonObject };
      const text = typeof message["content"] === "string" ? message["content"].trim() : "";
      const calls = tools === undefined ? [] : ((message["tool_calls"] ?? []) as JsonObject[]);
      if (calls.length === 0) {
        const late = await deps.joined();
        if (late.length > 0 && turn < MAX_TURNS) {
          messages.push({ role: "assistant", content: text }, ...late);
          said = text;
          continue;
        }
        if (text === "") return ended(said, "failed", "the model said nothing");
        return turn === MAX_TURNS
          ? { text: `${text}\n\n_(Stopped after ${MAX_TURNS} turns.)_`, status: "ok" }
          : { text, status: "ok" };
      }
      if (text !== "") {
        said = text;
        await deps.interim(text);
      }
      messages.push({ role: "assistant", content: message["content"] ?? null, tool_calls: calls });
      for (const call of calls) messages.push(await callTool(deps.tools, call));
    }
    return ended(said, "failed", `no answer within ${MAX_TURNS} turns`);
  } catch (error) {
    if (deps.signal.aborted) return { text: "", status: "interrupted" };
    if (error instanceof CostExceeded) return ended(said, "cost_exceeded", error.message);
    if (error instanceof CallFailure) return ended(said, "failed", `${error.error.code}: ${error.error.message}`);
    throw error;
  }
}

async function callTool(tools: ToolBelt, call: JsonObject): Promise<JsonObject> {
  const called = call["function"] as { name: string; arguments: string };
  return {
    role: "tool",
    tool_call_id: call["id"] as Json,
    content: await tools.call(called.name, called.arguments),
  };
}

function ended(said: string, status: RunStatus, why: string): Answer {
  const note = `_(I had to stop: ${why}.)_`;
  return { text: said === "" ? note : `${said}\n\n${note}`, status, error: why };
}
