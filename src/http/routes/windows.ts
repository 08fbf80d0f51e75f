import { Type } from "@sinclair/typebox";
import { AnyRecord, CollectionWindowBody, ObjectWindowBody, QueryReply } from "../../protocol/record.ts";
import { named, oneOf, strict } from "../../protocol/schema.ts";
import { refuseTarget } from "../reply/query-reply.ts";
import { type ResponseSpec, type Route, route } from "../route.ts";
import { openStream } from "../sse.ts";
import { liveSource } from "../stream/live-stream.ts";
import { ofSpace } from "../stream/space-stream.ts";
import { spacesCollection } from "./spaces.ts";

const Op = named(
  "LiveOp",
  strict({
    type: oneOf(["$set", "$unset"]),
    path: Type.Array(Type.String(), { description: "Empty: the root, with dotted keys in the payload" }),
    payload: Type.Optional(Type.Unknown()),
  }),
);
const Changed = named(
  "LiveRecords",
  Type.Array(strict({ id: Type.String(), doc: AnyRecord, ops: Type.Optional(Type.Array(Op)) })),
);

const ChangesFrame = named(
  "ChangesFrame",
  Type.Array(
    strict({
      versionId: Type.String({ description: "Local order of the object's changes; empty when an object was deleted" }),
      added: Type.Optional(Changed),
      updated: Type.Optional(Changed),
      removed: Type.Optional(
        Type.Array(strict({ id: Type.String(), reason: oneOf(["deleted", "filtered-out", "displaced"]) })),
      ),
    }),
  ),
);

export const WINDOW_FRAMES: ResponseSpec = {
  description: "The window at first, then what changes in it. `closed` is terminal: ask again for a fresh snapshot",
  frames: { snapshot: QueryReply, changes: ChangesFrame },
  framesName: "WindowEvent",
};

const FILTER_ERRORS = ["filter.invalid", "filter.unknown_operator", "filter.too_complex"] as const;
const EXAMPLE = { filter: { done: { $ne: true } }, sort: ["-_ver.id"], limit: 50 };

/** Live windows over the collections. */
export const windowRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/query/subscribe",
    id: "watchSpaces",
    tag: "Spaces",
    summary: "Watch the raw rows of spaces, or of profiles",
    body: CollectionWindowBody,
    responses: { 200: WINDOW_FRAMES },
    errors: [...FILTER_ERRORS],
    handler: async (ctx) => {
      refuseTarget(ctx.body, ["objectId"]);
      const { techLive, spacesListing, tech } = ctx.engine;
      const collection = { objectId: tech.index.idText, dataset: spacesCollection(ctx.body.dataset) };
      const live = collection.dataset === "spaces" ? spacesListing().live : techLive;
      return openStream(
        ctx,
        liveSource((sink) => live.subscribe(collection, ctx.body, sink)),
      );
    },
  }),
  route({
    method: "POST",
    path: "/v1/devices/query/subscribe",
    id: "watchDevices",
    tag: "Devices",
    summary: "Watch the raw rows of devices",
    body: CollectionWindowBody,
    responses: { 200: WINDOW_FRAMES },
    errors: [...FILTER_ERRORS],
    handler: async (ctx) => {
      refuseTarget(ctx.body);
      const { techLive, tech } = ctx.engine;
      const collection = { objectId: tech.index.idText, dataset: "devices" };
      return openStream(
        ctx,
        liveSource((sink) => techLive.subscribe(collection, ctx.body, sink)),
      );
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/objects/query/subscribe",
    id: "watchObjects",
    tag: "Objects",
    summary: "Watch a window of the objects of a space",
    body: CollectionWindowBody,
    example: { sort: ["-modifiedAt"], limit: 20 },
    responses: { 200: WINDOW_FRAMES },
    errors: [...FILTER_ERRORS],
    handler: async (ctx) => {
      refuseTarget(ctx.body);
      const { live } = await ctx.engine.space(ctx.params.spaceId);
      const window = liveSource((sink) => live.subscribe("objects", ctx.body, sink));
      return openStream(ctx, ofSpace(ctx, window));
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/query/subscribe",
    id: "watchRecords",
    tag: "Data",
    summary: "Watch a window of the records of a dataset",
    body: ObjectWindowBody,
    objectIdFields: ["objectId"],
    example: { objectId: "bafyrei…", dataset: "tasks", ...EXAMPLE },
    responses: { 200: WINDOW_FRAMES },
    errors: ["object.not_found", ...FILTER_ERRORS],
    handler: async (ctx) => {
      const { live } = await ctx.engine.space(ctx.params.spaceId);
      const { objectId, dataset } = ctx.body;
      const window = liveSource((sink) => live.subscribe({ objectId, dataset }, ctx.body, sink));
      return openStream(ctx, ofSpace(ctx, window));
    },
  }),
];
