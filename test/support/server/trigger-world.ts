/** Devices over one set of trigger records, each with a scheduler, on a clock that the test moves. */
import { silentLog } from "../../../src/base/log.ts";
import type {
  ChatNews,
  RunOutcome,
  RunRequest,
  RunStatus,
  RunStore,
  TriggerStore,
} from "../../../src/domain/trigger/port.ts";
import { CHAT_WATCH } from "../../../src/domain/trigger/trigger-definition.ts";
import { createTriggerRuns } from "../../../src/domain/trigger/trigger-runs.ts";
import { createTriggerScheduler } from "../../../src/domain/trigger/trigger-scheduler.ts";
import type { Json, JsonObject } from "../../../src/protocol/json.ts";

export const START = Date.parse("2026-03-01T00:00:00Z");
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;

/** Devices over one set of records, each with a scheduler and a clock that the test moves. */
export function createTriggerWorld({ self = "A", active = "A", known = ["A", "B"] } = {}) {
  const records = new Map<string, JsonObject>();
  const rows = new Map<string, JsonObject>();
  const traces = new Map<string, string>();
  const election = { self, activeId: active as string | undefined, known: new Set(known), pruned: new Set<string>() };
  const clock = { ms: START, nowMs: () => clock.ms };
  const announced: string[] = [];
  const requests: RunRequest[] = [];
  let nextRun = 0;
  let answer: (request: RunRequest) => Promise<Partial<RunOutcome>> = async () => ({});
  /** What every write of a row waits for. */
  let writing: () => Promise<void> = async () => {};

  const triggers: TriggerStore = {
    list: () => [...records.values()],
    get: (id) => records.get(id),
    async write(id, set, unset = []) {
      const record = records.get(id);
      if (!record) return;
      const next = { ...record, ...set };
      for (const leaf of unset) delete next[leaf];
      records.set(id, next);
      scheduler.changed(id);
    },
  };
  const runStore: RunStore = {
    list: (triggerId) => [...rows.values()].filter((row) => row["triggerId"] === triggerId).reverse(),
    running: () => [...rows.values()].filter((row) => row["status"] === "running" && row["device"] === self),
    async insert(id, fields) {
      await writing();
      rows.set(id, { id, ...fields });
    },
    keepTrace: async (id, trace) => void traces.set(id, trace),
    async complete(id, fields) {
      await writing();
      rows.set(id, { ...rows.get(id), ...fields });
    },
    remove: async (ids) => {
      for (const id of ids) rows.delete(id);
    },
  };
  const runs = createTriggerRuns({ triggers, runs: runStore, self, clock });
  const scheduler = createTriggerScheduler({
    triggers,
    runs,
    election: {
      self,
      active: () => election.activeId,
      isKnown: (peerId) => election.known.has(peerId),
      isPruned: (peerId) => election.pruned.has(peerId),
    },
    execute: async (request) => {
      requests.push(request);
      return { status: "ok", fuel: 10, memPages: 21, costUsd: null, ...(await answer(request)) };
    },
    clock,
    log: silentLog,
    newRunId: () => `run_${nextRun++}`,
    announce: (type, id) => void announced.push(`${type} ${id}`),
    isOwnMessage: (trigger, { agent }) => agent?.["name"] === trigger.name,
    isNative: ({ id }) => id === CHAT_WATCH,
  });
  const world = {
    records,
    rows,
    traces,
    election,
    clock,
    announced,
    requests,
    runs,
    scheduler,
    record: (id = "t") => records.get(id) as JsonObject,
    put(fields: JsonObject, id = "t") {
      records.set(id, {
        id,
        kind: "cron",
        spec: "* * * * *",
        program: "p@v1",
        enabled: true,
        ...records.get(id),
        ...fields,
      });
      scheduler.changed(id);
    },
    answer(next: typeof answer) {
      answer = next;
    },
    writing(next: typeof writing) {
      writing = next;
    },
    end(status: RunStatus) {
      answer = async () => ({ status });
    },
    /** Lets what is under way come to its end, and the records be looked at again. */
    async idle() {
      for (let round = 0; round < 5; round++) {
        await scheduler.idle();
        await Bun.sleep(0);
        scheduler.tick();
      }
      await scheduler.idle();
    },
    async tick(ms = 0) {
      clock.ms += ms;
      scheduler.tick();
      await world.idle();
    },
    /** Ticks every second for so long. */
    async pass(ms: number) {
      for (const until = clock.ms + ms; clock.ms < until; ) await world.tick(SECOND);
    },
    message(fields: Partial<ChatNews> = {}) {
      const news = { spaceId: "s", objectId: "chat", messageId: "m", text: "hi", creator: "me", createdAtMs: clock.ms };
      scheduler.message({ ...news, ...fields });
      return world.idle();
    },
  };
  return world;
}

export const fires = (world: { requests: RunRequest[] }) => world.requests.length;
export const at = (seconds: number): Json => ({ at: START / 1000 + seconds });
