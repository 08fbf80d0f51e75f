import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { NodeFault } from "../../push-link/node-calls.ts";
import type { OutboxRow, PushOutboxStore } from "../../store/push-outbox-store.ts";
import { retryDelayMs } from "./retry-delay.ts";

/** A notification that is older than this is worth nothing. */
const MAX_AGE_MS = 60 * 60_000;
/** Messages in one chat for the same audience become one notification within this time; the first one is sent at once. */
const BURST_MS = 1_000;
const AT_ONCE = 4;
const LOOK_MS = 30_000;
/** How often what is too old is looked for, and how much older than its newest message a row may say that it is. */
const SWEEP_MS = 60_000;
const REWRITE_MS = 60_000;

interface OutboxDeps {
  readonly store: PushOutboxStore;
  readonly clock: Clock;
  readonly log: Log;
  newId(): string;
  /** Sends a row's push. Errors: NodeFault when it may be tried again. */
  send(row: OutboxRow): Promise<void>;
}

/** Pushes on their way to the node: durable, tried again, dropped after an hour. */
export interface Outbox extends Service {
  queueMessage(spaceId: string, chatId: string, messageId: string, mentions: readonly string[]): void;
  queueReading(spaceId: string, chatId: string): void;
  /** Drops everything that waits to be sent for a space. */
  dropSpace(spaceId: string): void;
}

export function createOutbox(deps: OutboxDeps): Outbox {
  const { store, clock, log } = deps;
  const running = new Set<Promise<void>>();
  /** When a chat's last push was queued to go at once, by audience. */
  const lastByAudience = new Map<string, number>();
  /**
   * The newest message of each waiting row. It is only in memory until the row is sent, so that a burst writes once. After a
   * crash an older message of the burst is sent instead, which makes the app fetch all of them as well.
   */
  const newestByAudience = new Map<string, { messageId: string; writtenMs: number }>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wakeMs = Number.POSITIVE_INFINITY;
  let sweptMs = 0;
  let begun = false;
  let looking = false;
  let stopped = false;

  /** Looks again at a time, unless that is going to happen earlier. */
  const wakeAt = (ms: number): void => {
    if (!begun || stopped || ms >= wakeMs) return;
    clearTimeout(timer);
    wakeMs = ms;
    timer = setTimeout(look, Math.max(0, ms - clock.nowMs()));
  };

  const look = (): void => {
    wakeMs = Number.POSITIVE_INFINITY;
    if (stopped || looking) return;
    looking = true;
    void lookOnce()
      .catch((err: unknown) => {
        log.warn("what waits for the push node could not be looked through", { err });
        return undefined;
      })
      .then((nextMs) => {
        looking = false;
        wakeAt(Math.min(clock.nowMs() + LOOK_MS, nextMs ?? Number.POSITIVE_INFINITY));
      });
  };

  /** Begins to send what is due; answers when something is next. */
  const lookOnce = async (): Promise<number | undefined> => {
    const nowMs = clock.nowMs();
    if (nowMs - sweptMs >= SWEEP_MS) await dropOld(nowMs);
    const due = running.size < AT_ONCE ? await store.takeDue(nowMs, AT_ONCE - running.size) : [];
    if (stopped) return undefined; // a row that was taken waits again at the next start
    for (const row of due) {
      const work = bring(row).finally(() => {
        running.delete(work);
        wakeAt(clock.nowMs());
      });
      running.add(work);
    }
    // With all hands full, whoever ends looks again.
    return running.size < AT_ONCE ? store.nextDueMs() : undefined;
  };

  const dropOld = async (nowMs: number): Promise<void> => {
    sweptMs = nowMs;
    const count = await store.dropOld(nowMs - MAX_AGE_MS);
    if (count === 0) return;
    newestByAudience.clear(); // their rows may be among them
    log.warn("notifications were dropped: the push node could not be reached for an hour", { count });
  };

  const bring = async (taken: OutboxRow): Promise<void> => {
    const name = nameOf(taken);
    const row = { ...taken, messageId: newestByAudience.get(name)?.messageId ?? taken.messageId };
    newestByAudience.delete(name);
    try {
      await deps.send(row);
      store.drop(row.id);
    } catch (error) {
      if (stopped) return; // a row that was taken waits again at the next start
      if (error instanceof NodeFault && isPassing(error)) {
        log.debug("a notification is sent again later", { err: error });
        store.giveBack(row.id, row.messageId, clock.nowMs() + (error.retryAfterMs ?? retryDelayMs(row.attempts)));
        return;
      }
      log.warn("a notification was not sent, and is not tried again", { err: error });
      store.drop(row.id);
    }
  };

  /** The first of a burst goes at once, the others wait and are merged. */
  const dueOf = (name: string, nowMs: number): number => {
    for (const [known, atMs] of lastByAudience) {
      if (nowMs - atMs < BURST_MS) break;
      lastByAudience.delete(known);
    }
    const lastMs = lastByAudience.get(name);
    lastByAudience.delete(name); // put back as the youngest
    lastByAudience.set(name, lastMs === undefined ? nowMs : lastMs + BURST_MS);
    return lastByAudience.get(name)!;
  };

  const queue = (row: Omit<OutboxRow, "id" | "queuedMs" | "dueMs" | "attempts">, dueMs: (nowMs: number) => number) => {
    const name = nameOf(row);
    const nowMs = clock.nowMs();
    const newest = newestByAudience.get(name);
    if (newest && nowMs - newest.writtenMs < REWRITE_MS) {
      newest.messageId = row.messageId;
      return;
    }
    const whole = { ...row, id: deps.newId(), queuedMs: nowMs, dueMs: dueMs(nowMs) };
    store.put(whole);
    newestByAudience.set(name, { messageId: row.messageId, writtenMs: nowMs });
    wakeAt(whole.dueMs);
  };

  return {
    name: "push outbox",
    queueMessage(spaceId, chatId, messageId, mentions) {
      const row = { kind: "message", spaceId, chatId, messageId, audience: [...mentions].sort().join(" ") } as const;
      queue(row, (nowMs) => dueOf(nameOf(row), nowMs));
    },
    queueReading(spaceId, chatId) {
      queue({ kind: "read", spaceId, chatId, messageId: "", audience: "" }, (nowMs) => nowMs + BURST_MS);
    },
    dropSpace(spaceId) {
      newestByAudience.clear();
      store.dropSpace(spaceId);
    },
    start() {
      begun = true;
      look();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await Promise.all(running);
    },
  };
}

const nameOf = ({ kind, spaceId, chatId, audience }: Pick<OutboxRow, "kind" | "spaceId" | "chatId" | "audience">) =>
  `${kind} ${spaceId} ${chatId} ${audience}`;

/** Whether the same request may succeed later. */
function isPassing({ status }: NodeFault): boolean {
  return status === 0 || status === 401 || status === 408 || status === 429 || status >= 500;
}
