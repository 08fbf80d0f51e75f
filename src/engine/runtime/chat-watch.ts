import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { createFireGuard } from "../../domain/trigger/fire-guard.ts";
import { ownerOf } from "../../domain/trigger/ownership.ts";
import type { ChatNews, Election, ExecuteRun } from "../../domain/trigger/port.ts";
import { CHAT_WATCH, readTrigger, type TriggerDefinition } from "../../domain/trigger/trigger-definition.ts";
import type { TriggerRuns } from "../../domain/trigger/trigger-runs.ts";
import type { AgentRecords } from "./agent-records.ts";
import type { ChatLog } from "./chat-log.ts";

/** The name under which the agent writes into chats. */
export const AGENT_NAME = "assistant";

export interface ChatWatchDeps {
  readonly records: Pick<AgentRecords, "record" | "triggers">;
  readonly runs: TriggerRuns;
  readonly election: Election;
  readonly accountId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly newRunId: () => string;
  /** Whether a model is configured. */
  readonly hasModel: boolean;
  readonly chat: ChatLog;
  /** Answers a batch of messages; more may join it. Never rejects. */
  readonly answer: (batch: AnswerBatch) => ExecuteRun;
}

/** Messages that one answer is for. */
export interface AnswerBatch {
  readonly spaceId: string;
  readonly chatId: string;
  readonly asked: ChatNews[];
  /** The answer takes messages out of this list as they come. */
  readonly joining: ChatNews[];
}

export interface ChatWatch {
  message(news: ChatNews): void;
  /** Every second: looks whether this device has become the one that answers. */
  tick(): void;
  close(): Promise<void>;
}

/** After a take-over, messages older than this are not answered. */
const FRESH_MS = 15 * 60_000;
/** How many answers the agent gives to other agents until a person writes. */
const ANSWERS_TO_AGENTS = 3;

/** Answers in the chat of the record `chat-watch`, on the one device that is responsible for it. Its dispatch is native. */
export function createChatWatch(deps: ChatWatchDeps): ChatWatch {
  const { records, election, accountId, clock, log } = deps;
  const guard = createFireGuard();
  let current: AnswerBatch | undefined;
  let done: Promise<void> = Promise.resolve();
  const closing = new AbortController();
  let wasHere = false;
  let answersToAgents = 0;
  let saidUnsupported = false;
  const background = (work: Promise<unknown>) =>
    void work.catch((err: unknown) => log.error("watching the chat failed", { err }));

  /** Returns the record, if this device answers by it. */
  const here = (): TriggerDefinition | undefined => {
    const record = records.record(CHAT_WATCH);
    if (!record) return undefined;
    const trigger = readTrigger(record, clock.nowMs());
    const mine = ownerOf(trigger, election) !== "other";
    return mine && trigger.enabled && trigger.firing.kind === "event" ? trigger : undefined;
  };

  const saysUnsupported = (trigger: TriggerDefinition): void => {
    if (!saidUnsupported)
      log.info("the chat is not answered: no model is configured (runtime.llm.baseUrl, runtime.llm.model)");
    saidUnsupported = true;
    if (trigger.lastStatus !== "unsupported_source")
      background(records.triggers.write(CHAT_WATCH, { lastStatus: "unsupported_source" }));
  };

  /** Whether a message asks for an answer: people's always do, other agents' when they mention this account in their text. */
  const asks = (news: ChatNews): boolean => {
    if (clock.nowMs() - news.createdAtMs > FRESH_MS) return false;
    if (!news.agent) return true;
    if (news.creator === accountId && news.agent["name"] === AGENT_NAME) return false;
    if (news.agent["done"] !== true || !news.text.includes(`svc://m/${news.spaceId}/${accountId}`)) return false;
    return answersToAgents < ANSWERS_TO_AGENTS;
  };

  const take = (trigger: TriggerDefinition, news: ChatNews): void => {
    if (news.agent) answersToAgents++;
    else answersToAgents = 0;
    if (current && current.chatId === news.objectId) {
      current.joining.push(news);
      return;
    }
    if (guard.take(clock.nowMs()) !== "ok") {
      background(records.triggers.write(CHAT_WATCH, { lastStatus: "rate_limited" }));
      return;
    }
    current = { spaceId: news.spaceId, chatId: news.objectId, asked: [news], joining: [] };
    done = run(trigger, current)
      .catch((err: unknown) => log.error("an answer in the chat failed", { err }))
      .then(() => {
        const late = current?.joining ?? [];
        current = undefined;
        for (const one of late) deps.chat.forget(one.messageId);
        for (const one of late) considered(one);
      });
  };

  const considered = (news: ChatNews): void => {
    const trigger = here();
    if (trigger?.firing.kind !== "event" || trigger.firing.objectId !== news.objectId) return;
    if (closing.signal.aborted || !asks(news)) return;
    if (!deps.hasModel) saysUnsupported(trigger);
    else if (deps.chat.claim(news.messageId)) take(trigger, news);
  };

  const run = async (trigger: TriggerDefinition, batch: AnswerBatch): Promise<void> => {
    const startedAtMs = clock.nowMs();
    const record = { runId: deps.newRunId(), startedAtMs, dry: false };
    await deps.runs.begin(trigger, record);
    const outcome = await deps.answer(batch)({
      runId: record.runId,
      trigger,
      args: {},
      scheduledAtMs: startedAtMs,
      startedAtMs,
      lastRunAtMs: trigger.lastRunAtMs,
      dry: false,
      signal: closing.signal,
    });
    await deps.runs.end(trigger, record, outcome, { runCount: trigger.runCount + 1 });
  };

  /** This device has become the one that answers: it answers recent messages that nobody answered, once per thread. */
  const takeOver = async (trigger: TriggerDefinition): Promise<void> => {
    if (trigger.firing.kind !== "event" || !deps.hasModel) return;
    for (const news of await deps.chat.unanswered(trigger.firing, clock.nowMs() - FRESH_MS)) considered(news);
  };

  return {
    message: considered,
    tick() {
      const trigger = here();
      if (trigger && !deps.hasModel) saysUnsupported(trigger);
      if (trigger && deps.hasModel && trigger.lastStatus === "unsupported_source")
        background(records.triggers.write(CHAT_WATCH, {}, ["lastStatus"]));
      const isHere = trigger !== undefined;
      if (isHere && !wasHere) background(takeOver(trigger));
      wasHere = isHere;
    },
    async close() {
      closing.abort();
      await done;
    },
  };
}
