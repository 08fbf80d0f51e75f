import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { CallFailure } from "./call-error.ts";
import type { HostReply } from "./host-reply.ts";
import { estimateTokens, type LlmBudget, type Spending } from "./llm-budget.ts";
import { readCompletion } from "./llm-reply.ts";

/** `{messages, tools?, maxTokens?}` → `{message: {role, content?, tool_calls?}, finishReason, usage}`. */
export type LlmChat = (input: JsonObject, signal: AbortSignal, spending?: Spending) => Promise<HostReply>;

interface LlmConfig {
  readonly baseUrl: string | undefined;
  readonly model: string | undefined;
  readonly key: string | undefined;
  /** USD per million tokens. */
  readonly priceIn: number | undefined;
  readonly priceOut: number | undefined;
  /** Tokens that may be sent at once. */
  readonly contextTokens: number;
}

export interface LlmChatDeps {
  readonly config: LlmConfig;
  readonly budget: LlmBudget;
  /** Waits, for an endpoint that asks for it. */
  readonly sleep?: (ms: number) => Promise<void>;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 120_000;
const MAX_REPLY_BYTES = 4 << 20;
const DEFAULT_MAX_TOKENS = 1024;
const MAX_TRIES = 3;
const MAX_WAIT_MS = 30_000;

/** Calls an OpenAI-compatible endpoint. It reserves the worst-case cost before the call, and counts the real cost afterwards. */
export function createLlmChat(deps: LlmChatDeps): LlmChat {
  const { config, budget, sleep = Bun.sleep, timeoutMs = TIMEOUT_MS } = deps;

  const exchange = async (body: string, signal: AbortSignal): Promise<Response> => {
    for (let tries = 1; ; tries++) {
      const response = await post(config, body, signal);
      if (response.ok) return response;
      const waitMs = retryAfterMs(response, tries);
      await response.body?.cancel();
      if (tries >= MAX_TRIES || waitMs === undefined || waitMs > MAX_WAIT_MS)
        throw new CallFailure("llm.unavailable", `the model's endpoint answered ${response.status}`, {
          status: response.status,
        });
      await sleep(waitMs);
      signal.throwIfAborted();
    }
  };

  return async (input, signal, spending) => {
    if (config.baseUrl === undefined || config.model === undefined)
      throw new CallFailure(
        "llm.disabled",
        "no model is configured; runtime.llm.baseUrl and runtime.llm.model name one",
      );
    const { messages, tools, maxTokens = DEFAULT_MAX_TOKENS } = input;
    checkInput(messages, tools, maxTokens);
    const body = JSON.stringify({
      model: config.model,
      messages,
      ...(tools === undefined ? {} : { tools }),
      max_tokens: maxTokens,
    });
    const sent = estimateTokens(JSON.stringify([messages, tools ?? null]));
    if (sent > config.contextTokens)
      throw new CallFailure(
        "llm.context_exceeded",
        `about ${sent} tokens are more than the ${config.contextTokens} of runtime.llm.contextTokens`,
      );
    // In the worst case every byte is a token.
    const reserved = budget.reserve({ in: Buffer.byteLength(body), out: maxTokens as number }, spending);
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const completion = readCompletion(await readText(await exchange(body, limit)));
      const tokens = completion.usage ?? {
        in: sent,
        out: estimateTokens(JSON.stringify(completion.message)),
      };
      const costUsd = reserved.spend(tokens);
      const usage: JsonObject = {
        tokens: { ...tokens },
        costUsd,
        ...(completion.usage === undefined ? { estimated: true } : {}),
      };
      return { output: { message: completion.message, finishReason: completion.finishReason, usage }, usage };
    } catch (error) {
      reserved.release();
      if (error instanceof CallFailure) throw error;
      const message = (error as Error).name === "TimeoutError" ? "it did not answer in time" : (error as Error).message;
      throw new CallFailure("llm.unavailable", `the model's endpoint failed: ${message}`);
    }
  };
}

function post(config: LlmConfig, body: string, signal: AbortSignal): Promise<Response> {
  const base = (config.baseUrl as string).replace(/\/$/, "");
  return fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(config.key === undefined ? {} : { authorization: `Bearer ${config.key}` }),
    },
    body,
    redirect: "manual",
    signal,
  });
}

/** How long to wait before another try; undefined where one would not help. */
function retryAfterMs(response: Response, tries: number): number | undefined {
  const { status } = response;
  if (status !== 429 && status < 500) return undefined;
  const header = response.headers.get("retry-after");
  const seconds = header === null ? Number.NaN : Number(header);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1000;
  const at = header === null ? Number.NaN : Date.parse(header);
  return Number.isNaN(at) ? 500 * 2 ** tries : Math.max(0, at - Date.now());
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_REPLY_BYTES) throw new CallFailure("llm.bad_reply", "the model's answer does not end");
  }
  return text;
}

function checkInput(messages: Json | undefined, tools: Json | undefined, maxTokens: Json): void {
  const refuse = (field: string, reason: string) =>
    new CallFailure("request.invalid_field", `${field} must be ${reason}`, { field, reason });
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isJsonObject))
    throw refuse("messages", "an array of messages");
  if (tools !== undefined && (!Array.isArray(tools) || !tools.every(isJsonObject)))
    throw refuse("tools", "an array of tools");
  if (typeof maxTokens !== "number" || !Number.isInteger(maxTokens) || maxTokens < 1 || maxTokens > 1 << 17)
    throw refuse("maxTokens", "an integer from 1");
}
