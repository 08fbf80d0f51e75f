import { isTarget, type ProcessError, type ProcessRow } from "../../protocol/event.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { BusEvent, EventInput } from "../event/port.ts";
import { isAmount, isTextWithin, readError } from "./process-rules.ts";

/** What a frame does to a process; `process.cancel` does nothing by itself. */
const STATE_BY_TYPE: Readonly<Record<string, ProcessRow["state"]>> = {
  "process.started": "running",
  "process.progress": "running",
  "process.done": "done",
  "process.failed": "failed",
  "process.cancelled": "cancelled",
};

/** A process as one frame describes it: completely, so that a listener that missed frames is up to date after one. */
export interface ProcessFrame {
  readonly starts: boolean;
  readonly state: ProcessRow["state"];
  readonly row: Omit<ProcessRow, "startedAt" | "updatedAt">;
}

/** Reads a frame of the bus; undefined for other events and for malformed ones, which anyone can publish. */
export function readFrame(event: BusEvent): ProcessFrame | undefined {
  const state = Object.hasOwn(STATE_BY_TYPE, event.type) ? STATE_BY_TYPE[event.type] : undefined;
  if (state === undefined || event.target === undefined || !isJsonObject(event.data)) return undefined;
  const { kind, title, target, done, total, message } = event.data as { [K in keyof ProcessRow]?: unknown };
  if (kind === "" || !isTextWithin(kind, "kind") || title === "" || !isTextWithin(title, "title")) return undefined;
  const error = state === "failed" ? readError(event.data["error"]).value : undefined;
  if (state === "failed" && !error) return undefined;
  return {
    starts: event.type === "process.started",
    state,
    row: {
      identity: event.sender.identity,
      self: event.sender.self,
      id: event.target,
      kind,
      title,
      scope: event.scope,
      ...(event.spaceId === undefined ? {} : { spaceId: event.spaceId }),
      ...(typeof target === "string" && isTarget(target) ? { target } : {}),
      state,
      done: isAmount(done) ? done : 0,
      ...(isAmount(total) && total > 0 ? { total } : {}),
      ...(isTextWithin(message, "message") && message !== "" ? { message } : {}),
      ...(error ? { error } : {}),
    },
  };
}

type FrameSource = Pick<ProcessRow, "id" | "kind" | "title" | "scope" | "spaceId" | "target"> &
  Partial<Pick<ProcessRow, "done" | "total" | "message">>;

/** The frame that describes a process: its id is the event's target. */
export function frameOf(type: string, process: FrameSource, error?: ProcessError): EventInput {
  const { id, kind, title, scope, spaceId, target, done, total, message } = process;
  const data: JsonObject = { kind, title };
  if (target !== undefined) data["target"] = target;
  if (type !== "process.started") {
    data["done"] = done ?? 0;
    if (total !== undefined) data["total"] = total;
    if (message !== undefined) data["message"] = message;
  }
  if (error) data["error"] = { ...error };
  return { type, scope, ...(spaceId === undefined ? {} : { spaceId }), target: id, data };
}
