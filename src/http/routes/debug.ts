import { ObjectDebug, P2pDebug, SpaceDebug } from "../../protocol/sync.ts";
import { type Route, route } from "../route.ts";

/** For finding faults. The shapes may change. */
export const debugRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/debug",
    id: "debugSpace",
    tag: "Debug",
    summary: "What rounds with each peer have brought since the start, and what the disk has changed",
    description: "Diagnostic and not stable. The network is the peer `network`.",
    responses: { 200: { description: "The counters", schema: SpaceDebug } },
    handler: async ({ engine, params }) => ({
      ...(await engine.sync.debug(params.spaceId)),
      repairs: engine.repairs(params.spaceId),
    }),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/debug/objects/:objectId",
    id: "debugObject",
    tag: "Debug",
    summary: "An object's changes in figures",
    description: "Diagnostic and not stable. `latestVersionId` and `maxAddSeq` are this device's own.",
    responses: { 200: { description: "The figures", schema: ObjectDebug } },
    errors: ["object.not_found"],
    handler: async ({ engine, params }) => engine.sync.objectDebug(params.spaceId, params.objectId),
  }),
  route({
    method: "GET",
    path: "/v1/debug/p2p",
    id: "debugP2p",
    tag: "Debug",
    summary: "The devices seen on the LAN and the spaces shared with them",
    responses: { 200: { description: "What is seen", schema: P2pDebug } },
    handler: async ({ engine }) => engine.sync.p2pDebug(),
  }),
];
