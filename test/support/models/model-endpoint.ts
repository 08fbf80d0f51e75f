/** A local server that speaks the protocol of OpenAI-compatible endpoints, as badly as a test wants. */
import type { JsonObject } from "../server/client.ts";

export interface ModelRequest {
  readonly messages: JsonObject[];
  readonly tools?: JsonObject[];
  readonly max_tokens: number;
  readonly authorization: string | null;
}

/** What to answer: a text, tool calls, or a whole Response. */
type ModelReply =
  | { readonly text: string; readonly usage?: false; readonly stream?: true }
  | { readonly calls: readonly { readonly name: string; readonly args: JsonObject }[]; readonly text?: string }
  | Response
  | Promise<Response>;

export interface ModelEndpoint extends Disposable {
  /** For `runtime.llm.baseUrl`. */
  readonly baseUrl: string;
  readonly requests: ModelRequest[];
  answer(next: (request: ModelRequest, count: number) => ModelReply | Promise<ModelReply>): void;
}

export function startModelEndpoint(): ModelEndpoint {
  const requests: ModelRequest[] = [];
  let answer: (request: ModelRequest, count: number) => ModelReply | Promise<ModelReply> = () => ({ text: "hello" });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const body = (await request.json()) as Omit<ModelRequest, "authorization">;
      const seen = { ...body, authorization: request.headers.get("authorization") };
      requests.push(seen);
      const reply = await answer(seen, requests.length);
      return reply instanceof Response ? reply : toResponse(reply);
    },
  });
  return {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    requests,
    answer(next) {
      answer = next;
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}

function toResponse(reply: Exclude<ModelReply, Response | Promise<Response>>): Response {
  const usage = { prompt_tokens: 100, completion_tokens: 10 };
  if ("calls" in reply) {
    const tool_calls = reply.calls.map(({ name, args }, index) => ({
      id: `call_${index}`,
      type: "function",
      function: { name, arguments: JSON.stringify(args) },
    }));
    const message = { role: "assistant", content: reply.text ?? null, tool_calls };
    return Response.json({ choices: [{ message, finish_reason: "tool_calls" }], usage });
  }
  if (reply.stream) {
    const chunks = [...reply.text].map((content) => ({ choices: [{ delta: { content } }] }));
    const lines = [...chunks, { choices: [], usage }].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
    return new Response(`${lines.join("")}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
  }
  const choices = [{ message: { role: "assistant", content: reply.text }, finish_reason: "stop" }];
  return Response.json({ choices, ...(reply.usage === false ? {} : { usage }) });
}
