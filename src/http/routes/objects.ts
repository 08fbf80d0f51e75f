import { recordCharsFor } from "../../engine/runtime/local-api.ts";
import { svcError } from "../../protocol/errors.ts";
import {
  CollectionQueryBody,
  ObjectCreateBody,
  ObjectCreated,
  PropertiesReply,
  QueryReply,
  SetPropertiesBody,
  WriteReply,
} from "../../protocol/record.ts";
import { queryReply, refuseTarget } from "../reply/query-reply.ts";
import { writeReply } from "../reply/rejections.ts";
import { type Route, route } from "../route.ts";

/** Objects of a space and their property values. */
export const objectRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects",
    id: "createObject",
    tag: "Objects",
    summary: "Create an object",
    body: ObjectCreateBody,
    example: { types: ["page"], initialProperties: { svc: { name: "Groceries" } } },
    responses: { 201: { description: "The object", schema: ObjectCreated } },
    errors: [
      ["type.not_found", 400],
      "object.type_required",
      ["property.not_found", 400],
      "property.format_violation",
      "property.kind_mismatch",
      "dataset.validation",
      "space.read_only",
      "request.too_large",
    ],
    handler: async ({ engine, params, body }) => {
      const { objects } = await engine.space(params.spaceId);
      return objects.create(body as Parameters<typeof objects.create>[0]);
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects/query",
    id: "queryObjects",
    tag: "Objects",
    summary: "Query all objects of a space",
    body: CollectionQueryBody,
    example: { filter: { "svc.types": "page" }, sort: ["-modifiedAt"], limit: 20 },
    responses: { 200: { description: "The objects' rows", schema: QueryReply } },
    errors: ["filter.invalid", "filter.unknown_operator", "filter.too_complex"],
    handler: async ({ engine, params, body, signal, request }) => {
      refuseTarget(body);
      const { queries } = await engine.space(params.spaceId);
      return queryReply(
        await queries.queryToSend(queries.objectsSource(), body, { signal, mostChars: recordCharsFor(request) }),
      );
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/objects/:objectId",
    id: "deleteObject",
    tag: "Objects",
    summary: "Delete an object",
    responses: { 204: { description: "Deleted, for ever" } },
    errors: ["sdk.not_found", "space.derived_undeletable", "sdk.not_implemented", "space.read_only"],
    handler: async ({ engine, params }) => {
      const { objects } = await engine.space(params.spaceId);
      await objects.delete(params.objectId);
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/properties/:objectId",
    id: "getObject",
    tag: "Objects",
    summary: "An object's row",
    responses: { 200: { description: "The row", schema: PropertiesReply } },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) => {
      const { objects } = await engine.space(params.spaceId);
      const row = objects.row(params.objectId);
      if (!row) throw svcError("object.not_found", { objectId: params.objectId });
      return { record: row as { id: string } };
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/properties/:objectId/set/:typeId",
    id: "setProperties",
    tag: "Objects",
    summary: "Set values of one type's properties on an object",
    body: SetPropertiesBody,
    example: { patch: { name: "Groceries", icon: null } },
    responses: { 200: { description: "What was written", schema: WriteReply } },
    errors: [
      "space.not_joined",
      "object.not_found",
      "space.not_joined",
      "type.not_found",
      ["property.not_found", 400],
      "property.format_violation",
      "property.kind_mismatch",
      "dataset.validation",
      "space.read_only",
      "request.too_large",
    ],
    handler: async ({ engine, params, body }) => {
      const { objects } = await engine.space(params.spaceId);
      const patch = body.patch as Parameters<typeof objects.setProperties>[2];
      return writeReply(await objects.setProperties(params.objectId, params.typeId, patch));
    },
  }),
];
