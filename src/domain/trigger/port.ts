import type { JsonObject } from "../../protocol/json.ts";
import type { TriggerDefinition } from "./trigger-definition.ts";

/** How a run may end. All but ok, skipped and interrupted count for the breaker. */
export type RunStatus =
  | "ok"
  | "failed"
  | "timeout"
  | "fuel_exhausted"
  | "memory_exhausted"
  | "cost_exceeded"
  | "interrupted"
  | "skipped";

/** The records of triggers, wherever they are kept and whoever writes them. */
export interface TriggerStore {
  list(): JsonObject[];
  get(triggerId: string): JsonObject | undefined;
  /** Writes leaves of a record that is there; one that is gone stays gone. */
  write(triggerId: string, set: JsonObject, unset?: readonly string[]): Promise<void>;
}

/** The rows of runs, on the object that holds the triggers. */
export interface RunStore {
  /** Of a trigger, newest first. */
  list(triggerId: string): JsonObject[];
  /** That say they run, on this device. */
  running(): JsonObject[];
  insert(runId: string, fields: JsonObject): Promise<void>;
  /** Keeps a trace too large for a row. */
  keepTrace(runId: string, trace: string): Promise<void>;
  complete(runId: string, fields: JsonObject): Promise<void>;
  /** Rows with what was kept beside them. */
  remove(runIds: readonly string[]): Promise<void>;
}

/** Which device runs what has no owner. */
export interface Election {
  readonly self: string;
  /** The active device for the agent, if any claims it. */
  active(): string | undefined;
  /** Whether a device of the account has this id. */
  isKnown(peerId: string): boolean;
  /** Whether a device of this id was taken from the account: not so of one that this device has not heard of yet. */
  isPruned(peerId: string): boolean;
}

export interface RunRequest {
  readonly runId: string;
  readonly trigger: TriggerDefinition;
  readonly args: JsonObject;
  readonly scheduledAtMs: number;
  readonly startedAtMs: number;
  readonly lastRunAtMs: number | undefined;
  /** Reads live, records writes and does not do them. */
  readonly dry: boolean;
  readonly signal: AbortSignal;
  /** Resolves once the row of the run is on the disk: nothing is done for the program before. Absent: it is there. */
  readonly begun?: Promise<void>;
}

export interface RunOutcome {
  readonly status: RunStatus;
  readonly error?: string;
  /** JSON of what the program returned. */
  readonly value?: string;
  /** Null where nobody knows. */
  readonly fuel: number | null;
  readonly memPages: number | null;
  readonly costUsd: number | null;
  readonly tokens?: { readonly in: number; readonly out: number };
  readonly trace?: string;
}

/** Runs a trigger's program to its end. Never rejects. */
export type ExecuteRun = (request: RunRequest) => Promise<RunOutcome>;

/** What a message that landed in a chat says to event triggers. */
export interface ChatNews {
  readonly spaceId: string;
  readonly objectId: string;
  readonly messageId: string;
  readonly text: string;
  readonly creator: string;
  readonly createdAtMs: number;
  readonly agent?: JsonObject;
}
