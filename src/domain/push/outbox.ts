import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { NodeFault } from "../../push-link/node-calls.ts";
import type { OutboxRow, PushOutboxStore } from "../../store/push-outbox-store.ts";
import { retryDelayMs } from "./retry-delay.ts";

/** Later than that a notification is worth nothing. */
const MAX_AGE_MS = 60 * 60_000;
/** Messages in one chat for the same people make one notification within this time, the first one at once. */
const BURST_MS = 1_000;
const AT_ONCE = 4;
const LOOK_MS = 30_000;

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
}

export function createOutbox(deps: OutboxDeps): Outbox {
  const { store, clock, log } = deps;
  const running = new Set<Promise<void>>();
  /** When a chat's last push was queued to go at once, by audience. */
  const lastByAudience = new Map<string, number>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let begun = false;
  let stopped = false;

  const wakeIn = (ms: number): void => {
    clearTimeout(timer);
    if (begun && !stopped) timer = setTimeout(look, ms);
  };

  const look = (): void => {
    if (stopped) return;
    const nowMs = clock.nowMs();
    const old = store.dropOld(nowMs - MAX_AGE_MS);
    if (old > 0) log.warn("notifications were dropped: the push node could not be reached for an hour", { count: old });
    for (const row of store.takeDue(nowMs, AT_ONCE - running.size)) {
      const work = bring(row).finally(() => {
        running.delete(work);
        wakeIn(0);
      });
      running.add(work);
    }
    if (running.size >= AT_ONCE) return; // whoever ends looks again
    const nextMs = store.nextDueMs();
    wakeIn(nextMs === undefined ? LOOK_MS : Math.min(LOOK_MS, Math.max(1, nextMs - clock.nowMs())));
  };

  const bring = async (row: OutboxRow): Promise<void> => {
    try {
      await deps.send(row);
      store.drop(row.id);
    } catch (error) {
      if (stopped) return; // a row that was taken waits again at the next start
      if (error instanceof NodeFault && isPassing(error)) {
        log.debug("a notification is sent again later", { err: error });
        return store.giveBack(row.id, clock.nowMs() + (error.retryAfterMs ?? retryDelayMs(row.attempts)));
      }
      log.warn("a notification was not sent, and is not tried again", { err: error });
      store.drop(row.id);
    }
  };

  /** The first of a burst goes at once, the others wait and are merged. */
  const dueOf = (audience: string): number => {
    const nowMs = clock.nowMs();
    for (const [known, atMs] of lastByAudience) {
      if (nowMs - atMs < BURST_MS) break;
      lastByAudience.delete(known);
    }
    const lastMs = lastByAudience.get(audience);
    if (lastMs !== undefined) return lastMs + BURST_MS;
    lastByAudience.set(audience, nowMs);
    return nowMs;
  };

  return {
    name: "push outbox",
    queueMessage(spaceId, chatId, messageId, mentions) {
      const audience = [...mentions].sort().join(" ");
      const dueMs = dueOf(`${spaceId} ${chatId} ${audience}`);
      const queuedMs = clock.nowMs();
      store.put({ id: deps.newId(), kind: "message", spaceId, chatId, messageId, audience, queuedMs, dueMs });
      wakeIn(0);
    },
    queueReading(spaceId, chatId) {
      const queuedMs = clock.nowMs();
      const dueMs = queuedMs + BURST_MS;
      store.put({ id: deps.newId(), kind: "read", spaceId, chatId, messageId: "", audience: "", queuedMs, dueMs });
      wakeIn(BURST_MS);
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

/** Whether the same request may do better later. */
function isPassing({ status }: NodeFault): boolean {
  return status === 0 || status === 401 || status === 408 || status === 429 || status >= 500;
}
