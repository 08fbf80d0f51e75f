import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { type CronSchedule, readCron } from "./cron-schedule.ts";

export const CHAT_WATCH = "chat-watch";
export const CHAT_WATCH_PROGRAM = "internal:chat-watch";
const CHAT_MESSAGES = "chat_messages";
const DEFAULT_MAX_FAILURES = 3;

/** What fires a trigger, or why nothing ever can. */
type Firing =
  | { readonly kind: "cron"; readonly schedule: CronSchedule }
  | { readonly kind: "once"; readonly atMs: number }
  | { readonly kind: "event"; readonly objectId: string; readonly spaceId: string | undefined }
  | { readonly kind: "never"; readonly marker: HealthMarker };

type HealthMarker = "invalid_spec" | "unsupported_source";
const MARKERS: ReadonlySet<unknown> = new Set<HealthMarker>(["invalid_spec", "unsupported_source"]);

interface RunLimits {
  readonly fuelPerRun?: number;
  readonly timeoutS?: number;
  readonly maxCostPerRun?: number;
}

/** A record of `agent_triggers`, read. */
export interface TriggerDefinition {
  readonly id: string;
  readonly name: string;
  readonly firing: Firing;
  readonly program: string;
  readonly args: JsonObject;
  /** Empty: whoever the election says. */
  readonly owner: string;
  readonly enabled: boolean;
  readonly logRuns: boolean;
  readonly limits: RunLimits;
  readonly maxConsecutiveFailures: number;
  readonly overlap: "skip" | "queue";
  readonly retry: { readonly max: number; readonly backoffS: number };
  readonly lastRunAtMs: number | undefined;
  readonly lastStatus: string | undefined;
  readonly consecutiveFailures: number;
  readonly runCount: number;
  /** Of everything that rebuilds an entry when it is edited. */
  readonly fingerprint: string;
}

/** Reads a record; what is malformed makes a trigger that never fires and says so. */
export function readTrigger(record: JsonObject, nowMs: number): TriggerDefinition {
  const { id, name, kind, spec, program, args, limits, maxConsecutiveFailures, overlap, retry } = record;
  const wellFormed = typeof program === "string" && program !== "" && (args === undefined || isJsonObject(args));
  const lastRunAtMs = instantMs(record["lastRunAt"]);
  return {
    id: id as string,
    name: typeof name === "string" && name !== "" ? name : (id as string),
    firing: wellFormed ? readFiring(kind, spec, nowMs) : { kind: "never", marker: "invalid_spec" },
    program: typeof program === "string" ? program : "",
    args: isJsonObject(args) ? args : {},
    owner: typeof record["owner"] === "string" ? record["owner"] : "",
    enabled: record["enabled"] === true,
    logRuns: record["logRuns"] !== false,
    limits: readLimits(limits),
    maxConsecutiveFailures:
      typeof maxConsecutiveFailures === "number" && maxConsecutiveFailures >= 1
        ? Math.floor(maxConsecutiveFailures)
        : DEFAULT_MAX_FAILURES,
    overlap: overlap === "queue" ? "queue" : "skip",
    retry: readRetry(retry),
    lastRunAtMs,
    lastStatus: typeof record["lastStatus"] === "string" ? record["lastStatus"] : undefined,
    consecutiveFailures: count(record["consecutiveFailures"]),
    runCount: count(record["runCount"]),
    fingerprint: JSON.stringify([kind, spec, program, args, name, limits, maxConsecutiveFailures, overlap, retry]),
  };
}

/** Whether the one shot of a once trigger was fired. A later `at` is a new one. */
export function isConsumed(trigger: TriggerDefinition): boolean {
  const { firing, lastRunAtMs } = trigger;
  return firing.kind === "once" && lastRunAtMs !== undefined && firing.atMs <= lastRunAtMs;
}

export const isMarker = (status: string | undefined): boolean => MARKERS.has(status);

function readFiring(kind: Json | undefined, spec: Json | undefined, nowMs: number): Firing {
  const invalid: Firing = { kind: "never", marker: "invalid_spec" };
  switch (kind) {
    case "cron": {
      const given = typeof spec === "string" ? { cron: spec } : isJsonObject(spec) ? spec : {};
      const { cron, tz } = given as { cron?: Json; tz?: Json };
      if (typeof cron !== "string" || (tz !== undefined && typeof tz !== "string")) return invalid;
      const schedule = readCron({ cron, ...(tz === undefined ? {} : { tz }) });
      return schedule?.nextAfter(nowMs) === undefined ? invalid : { kind, schedule };
    }
    case "once": {
      const at = isJsonObject(spec) ? spec["at"] : undefined;
      return typeof at === "number" && Number.isFinite(at) ? { kind, atMs: at * 1000 } : invalid;
    }
    case "event": {
      if (!isJsonObject(spec)) return invalid;
      const { dataset, objectId, spaceId } = spec as { dataset?: Json; objectId?: Json; spaceId?: Json };
      if (dataset !== CHAT_MESSAGES) return { kind: "never", marker: "unsupported_source" };
      if (typeof objectId !== "string" || objectId === "") return invalid;
      return { kind, objectId, spaceId: typeof spaceId === "string" ? spaceId : undefined };
    }
    default:
      return invalid;
  }
}

function readLimits(limits: Json | undefined): RunLimits {
  if (!isJsonObject(limits)) return {};
  const positive = (key: string): Record<string, number> => {
    const value = limits[key];
    return typeof value === "number" && value > 0 ? { [key]: value } : {};
  };
  return { ...positive("fuelPerRun"), ...positive("timeoutS"), ...positive("maxCostPerRun") };
}

function readRetry(retry: Json | undefined): { max: number; backoffS: number } {
  if (!isJsonObject(retry)) return { max: 0, backoffS: 0 };
  const backoffS = retry["backoffS"];
  return {
    max: Math.min(count(retry["max"]), 10),
    backoffS: typeof backoffS === "number" && backoffS >= 0 ? backoffS : 60,
  };
}

function count(value: Json | undefined): number {
  return typeof value === "number" && value > 0 ? Math.floor(value) : 0;
}

function instantMs(value: Json | undefined): number | undefined {
  const text = isJsonObject(value) ? value["$date"] : undefined;
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
