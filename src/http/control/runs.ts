import { ReplayReply, RunWithTrace } from "../../protocol/trigger.ts";
import { jsonText } from "../reply/reply.ts";
import { type Route, route } from "../route.ts";
import { controlOf } from "./control-of.ts";

const RUN_ERRORS = ["runtime.disabled", "run.not_found"] as const;

/** Runs of triggers: their rows, their traces, and the actions on them. */
export const runRoutes: Route[] = [
  route({
    method: "GET",
    path: "/runs/:runId",
    id: "getRun",
    tag: "Runs",
    summary: "A run and its trace",
    responses: { 200: { description: "The row and the trace's lines", schema: RunWithTrace } },
    errors: RUN_ERRORS,
    handler: async ({ engine, params }) => {
      const { run, trace } = await (await controlOf(engine)).run(params.runId);
      // The trace is JSON text already.
      return jsonText(`{"run":${JSON.stringify(run)},"trace":${trace ? `[${trace.join(",")}]` : "null"}}`);
    },
  }),
  route({
    method: "POST",
    path: "/runs/:runId/cancel",
    id: "cancelRun",
    tag: "Runs",
    summary: "End a run that is under way on this device",
    responses: { 204: { description: "It is being ended; its row becomes interrupted" } },
    errors: [...RUN_ERRORS, "run.not_running"],
    handler: async ({ engine, params }) => (await controlOf(engine)).cancel(params.runId),
  }),
  route({
    method: "POST",
    path: "/runs/:runId/replay",
    id: "replayRun",
    tag: "Runs",
    summary: "Run a program again on the answers of a run's trace",
    description:
      "Nothing is done again: every call is answered from the trace. The same source gives the same end and the same fuel; else the first call that differs is named.",
    responses: { 200: { description: "Whether it came to the same", schema: ReplayReply } },
    errors: [...RUN_ERRORS, "run.not_replayable"],
    handler: async ({ engine, params }) => (await controlOf(engine)).replay(params.runId) as never,
  }),
];
