import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { createFireGuard, type FireGuard } from "./fire-guard.ts";
import { type Lease, ownerOf } from "./ownership.ts";
import type { ChatNews, Election, ExecuteRun, RunOutcome, TriggerStore } from "./port.ts";
import { createRunQueue, type QueuedFire, type RunStages } from "./run-queue.ts";
import { isConsumed, isMarker, readTrigger, type TriggerDefinition } from "./trigger-definition.ts";
import { dateOf, type TriggerRuns } from "./trigger-runs.ts";

/** A trigger that this device answers for. */
interface Entry {
  trigger: TriggerDefinition;
  /** When it fires next, in Unix milliseconds; undefined while nothing is armed. */
  dueMs: number | undefined;
  /** The last occurrence that was fired or passed over: none fires twice when a clock goes back. */
  passedMs: number;
  /** Since when the watched chat is listened to. */
  readonly watchedSinceMs: number;
  failures: number;
  runCount: number;
  readonly guard: FireGuard;
}

export interface FireRequest {
  readonly args?: JsonObject;
  readonly dry?: boolean;
}

export interface TriggerSchedulerDeps {
  readonly triggers: TriggerStore;
  readonly runs: TriggerRuns;
  readonly election: Election;
  readonly execute: ExecuteRun;
  readonly clock: Clock;
  readonly log: Log;
  readonly newRunId: () => string;
  /** Tells the account's event bus. */
  readonly announce: (type: "trigger.auto_disabled" | "trigger.rate_limited", triggerId: string) => void;
  /** Whether a message is one that this trigger, or the agent itself, has written. */
  readonly isOwnMessage: (trigger: TriggerDefinition, news: ChatNews) => boolean;
  /** Triggers that something else answers for. */
  readonly isNative: (trigger: TriggerDefinition) => boolean;
}

/** A fire that is this late was missed, and a missed occurrence does not exist. */
const LATE_MS = 10_000;
/** How often all records are looked at, whatever events came: which devices there are may have changed as well. */
const LOOK_MS = 1_000;
/** A clock that goes back further than this was wrong before. */
const BACK_MS = 60_000;
/** Messages made this long before the watch began may still be news: clocks differ. */
const NEWS_SLACK_MS = 60_000;

export type TriggerScheduler = ReturnType<typeof createTriggerScheduler>;

/**
 * Keeps the triggers of this device in step with their records, whoever writes them, and fires them (AGENT-1 to
 * AGENT-6). `tick` is called every second and soon after a record has changed; nothing here has a timer.
 */
export function createTriggerScheduler(deps: TriggerSchedulerDeps) {
  const { triggers, runs, election, clock } = deps;
  const entries = new Map<string, Entry>();
  let lastTickMs: number | undefined;
  let lastActive: string | undefined;
  /** When all records were looked at; between, those that have changed are. */
  let lookedMs = Number.NEGATIVE_INFINITY;
  const changed = new Set<string>();
  const readOnce = createTriggerReader();
  const queue = createRunQueue({ run, log: deps.log });
  const background = (work: Promise<unknown>, triggerId: string) =>
    work.catch((err: unknown) => deps.log.error("a trigger's record could not be written", { err, triggerId }));

  /** Adopt, refresh, evict: the entry is what the record says. */
  const follow = (triggerId: string, record: JsonObject | undefined, nowMs: number): void => {
    const trigger = record && readOnce(record, nowMs);
    const lease = trigger === undefined || deps.isNative(trigger) ? "other" : ownerOf(trigger, election);
    const entry = entries.get(triggerId);
    if (!trigger || lease === "other") evict(triggerId);
    else if (entry) refresh(entry, trigger, nowMs);
    else adopt(trigger, lease, nowMs);
  };
  const followAll = (nowMs: number): void => {
    lookedMs = nowMs;
    const records = new Map(triggers.list().map((record) => [record["id"] as string, record]));
    for (const [triggerId, record] of records) follow(triggerId, record, nowMs);
    for (const triggerId of entries.keys()) if (!records.has(triggerId)) evict(triggerId);
  };
  const followChanged = (nowMs: number): void => {
    for (const triggerId of changed) follow(triggerId, triggers.get(triggerId), nowMs);
  };

  const adopt = (trigger: TriggerDefinition, lease: Lease, nowMs: number): void => {
    const entry: Entry = {
      trigger,
      dueMs: undefined,
      passedMs: 0,
      watchedSinceMs: nowMs,
      // Switched on again while nobody looked: the breaker starts anew.
      failures: trigger.consecutiveFailures >= trigger.maxConsecutiveFailures ? 0 : trigger.consecutiveFailures,
      runCount: trigger.runCount,
      guard: createFireGuard(),
    };
    entries.set(trigger.id, entry);
    if (lease === "unowned") void background(triggers.write(trigger.id, { owner: election.self }), trigger.id);
    arm(entry, nowMs);
    mark(entry);
  };

  const refresh = (entry: Entry, next: TriggerDefinition, nowMs: number): void => {
    const before = entry.trigger;
    if (before === next) return;
    entry.trigger = next;
    const switchedOn = !before.enabled && next.enabled;
    const consumed = isConsumed(before) !== isConsumed(next);
    if (switchedOn) resetBreaker(entry);
    if (before.fingerprint !== next.fingerprint || before.enabled !== next.enabled || consumed) arm(entry, nowMs);
    mark(entry);
  };

  const evict = (triggerId: string): void => {
    if (entries.delete(triggerId)) queue.drop(triggerId);
  };

  const resetBreaker = (entry: Entry): void => {
    const { id, consecutiveFailures, lastStatus } = entry.trigger;
    entry.failures = 0;
    if (consecutiveFailures === 0 && lastStatus !== "auto_disabled") return;
    const cleared = lastStatus === "auto_disabled" ? ["lastStatus"] : [];
    void background(triggers.write(id, { consecutiveFailures: 0 }, cleared), id);
  };

  /** Strictly forward: what is past is past, but for a once trigger, which fires late. */
  const arm = (entry: Entry, nowMs: number): void => {
    const { firing, enabled } = entry.trigger;
    entry.dueMs = undefined;
    if (!enabled) return;
    if (firing.kind === "cron") entry.dueMs = firing.schedule.nextAfter(Math.max(nowMs, entry.passedMs));
    else if (firing.kind === "once" && !isConsumed(entry.trigger)) entry.dueMs = firing.atMs;
  };

  /** Says of an enabled trigger that it can never fire, and takes it back once it can. */
  const mark = (entry: Entry): void => {
    const { id, firing, enabled, lastStatus } = entry.trigger;
    if (firing.kind === "never") {
      if (enabled && lastStatus !== firing.marker)
        void background(triggers.write(id, { lastStatus: firing.marker }), id);
    } else if (isMarker(lastStatus)) void background(triggers.write(id, {}, ["lastStatus"]), id);
  };

  const fireDue = (nowMs: number): void => {
    for (const entry of entries.values()) {
      const { dueMs, trigger } = entry;
      if (dueMs === undefined || nowMs < dueMs) continue;
      if (trigger.firing.kind === "once") {
        entry.dueMs = undefined;
        queue.push(fireOf(trigger, "once", dueMs));
        continue;
      }
      entry.passedMs = dueMs;
      arm(entry, nowMs);
      if (nowMs - dueMs > LATE_MS) continue;
      const fire = fireOf(trigger, "cron", dueMs);
      if (!queue.isBusy(trigger.id) || trigger.overlap === "queue") queue.push(fire);
      else void background(runs.skipped(trigger, { runId: fire.runId, startedAtMs: nowMs, dry: false }), trigger.id);
    }
  };

  const fireOf = (trigger: TriggerDefinition, kind: QueuedFire["kind"], scheduledAtMs: number): QueuedFire => ({
    trigger,
    kind,
    scheduledAtMs,
    runId: deps.newRunId(),
    args: trigger.args,
  });

  /** One run from its row's beginning to its row's end. What it throws is a fault of the server's own. */
  async function run(fire: QueuedFire, signal: AbortSignal, stages: RunStages): Promise<void> {
    const entry = entries.get(fire.trigger.id);
    // The record as it is now: an edit since the fire was queued counts.
    const trigger = entry?.trigger ?? fire.trigger;
    const startedAtMs = clock.nowMs();
    const record = { runId: fire.runId, startedAtMs, dry: fire.dry === true };
    if (fire.kind === "once") {
      if (!entry || !trigger.enabled || isConsumed(trigger)) return;
      // Durable before anything happens: whatever comes now, there is no second shot.
      await triggers.write(trigger.id, { enabled: false, lastRunAt: dateOf(startedAtMs) });
    }
    // The program starts meanwhile, and is done nothing for until the row is there; if it cannot be written, the run ends.
    const unwritten = new AbortController();
    const begun = runs.begin(trigger, record);
    begun.then(stages.rowWritten, () => unwritten.abort());
    const outcome = await deps.execute({
      runId: record.runId,
      trigger,
      args: fire.args,
      scheduledAtMs: fire.scheduledAtMs,
      startedAtMs,
      lastRunAtMs: trigger.lastRunAtMs,
      dry: record.dry,
      signal: AbortSignal.any([signal, unwritten.signal]),
      begun,
    });
    stages.programEnded();
    await begun;
    const set = record.dry ? {} : noteEnd(trigger.id, trigger, outcome, fire);
    await runs.end(trigger, record, outcome, set);
    if (set["lastStatus"] === "auto_disabled") deps.announce("trigger.auto_disabled", trigger.id);
  }

  /** Counts for the breaker, and plans another try. Gives the leaves that go with the end of the run. */
  function noteEnd(triggerId: string, trigger: TriggerDefinition, outcome: RunOutcome, fire: QueuedFire): JsonObject {
    const entry = entries.get(triggerId);
    const runCount = entry ? ++entry.runCount : trigger.runCount + 1;
    if (outcome.status === "interrupted" || !entry) return { runCount };
    if (outcome.status === "ok") {
      entry.failures = 0;
      return { runCount, consecutiveFailures: 0 };
    }
    entry.failures++;
    const set: JsonObject = { runCount, consecutiveFailures: entry.failures };
    if (entry.failures >= entry.trigger.maxConsecutiveFailures && fire.kind !== "once") {
      entry.dueMs = undefined;
      queue.drop(triggerId);
      return { ...set, enabled: false, lastStatus: "auto_disabled" };
    }
    const attempt = (fire.attempt ?? 0) + 1;
    if (attempt <= entry.trigger.retry.max && (fire.kind === "cron" || fire.kind === "event"))
      queue.pushLater(
        { ...fire, runId: deps.newRunId(), attempt },
        clock.nowMs() + entry.trigger.retry.backoffS * 1000,
      );
    return set;
  }

  return {
    /** A record may have changed: the next tick looks at it. */
    changed: (triggerId: string): void => void changed.add(triggerId),

    tick(): void {
      const nowMs = clock.nowMs();
      const active = election.active();
      if (active !== lastActive || Math.abs(nowMs - lookedMs) >= LOOK_MS) followAll(nowMs);
      else followChanged(nowMs);
      lastActive = active;
      changed.clear();
      if (lastTickMs !== undefined && nowMs < lastTickMs - BACK_MS) {
        for (const entry of entries.values()) {
          entry.passedMs = 0;
          arm(entry, nowMs);
        }
      }
      lastTickMs = nowMs;
      fireDue(nowMs);
      queue.tick(nowMs);
    },

    /** A message was added to a chat. */
    message(news: ChatNews): void {
      const nowMs = clock.nowMs();
      for (const entry of entries.values()) {
        const { trigger } = entry;
        const { firing } = trigger;
        if (firing.kind !== "event" || !trigger.enabled || firing.objectId !== news.objectId) continue;
        if (firing.spaceId !== undefined && firing.spaceId !== news.spaceId) continue;
        if (news.createdAtMs < entry.watchedSinceMs - NEWS_SLACK_MS || deps.isOwnMessage(trigger, news)) continue;
        const verdict = entry.guard.take(nowMs);
        if (verdict === "refused") continue;
        if (verdict === "limited") {
          deps.announce("trigger.rate_limited", trigger.id);
          void background(triggers.write(trigger.id, { lastStatus: "rate_limited" }), trigger.id);
          continue;
        }
        const args = { ...trigger.args, event: eventOf(news) };
        const taken = queue.push({ ...fireOf(trigger, "event", nowMs), args });
        if (!taken) void background(triggers.write(trigger.id, { lastStatus: "queue_full" }), trigger.id);
      }
      queue.tick(nowMs);
    },

    /** Runs a trigger now, whoever owns it. Resolves with the run's id once its row is there. */
    async runNow(record: JsonObject, { args, dry = false }: FireRequest): Promise<string> {
      const nowMs = clock.nowMs();
      const trigger = readTrigger(record, nowMs);
      const begun = Promise.withResolvers<void>();
      const fire = fireOf(trigger, "manual", nowMs);
      queue.push({ ...fire, args: args ?? trigger.args, dry, onRow: begun.resolve });
      queue.tick(nowMs);
      await begun.promise;
      return fire.runId;
    },

    /** Ends a run that is under way here; false when there is none. */
    cancel: (runId: string): boolean => queue.cancel(runId),
    /** When a trigger fires next, if it is armed here. */
    nextDueMs: (triggerId: string): number | undefined => entries.get(triggerId)?.dueMs,
    isHere: (triggerId: string): boolean => entries.has(triggerId),
    /** Chats that are watched, for whoever keeps their spaces open. */
    watchedChats: () =>
      [...entries.values()].flatMap(({ trigger }) => (trigger.firing.kind === "event" ? [trigger.firing] : [])),
    /** Resolves when nothing runs or waits to run. */
    idle: (): Promise<void> => queue.idle(),
    /** Ends what runs; it is written down as interrupted. */
    close: (): Promise<void> => queue.close(),
  };
}

/** A record is read once, however often the others change. */
function createTriggerReader(): (record: JsonObject, nowMs: number) => TriggerDefinition {
  const known = new WeakMap<JsonObject, TriggerDefinition>();
  return (record, nowMs) => {
    const trigger = known.get(record) ?? readTrigger(record, nowMs);
    known.set(record, trigger);
    return trigger;
  };
}

function eventOf({ spaceId, objectId, messageId, text, agent }: ChatNews): JsonObject {
  return { space: spaceId, objectId, messageId, text, ...(agent === undefined ? {} : { agent }) };
}
