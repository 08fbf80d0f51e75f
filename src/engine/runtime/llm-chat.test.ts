import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startModelEndpoint } from "../../../test/support/models/model-endpoint.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { CallFailure, CostExceeded } from "./call-error.ts";
import { openLlmBudget, type Spending } from "./llm-budget.ts";
import { createLlmChat } from "./llm-chat.ts";

const dir = mkdtempSync(join(tmpdir(), "svc-llm-"));
const model = startModelEndpoint();
afterAll(() => {
  model[Symbol.dispose]();
  rmSync(dir, { recursive: true, force: true });
});

let files = 0;
const path = () => join(dir, `day${files++}.json`);
const clock = { ms: Date.parse("2026-03-01T12:00:00Z"), nowMs: () => clock.ms };
async function chatWith({
  prices = true,
  perDay = undefined as number | undefined,
  contextTokens = 4096,
  file = path(),
} = {}) {
  const price = prices ? { priceIn: 10, priceOut: 20 } : { priceIn: undefined, priceOut: undefined };
  const budget = await openLlmBudget({ ...price, maxCostPerDay: perDay, clock, path: file });
  const slept: number[] = [];
  const chat = createLlmChat({
    budget,
    config: { baseUrl: model.baseUrl, model: "m", key: "k", contextTokens, ...price },
    sleep: async (ms) => void slept.push(ms),
    timeoutMs: 300,
  });
  const ask = async (input: JsonObject = {}, spending?: Spending) => {
    const messages = [{ role: "user", content: "hi" }];
    return (await chat({ messages, ...input }, new AbortController().signal, spending)).output as JsonObject;
  };
  return { ask, slept, budget, file };
}
const failure = async (work: Promise<unknown>): Promise<string> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown instanceof CallFailure ? thrown.error.code : thrown instanceof CostExceeded ? "cost" : String(thrown);
};

describe("an endpoint's answers", () => {
  test("whole or streamed, with tool calls, with usage and its price", async () => {
    const { ask } = await chatWith();
    const usage = { tokens: { in: 100, out: 10 }, costUsd: (100 * 10 + 10 * 20) / 1e6 };
    model.answer(() => ({ text: "hello" }));
    expect(await ask()).toEqual({ message: { role: "assistant", content: "hello" }, finishReason: "stop", usage });
    expect(model.requests.at(-1)).toMatchObject({ authorization: "Bearer k", max_tokens: 1024 });
    model.answer(() => ({ text: "streamed ü", stream: true }));
    expect(await ask()).toMatchObject({ message: { content: "streamed ü" }, usage });
    model.answer(() => ({ calls: [{ name: "f", args: { a: 1 } }] }));
    expect((await ask())["message"]).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_0", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
    });
    const deltas = [
      { tool_calls: [{ index: 0, id: "x", function: { name: "g", arguments: '{"b"' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ":2}" } }] },
    ];
    const lines = deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ delta }] })}\r\n\r\n`).join("");
    model.answer(() => new Response(`${lines}data: [DONE]\n`));
    expect((await ask())["message"]).toMatchObject({
      tool_calls: [{ id: "x", function: { name: "g", arguments: '{"b":2}' } }],
    });
  });

  test("without usage it is estimated and says so", async () => {
    const { ask } = await chatWith();
    model.answer(() => ({ text: "hello", usage: false }));
    expect((await ask())["usage"]).toMatchObject({ estimated: true, tokens: { in: expect.any(Number) } });
  });

  test("429 is tried again after what it asks for, 500 after a pause, neither for ever", async () => {
    const { ask, slept } = await chatWith();
    let left = 2;
    model.answer(() =>
      left-- > 0 ? new Response("", { status: 429, headers: { "retry-after": "7" } }) : { text: "at last" },
    );
    expect(await ask()).toMatchObject({ message: { content: "at last" } });
    expect(slept).toEqual([7000, 7000]);
    model.answer(() => new Response("no", { status: 500 }));
    expect(await failure(ask())).toBe("llm.unavailable");
    expect(slept).toHaveLength(4);
    model.answer(() => new Response("", { status: 429, headers: { "retry-after": "3600" } }));
    expect(await failure(ask())).toBe("llm.unavailable");
    expect(slept).toHaveLength(4);
  });

  test("one that hangs, one that redirects, and one that talks nonsense", async () => {
    const { ask } = await chatWith();
    const givenUp = Promise.withResolvers<void>();
    model.answer(async () => {
      await givenUp.promise;
      return { text: "late" };
    });
    expect(await failure(ask())).toBe("llm.unavailable");
    givenUp.resolve();
    model.answer(() => Response.redirect("http://127.0.0.1:1/", 302));
    expect(await failure(ask())).toBe("llm.unavailable");
    for (const garbage of [
      "",
      "<html>",
      "null",
      "[]",
      '{"choices":[]}',
      '{"choices":[{"message":5}]}',
      "data: {]\n\n",
      "data: [DONE]\n",
    ]) {
      model.answer(() => new Response(garbage));
      expect([garbage, await failure(ask())]).toEqual([garbage, "llm.bad_reply"]);
    }
  });
});

describe("what is asked", () => {
  test("is checked, and bounded by the context", async () => {
    const { ask } = await chatWith({ contextTokens: 256 });
    expect(await failure(ask({ messages: [] }))).toBe("request.invalid_field");
    expect(await failure(ask({ messages: "hi" }))).toBe("request.invalid_field");
    expect(await failure(ask({ tools: [1] }))).toBe("request.invalid_field");
    expect(await failure(ask({ maxTokens: 0 }))).toBe("request.invalid_field");
    expect(await failure(ask({ messages: [{ role: "user", content: "x".repeat(2000) }] }))).toBe(
      "llm.context_exceeded",
    );
  });
});

describe("[AGENT-9] money", () => {
  test("calls side by side cannot pass a run's cap together: each reserves its worst case first", async () => {
    const { ask } = await chatWith();
    model.answer(() => ({ text: "hello" }));
    const spending: Spending = { maxCostUsd: 0.05, heldUsd: 0 };
    const results = await Promise.all([1, 2, 3, 4].map(() => failure(ask({}, spending))));
    expect(results.filter((result) => result === "cost").length).toBeGreaterThanOrEqual(1);
    expect(spending.heldUsd).toBeLessThanOrEqual(0.05);
  });

  test("a cap without a price refuses the call, no cap lets it through at an unknown cost", async () => {
    const { ask } = await chatWith({ prices: false });
    model.answer(() => ({ text: "hello" }));
    expect(await failure(ask({}, { maxCostUsd: 1, heldUsd: 0 }))).toBe("cost");
    expect((await ask())["usage"]).toMatchObject({ costUsd: null });
  });

  test("what failed costs nothing; the day's cap holds over a restart and ends with the day", async () => {
    const first = await chatWith({ perDay: 0.04 });
    model.answer(() => new Response("no", { status: 400 }));
    expect(await failure(first.ask())).toBe("llm.unavailable");
    model.answer(() => ({ text: "hello" }));
    for (let i = 0; i < 10; i++) await first.ask({ maxTokens: 10 });
    await first.budget.flush();
    const second = await chatWith({ perDay: 0.0125, file: first.file });
    expect(await failure(second.ask({ maxTokens: 10 }))).toBe("cost");
    clock.ms += 24 * 60 * 60 * 1000;
    expect(await failure(second.ask({ maxTokens: 10 }))).toBe("undefined");
  });
});
