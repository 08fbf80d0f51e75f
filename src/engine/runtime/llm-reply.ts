import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { CallFailure } from "./call-error.ts";

export interface Completion {
  readonly message: JsonObject;
  readonly finishReason: string;
  readonly usage: { readonly in: number; readonly out: number } | undefined;
}

/** Reads an endpoint's answer, whole or as a stream of deltas. Nothing in it is trusted. */
export function readCompletion(text: string): Completion {
  const chunks = /^\s*(?::|data:|event:)/.test(text) ? readStream(text) : [parse(text)];
  const parts: string[] = [];
  const calls = new Map<number, { id: string; name: string; arguments: string }>();
  let finishReason = "stop";
  let usage: Completion["usage"];
  let seen = false;
  for (const chunk of chunks) {
    usage = readUsage(chunk["usage"]) ?? usage;
    const choice = Array.isArray(chunk["choices"]) ? chunk["choices"][0] : undefined;
    if (!isJsonObject(choice)) continue;
    const said = choice["message"] ?? choice["delta"];
    if (!isJsonObject(said)) continue;
    seen = true;
    if (typeof said["content"] === "string") parts.push(said["content"]);
    if (typeof choice["finish_reason"] === "string") finishReason = choice["finish_reason"];
    addToolCalls(calls, said["tool_calls"]);
  }
  if (!seen) throw badReply();
  const toolCalls = [...calls.values()].map(({ id, ...called }): Json => ({ id, type: "function", function: called }));
  return {
    message: {
      role: "assistant",
      content: parts.length === 0 ? null : parts.join(""),
      ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
    },
    finishReason,
    usage,
  };
}

function readStream(text: string): JsonObject[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length).trim())
    .filter((data) => data !== "" && data !== "[DONE]")
    .map(parse);
}

function parse(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    if (isJsonObject(value)) return value;
  } catch {
    // Reported below: text that is no JSON and JSON that is no object are the same fault.
  }
  throw badReply();
}

function addToolCalls(
  calls: Map<number, { id: string; name: string; arguments: string }>,
  given: Json | undefined,
): void {
  if (!Array.isArray(given)) return;
  for (const [position, call] of given.entries()) {
    if (!isJsonObject(call) || !isJsonObject(call["function"])) continue;
    const index = typeof call["index"] === "number" ? call["index"] : position;
    const known = calls.get(index) ?? { id: `call_${index}`, name: "", arguments: "" };
    const { name, arguments: more } = call["function"];
    calls.set(index, {
      id: typeof call["id"] === "string" && call["id"] !== "" ? call["id"] : known.id,
      name: known.name + (typeof name === "string" ? name : ""),
      arguments: known.arguments + (typeof more === "string" ? more : ""),
    });
  }
}

function readUsage(usage: Json | undefined): Completion["usage"] {
  if (!isJsonObject(usage)) return undefined;
  const { prompt_tokens: sent, completion_tokens: made } = usage as { prompt_tokens?: Json; completion_tokens?: Json };
  const isCount = (value: Json | undefined): value is number => typeof value === "number" && value >= 0;
  return isCount(sent) && isCount(made) ? { in: sent, out: made } : undefined;
}

function badReply(): CallFailure {
  return new CallFailure("llm.bad_reply", "the model's endpoint answered what is no completion");
}
