import { recordCharsFor } from "../../engine/runtime/local-api.ts";
import { AggregateReply, CollectionAggregateBody, ObjectAggregateBody } from "../../protocol/aggregate.ts";
import { queryReply, refuseTarget } from "../reply/query-reply.ts";
import { type Route, route } from "../route.ts";

const AGGREGATE_ERRORS = [
  "aggregate.bad_pipeline",
  "aggregate.limit_exceeded",
  "filter.invalid",
  "filter.too_complex",
] as const;

const DESCRIPTION =
  "What SQL does exactly is pushed into it, the rest streams; the result is of one moment. Unknown top-level keys are dropped.";

/** Pipelines over the records of one object, and over all objects of a space. */
export const aggregateRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/aggregate",
    id: "aggregateRecords",
    tag: "Data",
    summary: "Run an aggregation pipeline over a dataset of an object",
    description: DESCRIPTION,
    body: ObjectAggregateBody,
    objectIdFields: ["objectId"],
    example: {
      objectId: "bafyrei…",
      dataset: "tasks",
      pipeline: [{ $match: { done: true } }, { $group: { _id: "$owner", n: { $sum: 1 } } }, { $sort: { n: -1 } }],
    },
    responses: { 200: { description: "The records, or the plan", schema: AggregateReply } },
    errors: ["object.not_found", ...AGGREGATE_ERRORS],
    handler: async ({ engine, params, body, signal, request }) => {
      const { queries, aggregates } = await engine.space(params.spaceId);
      const source = queries.sourceOf(body.objectId, body.dataset);
      if (body.explain === true) return { plan: await aggregates.explain(source, body, signal) };
      return queryReply(await aggregates.run(source, body, { signal, mostChars: recordCharsFor(request) }));
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects/aggregate",
    id: "aggregateObjects",
    tag: "Objects",
    summary: "Run an aggregation pipeline over all objects of a space",
    description: DESCRIPTION,
    body: CollectionAggregateBody,
    objectIdFields: ["objectId"],
    example: { pipeline: [{ $unwind: "$svc.types" }, { $group: { _id: "$svc.types", n: { $sum: 1 } } }] },
    responses: { 200: { description: "The documents, or the plan", schema: AggregateReply } },
    errors: [...AGGREGATE_ERRORS],
    handler: async ({ engine, params, body, signal, request }) => {
      refuseTarget(body);
      const { queries, aggregates } = await engine.space(params.spaceId);
      const source = queries.objectsSource();
      if (body.explain === true) return { plan: await aggregates.explain(source, body, signal) };
      return queryReply(await aggregates.run(source, body, { signal, mostChars: recordCharsFor(request) }));
    },
  }),
];
