import { svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { LaggedFrame } from "../../protocol/sse-frames.ts";
import { ObjectSyncStatus, SpaceSyncStatus } from "../../protocol/sync.ts";
import { type Route, route } from "../route.ts";
import { openStream } from "../sse.ts";
import { createNewestFrames } from "../stream/newest-frames.ts";
import { ofSpace } from "../stream/space-stream.ts";

const EXAMPLE_STATUS: SpaceSyncStatus = {
  spaceId: "bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy",
  state: "synced",
  synced: 12,
  total: 12,
  networkPeers: 1,
  localPeers: 0,
  p2p: "notconnected",
  lastSyncedAt: "2026-01-31T09:30:00.000Z",
};

const LAGGED =
  "`lagged` counts statuses that a newer one replaced before a slow reader took them; the newest always comes";

/** Whether the data of this device is elsewhere too, and data from elsewhere is here. */
export const syncRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/sync",
    id: "syncSpace",
    tag: "Sync",
    summary: "Run one sync round now",
    description: "Answers when it has ended, at once when nobody is reached. How it went is in the status.",
    responses: { 204: { description: "The round has ended" } },
    handler: async ({ engine, params }) => engine.sync.force(params.spaceId),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/sync-status",
    id: "getSpaceSyncStatus",
    tag: "Sync",
    summary: "The sync status of a space",
    responses: { 200: { description: "The status", schema: SpaceSyncStatus, example: EXAMPLE_STATUS } },
    handler: async ({ engine, params }) => engine.sync.status(params.spaceId),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/sync-status/peers",
    id: "listSyncPeers",
    tag: "Sync",
    summary: "Not offered",
    responses: { 204: { description: "Never" } },
    errors: ["sdk.not_implemented"],
    handler: async () => {
      throw svcError("sdk.not_implemented");
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/sync-status/objects/:objectId",
    id: "getObjectSyncStatus",
    tag: "Sync",
    summary: "The sync status of an object",
    description: "An id of which nothing is known answers `unknown`.",
    responses: { 200: { description: "The status", schema: ObjectSyncStatus } },
    handler: async ({ engine, params }) => engine.sync.objectStatus(params.spaceId, params.objectId),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/sync-status/objects/:objectId/subscribe",
    id: "watchObjectSyncStatus",
    tag: "Sync",
    summary: "Watch the sync status of an object",
    responses: {
      200: {
        description: `The status now and whenever it changes. ${LAGGED}`,
        frames: { status: ObjectSyncStatus, lagged: LaggedFrame },
      },
    },
    handler: async (ctx) =>
      openStream(
        ctx,
        ofSpace(ctx, {
          capacity: LIMITS.forwarderCapacity,
          overflow: "lag",
          async start(sink) {
            const { spaceId, objectId } = ctx.params;
            const news = createNewestFrames<ObjectSyncStatus>("status", sink);
            const stop = await ctx.engine.sync.watchObject(spaceId, objectId, (status) => news.put(objectId, status));
            return { stop, pull: news.pull };
          },
        }),
      ),
  }),
  route({
    method: "GET",
    path: "/v1/sync-status/subscribe",
    id: "watchSyncStatus",
    tag: "Sync",
    summary: "Watch the sync status of every space",
    responses: {
      200: {
        description: `The statuses now, and each whenever it changes. ${LAGGED}`,
        frames: { status: SpaceSyncStatus, lagged: LaggedFrame },
      },
    },
    handler: async (ctx) =>
      openStream(ctx, {
        capacity: LIMITS.forwarderCapacity,
        overflow: "lag",
        async start(sink) {
          const news = createNewestFrames<SpaceSyncStatus>("status", sink);
          const stop = await ctx.engine.sync.watch((status) => news.put(status.spaceId, status));
          return { stop, pull: news.pull };
        },
      }),
  }),
];
