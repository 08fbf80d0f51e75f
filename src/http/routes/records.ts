import { recordCharsFor } from "../../engine/runtime/local-api.ts";
import {
  DeleteRecordsBody,
  ModifyBody,
  ObjectQueryBody,
  QueryReply,
  UpsertBody,
  UpsertReply,
  WriteReply,
} from "../../protocol/record.ts";
import { queryReply } from "../reply/query-reply.ts";
import { inWords, writeReply } from "../reply/rejections.ts";
import { type Route, route } from "../route.ts";

const WRITE_ERRORS = [
  "object.not_found",
  "dataset.unknown",
  "dataset.validation",
  "space.read_only",
  "request.too_large",
  "property.kind_mismatch",
] as const;

/** The data plane: records of the datasets of one object. */
export const recordRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/query",
    id: "queryRecords",
    tag: "Data",
    summary: "Query the records of a dataset of an object",
    body: ObjectQueryBody,
    objectIdFields: ["objectId"],
    example: {
      objectId: "bafyrei…",
      dataset: "tasks",
      filter: { done: { $ne: true } },
      sort: ["-_ver.id"],
      limit: 50,
      includeTotal: true,
    },
    responses: { 200: { description: "The records; an unknown dataset has none", schema: QueryReply } },
    errors: ["object.not_found", "filter.invalid", "filter.unknown_operator", "filter.too_complex"],
    handler: async ({ engine, params, body, signal, request }) => {
      const { queries } = await engine.space(params.spaceId);
      const source = queries.sourceOf(body.objectId, body.dataset);
      return queryReply(await queries.queryToSend(source, body, { signal, mostChars: recordCharsFor(request) }));
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/modify",
    id: "modifyRecords",
    tag: "Data",
    summary: "Change records of a dataset, all in one change",
    description:
      "Unknown top-level keys are dropped. Ops that a rule refuses are listed in `rejections`; structural faults refuse the whole request.",
    body: ModifyBody,
    objectIdFields: ["objectId"],
    example: {
      objectId: "bafyrei…",
      dataset: "tasks",
      records: [{ id: "", upsert: true, ops: [{ type: "$set", path: "title", value: "Buy milk" }] }],
    },
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: [...WRITE_ERRORS, ["type.not_found", 400]],
    handler: async ({ engine, params, body }) => {
      const { records } = await engine.space(params.spaceId);
      return writeReply(await records.modify(body as Parameters<typeof records.modify>[0]));
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/upsert",
    id: "upsertRecords",
    tag: "Data",
    summary: "Bring records to the given fields; the record id is the idempotency key",
    body: UpsertBody,
    objectIdFields: ["objectId"],
    example: { objectId: "bafyrei…", dataset: "packages", records: [{ id: "elysia", fields: { version: "1.4.30" } }] },
    responses: { 200: { description: "Counts, pages and per-record refusals", schema: UpsertReply } },
    errors: [...WRITE_ERRORS, "upsert.requires_user_ids"],
    handler: async ({ engine, params, body }) => {
      const { upserts } = await engine.space(params.spaceId);
      const result = await upserts.upsert(body as Parameters<typeof upserts.upsert>[0]);
      return { ...result, rejections: inWords(result.rejections) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/delete-records",
    id: "deleteRecords",
    tag: "Data",
    summary: "Delete records; their ids are never reused",
    body: DeleteRecordsBody,
    objectIdFields: ["objectId"],
    example: { objectId: "bafyrei…", dataset: "tasks", recordIds: ["8FmN3qHT2bK"] },
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: [...WRITE_ERRORS],
    handler: async ({ engine, params, body }) => {
      const { records } = await engine.space(params.spaceId);
      return writeReply(await records.deleteRecords(body));
    },
  }),
];
