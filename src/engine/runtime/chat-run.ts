import type { ChatNews, ExecuteRun, RunOutcome, RunRequest } from "../../domain/trigger/port.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { createTraceRecorder, type TraceRecorder } from "../../sandbox/program-trace.ts";
import { CallFailure } from "./call-error.ts";
import { answerChat } from "./chat-answer.ts";
import { buildContext, type SeenMessage } from "./chat-context.ts";
import type { ChatLog } from "./chat-log.ts";
import { createToolBelt, type MayDo } from "./chat-tools.ts";
import type { AnswerBatch } from "./chat-watch.ts";
import type { HostApi } from "./host-api.ts";
import type { HostReply } from "./host-reply.ts";
import { estimateTokens, type Spending } from "./llm-budget.ts";
import type { LlmChat } from "./llm-chat.ts";
import type { LocalApi } from "./local-api.ts";
import type { Redact } from "./redact.ts";

export interface ChatRunDeps {
  readonly agentName: string;
  readonly agentSpaceId: string;
  readonly contextTokens: number;
  readonly chat: ChatLog;
  readonly api: LocalApi;
  readonly llm: LlmChat;
  hostFor(spending: Spending): HostApi;
  /** What one account may do in a space. */
  mayDo(identity: string, spaceId: string): Promise<"nothing" | "read" | "write">;
  readonly redact: Redact;
  readonly nowMs: () => number;
}

const RECENT = 20;
const HITS = 5;
const WORKING = "…";
const RANK = { nothing: 0, read: 1, write: 2 } as const;

/** One answer as a run: its messages, its calls in a trace, what it cost. */
export function createChatRun(deps: ChatRunDeps): (batch: AnswerBatch) => ExecuteRun {
  return (batch) => async (request) => {
    const meter = createMeter(deps, request);
    const { spaceId, chatId, asked } = batch;
    /** The authors whose messages are being answered; more may join them. */
    const authors = new Set(asked.map(({ creator }) => creator));
    const mayDo: MayDo = async (where) => {
      const each = await Promise.all([...authors].map((author) => deps.mayDo(author, where)));
      return each.reduce((least, one) => (RANK[one] < RANK[least] ? one : least), "write");
    };
    const last = () => asked.at(-1) as ChatNews;
    let interimId: string | undefined;
    try {
      // The chat says first of all that the message is being answered, so that other devices see it too.
      interimId = await deps.chat.send(spaceId, chatId, {
        text: WORKING,
        replyTo: last().messageId,
        done: false,
        runId: request.runId,
      });
      const shown = interimId;
      const host = meter.traced(deps.hostFor(meter.spending));
      const hostContext = { agentName: deps.agentName, dry: false, signal: request.signal, onMessage: () => {} };
      const tools = createToolBelt({ host, context: hostContext, agentSpaceId: deps.agentSpaceId, mayDo });
      const answer = await answerChat(
        {
          tools,
          signal: request.signal,
          ask: (messages, definitions) => ask(deps, meter, request, messages, definitions),
          interim: (text) => deps.chat.edit(spaceId, chatId, shown, text),
          async joined() {
            const news = batch.joining.splice(0);
            asked.push(...news);
            for (const one of news) authors.add(one.creator);
            return news.map(({ text }) => ({ role: "user", content: text }));
          },
        },
        await contextOf(deps, batch),
      );
      // Refusals are only sent to people: two agents would answer each other's without end.
      const forPeople = asked.some(({ agent }) => agent === undefined);
      if (answer.text !== "" && (answer.status === "ok" || forPeople))
        await deps.chat.send(spaceId, chatId, {
          text: answer.text,
          replyTo: last().messageId,
          done: true,
          runId: request.runId,
        });
      return meter.outcome(answer.status, answer.error);
    } catch (error) {
      return meter.outcome(request.signal.aborted ? "interrupted" : "failed", deps.redact((error as Error).message));
    } finally {
      if (interimId !== undefined) await deps.chat.remove(spaceId, chatId, interimId).catch(() => undefined);
    }
  };
}

async function contextOf(deps: ChatRunDeps, { spaceId, chatId, asked }: AnswerBatch): Promise<JsonObject[]> {
  const newest = asked.at(-1) as ChatNews;
  const [thread, recent] = await Promise.all([
    deps.chat.thread(spaceId, chatId, newest.messageId),
    deps.chat.recent(spaceId, chatId, RECENT),
  ]);
  const seen = new Set([...thread, ...recent].map(({ id }) => id));
  const hits = await search(deps, spaceId, newest.text, seen);
  const toSeen = ({ messageId, text, creator }: ChatNews): SeenMessage => ({
    id: messageId,
    text,
    creator,
    replyTo: undefined,
    agentName: undefined,
    done: true,
  });
  const parts = {
    thread,
    recent: recent.filter(({ done }) => done),
    hits,
    asked: asked.map(toSeen),
    agentName: deps.agentName,
  };
  // Half of the tokens is for the messages: tools, their results and the answer take the rest.
  return buildContext(parts, Math.floor(deps.contextTokens / 2));
}

/** Returns what the index finds for a question; if the index is off or behind, the answer goes on without it. */
async function search(deps: ChatRunDeps, spaceId: string, query: string, seen: ReadonlySet<string>): Promise<string[]> {
  if (query.trim() === "") return [];
  try {
    const body = { query: query.slice(0, 500), limit: HITS, maxData: 400 };
    const { hits } = (await deps.api("POST", `/v1/spaces/${spaceId}/search`, body)) as { hits: JsonObject[] };
    const others = hits.filter(({ recordId }) => !seen.has(recordId as string));
    return others.map(({ objectId, data }) => `${data} (svc://${objectId})`);
  } catch (error) {
    if (error instanceof CallFailure) return [];
    throw error;
  }
}

/** Asks the model, with the messages cut down to what may be sent. */
async function ask(
  deps: ChatRunDeps,
  meter: Meter,
  request: RunRequest,
  messages: readonly JsonObject[],
  tools: readonly JsonObject[] | undefined,
): Promise<HostReply> {
  const maxTokens = Math.min(1024, Math.floor(deps.contextTokens / 4));
  const fits = (list: readonly JsonObject[]) =>
    estimateTokens(JSON.stringify([list, tools ?? null])) <= deps.contextTokens;
  const sent = [...messages];
  for (let at = 0; at < sent.length && !fits(sent); at++) {
    const { content } = sent[at] as JsonObject;
    if (typeof content === "string" && content.length > 200 && sent[at]!["role"] === "tool")
      sent[at] = { ...sent[at], content: `${content.slice(0, 200)}… (cut)` };
  }
  const input: JsonObject = { messages: sent, maxTokens, ...(tools === undefined ? {} : { tools: [...tools] }) };
  return meter.call("llm.chat", input, () => deps.llm(input, request.signal, meter.spending));
}

interface Meter {
  readonly spending: Spending;
  call(name: string, input: Json, make: () => Promise<HostReply>): Promise<HostReply>;
  traced(host: HostApi): HostApi;
  outcome(status: RunOutcome["status"], error?: string): RunOutcome;
}

/** Counts and traces the calls of an answer, as a program's are. */
function createMeter(deps: ChatRunDeps, request: RunRequest): Meter {
  const spending: Spending = { maxCostUsd: request.trigger.limits.maxCostPerRun, heldUsd: 0 };
  const recorder: TraceRecorder = createTraceRecorder(
    {
      source: "",
      args: "{}",
      context: JSON.stringify({ triggerId: request.trigger.id, runId: request.runId }),
      fuel: 0,
      maxPages: 0,
      timeoutMs: 0,
      nowMs: request.startedAtMs,
      seed: 0,
    },
    request.trigger.program,
  );
  const tokens = { in: 0, out: 0 };
  let costUsd: number | null = 0;
  let calls = 0;
  const meter: Meter = {
    spending,
    async call(name, input, make) {
      const n = calls++;
      const startedMs = performance.now();
      const note = (outcome: { output: string } | { error: CallFailure["error"] }, usage?: JsonObject) => {
        const ms = Math.round(performance.now() - startedMs);
        const call = { n, name, input: deps.redact(JSON.stringify(input)) };
        recorder.settled(call, outcome, deps.nowMs(), ms, usage);
      };
      try {
        const reply = await make();
        const used = reply.usage as { tokens: { in: number; out: number }; costUsd: number | null } | undefined;
        if (used) {
          tokens.in += used.tokens.in;
          tokens.out += used.tokens.out;
          costUsd = costUsd === null || used.costUsd === null ? null : costUsd + used.costUsd;
        }
        note({ output: deps.redact(JSON.stringify(reply.output)) }, reply.usage);
        return reply;
      } catch (error) {
        if (error instanceof CallFailure) note({ error: error.error });
        throw error;
      }
    },
    traced: (host) => (name, input, context) => meter.call(name, input, () => host(name, input, context)),
    outcome(status, error) {
      const rest = error === undefined ? {} : { error };
      const trace = recorder.finish("", { status, ...rest, fuel: null, memPages: null, calls });
      return { status, ...rest, fuel: null, memPages: null, costUsd, tokens, trace };
    },
  };
  return meter;
}
