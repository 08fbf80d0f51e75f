import type { DatasetDraft, FieldDraft } from "../../protocol/type.ts";

export const TRIGGERS_DATASET = "agent_triggers";
export const RUNS_DATASET = "agent_trigger_runs";
export const PROGRAM_SOURCE_DATASET = "program_source";

const field = (kind: string, ...keys: string[]): FieldDraft[] => keys.map((key) => ({ key, kind, mutableBy: "any" }));

/**
 * The datasets of the agent space, as a client would declare them. `spec` and `value` may be of several kinds, which a declared
 * field cannot be, so for them undeclared keys are allowed.
 */
export const RUNTIME_DATASETS: Readonly<Record<string, DatasetDraft>> = {
  [TRIGGERS_DATASET]: {
    name: TRIGGERS_DATASET,
    derived: true,
    displayName: "Triggers",
    idRule: "user",
    dynamic: true,
    fields: [
      ...field("string", "name", "kind", "program", "owner", "lastStatus", "lastRunRef", "overlap"),
      ...field("object", "args", "limits", "retry"),
      ...field("boolean", "enabled", "logRuns"),
      ...field("datetime", "lastRunAt"),
      ...field("number", "maxConsecutiveFailures", "consecutiveFailures", "runCount"),
      ...field("number", "lastDurationMs", "lastFuel", "lastCostUsd", "lastMemPages", "avgDurationMs", "failureRate"),
    ],
  },
  [RUNS_DATASET]: {
    name: RUNS_DATASET,
    derived: true,
    displayName: "Runs",
    idRule: "user",
    dynamic: true,
    skipHistory: true,
    fields: [
      ...field("string", "runId", "triggerId", "device", "status", "error", "traceRef", "trace"),
      ...field("datetime", "ts"),
      ...field("number", "durationMs", "fuel", "costUsd", "memPages"),
      ...field("object", "tokens"),
      ...field("boolean", "dry"),
    ],
  },
  [PROGRAM_SOURCE_DATASET]: {
    name: PROGRAM_SOURCE_DATASET,
    derived: true,
    displayName: "Source",
    idRule: "user",
    fields: field("string", "code"),
  },
};
