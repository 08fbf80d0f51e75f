import { Type } from "@sinclair/typebox";
import {
  ProcessCancelBody,
  ProcessFinishBody,
  ProcessProgressBody,
  ProcessRow,
  ProcessStartBody,
  Published,
} from "../../protocol/event.ts";
import { strict } from "../../protocol/schema.ts";
import { type Route, route } from "../route.ts";

const published = { 200: { description: "Published", schema: Published, example: { subscribers: 1 } } } as const;
/** A process with space scope is announced in its space, which may no longer exist. */
const spaceErrors = ["space.not_found", "space.not_accepted", "space.deleted", "events.no_read_key"] as const;

/** Long work that people can watch: a view in memory, made from `process.*` events. */
export const processRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/processes",
    id: "listProcesses",
    tag: "Processes",
    summary: "Live processes",
    description:
      "Of this account and of the accounts it shares spaces with, in the order they were first heard of. A running one is gone 45 s after its last report, an ended one after 60 s.",
    responses: {
      200: { description: "The processes", schema: strict({ processes: Type.Array(ProcessRow) }) },
    },
    handler: async ({ engine }) => ({ processes: engine.processes.list() }),
  }),
  route({
    method: "POST",
    path: "/v1/processes",
    id: "startProcess",
    tag: "Processes",
    summary: "Start a process",
    description: "Emits `process.started`. Starting an id that is live begins it again. Report at least every 15 s.",
    body: ProcessStartBody,
    example: { id: "export-1", kind: "export", title: "Exporting notes", scope: "device" },
    responses: published,
    errors: [...spaceErrors],
    handler: async ({ engine, body }) => engine.processes.start(body),
  }),
  route({
    method: "POST",
    path: "/v1/processes/:id/progress",
    id: "reportProcessProgress",
    tag: "Processes",
    summary: "Report progress",
    description: "Emits `process.progress`. What is left out keeps its value; an empty body is a heartbeat.",
    body: ProcessProgressBody,
    example: { done: 10, total: 40, message: "10 of 40 notes" },
    responses: published,
    errors: ["process.not_found", ...spaceErrors],
    handler: async ({ engine, params, body }) => engine.processes.progress(params.id, body),
  }),
  route({
    method: "POST",
    path: "/v1/processes/:id/finish",
    id: "finishProcess",
    tag: "Processes",
    summary: "End a process",
    description: "Emits `process.done`, `process.failed` or `process.cancelled`.",
    body: ProcessFinishBody,
    example: { status: "failed", error: { code: "disk", message: "The disk is full" } },
    responses: published,
    errors: ["process.not_found", ...spaceErrors],
    handler: async ({ engine, params, body }) => engine.processes.finish(params.id, body),
  }),
  route({
    method: "POST",
    path: "/v1/processes/:id/cancel",
    id: "cancelProcess",
    tag: "Processes",
    summary: "Ask a process to stop",
    description: "Emits `process.cancel`, which its publisher may follow; changes nothing itself.",
    body: ProcessCancelBody,
    example: {},
    responses: published,
    errors: ["process.not_found", "process.ambiguous", ...spaceErrors],
    handler: async ({ engine, params, body }) => engine.processes.cancel(params.id, body.identity),
  }),
];
