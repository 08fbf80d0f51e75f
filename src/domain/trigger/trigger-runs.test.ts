import { expect, test } from "bun:test";
import type { RunStore, TriggerStore } from "./port.ts";
import type { TriggerDefinition } from "./trigger-definition.ts";
import { createTriggerRuns } from "./trigger-runs.ts";

test("[AGENT-3] the record of a trigger learns how a run ended before its row does, also where a crash ended it", async () => {
  const asked: string[] = [];
  const note = (what: string) => async (): Promise<void> => void asked.push(what);
  const triggers: TriggerStore = { list: () => [], get: () => undefined, write: note("record") };
  const runs: RunStore = {
    list: () => [],
    running: () => [{ id: "r", triggerId: "t" }],
    insert: note("row begins"),
    complete: note("row ends"),
    keepTrace: note("trace"),
    remove: note("rows go"),
  };
  const trigger = { id: "t", logRuns: true } as TriggerDefinition;
  const start = { runId: "r", startedAtMs: 0, dry: false };
  const { end, closeOrphans } = createTriggerRuns({ triggers, runs, self: "me", clock: { nowMs: () => 1 } });
  await end(trigger, start, { status: "ok", fuel: 1, memPages: 1, costUsd: null, trace: "x".repeat(40_000) }, {});
  expect(asked).toEqual(["trace", "record", "row ends"]);
  asked.length = 0;
  await closeOrphans();
  expect(asked).toEqual(["record", "row ends"]);
});
