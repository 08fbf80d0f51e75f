import { Type } from "@sinclair/typebox";
import { svcError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import {
  NextFires,
  RunList,
  RunStarted,
  TriggerList,
  TriggerPatchBody,
  TriggerRunBody,
  TriggerView,
} from "../../protocol/trigger.ts";
import { type Route, route } from "../route.ts";
import { controlOf } from "./control-of.ts";

const TRIGGER_ERRORS = ["runtime.disabled", "trigger.not_found"] as const;
const UNTIL = { description: "The record as it is now", schema: TriggerView };

/** Triggers: their records, with the state that the runtime holds of them. */
export const triggerRoutes: Route[] = [
  route({
    method: "GET",
    path: "/triggers",
    id: "listTriggers",
    tag: "Triggers",
    summary: "Every trigger: definition, owner, rollup and what runs cost",
    responses: { 200: { description: "The triggers", schema: TriggerList } },
    errors: ["runtime.disabled"],
    handler: async ({ engine }) => ({ triggers: (await controlOf(engine)).list() as never }),
  }),
  route({
    method: "GET",
    path: "/triggers/:id",
    id: "getTrigger",
    tag: "Triggers",
    summary: "One trigger",
    responses: { 200: UNTIL },
    errors: TRIGGER_ERRORS,
    handler: async ({ engine, params }) => (await controlOf(engine)).get(params.id) as never,
  }),
  route({
    method: "GET",
    path: "/triggers/:id/runs",
    id: "listRuns",
    tag: "Triggers",
    summary: "The last 20 runs, newest first",
    responses: { 200: { description: "The runs", schema: RunList } },
    errors: TRIGGER_ERRORS,
    handler: async ({ engine, params }) => ({ runs: (await controlOf(engine)).runs(params.id) as never }),
  }),
  route({
    method: "PATCH",
    path: "/triggers/:id",
    id: "patchTrigger",
    tag: "Triggers",
    summary: "Change when a trigger fires, or whether",
    body: TriggerPatchBody,
    example: { spec: "0 9 * * 1-5" },
    responses: { 200: UNTIL },
    errors: TRIGGER_ERRORS,
    handler: async ({ engine, params, body }) => {
      if (body.spec === undefined && body.enabled === undefined)
        throw svcError("request.missing_field", { field: "spec" }, "Give spec, enabled or both");
      const { spec, enabled } = body;
      return (await controlOf(engine)).patch(params.id, {
        ...(spec === undefined ? {} : { spec: spec as Json }),
        ...(enabled === undefined ? {} : { enabled }),
      }) as never;
    },
  }),
  route({
    method: "POST",
    path: "/triggers/:id/enable",
    id: "enableTrigger",
    tag: "Triggers",
    summary: "Switch a trigger on; the circuit breaker begins anew",
    responses: { 200: UNTIL },
    errors: TRIGGER_ERRORS,
    handler: async ({ engine, params }) => (await controlOf(engine)).enable(params.id) as never,
  }),
  route({
    method: "POST",
    path: "/triggers/:id/disable",
    id: "disableTrigger",
    tag: "Triggers",
    summary: "Switch a trigger off",
    responses: { 200: UNTIL },
    errors: TRIGGER_ERRORS,
    handler: async ({ engine, params }) => (await controlOf(engine)).disable(params.id) as never,
  }),
  route({
    method: "POST",
    path: "/triggers/:id/run",
    id: "runTrigger",
    tag: "Triggers",
    summary: "Run a trigger now, on this device",
    description: "Answers when the run has begun; GET /runs/:runId says how it ends.",
    body: TriggerRunBody,
    example: { dry: true },
    responses: { 201: { description: "The run", schema: RunStarted } },
    errors: [...TRIGGER_ERRORS, "run.not_running"],
    handler: async ({ engine, params, body }) => (await controlOf(engine)).runNow(params.id, body as never),
  }),
  route({
    method: "GET",
    path: "/triggers/:id/next",
    id: "nextFires",
    tag: "Triggers",
    summary: "When a trigger would fire next",
    query: Type.Object({ n: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: "How many; 5" })) }),
    responses: { 200: { description: "The times, in order; none for event triggers", schema: NextFires } },
    errors: TRIGGER_ERRORS,
    handler: async ({ engine, params, query }) => (await controlOf(engine)).next(params.id, query.n ?? 5) as never,
  }),
];
