import { Type } from "@sinclair/typebox";
import { IdentitiesFrame, IdentityInfo } from "../../protocol/identity.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { strict } from "../../protocol/schema.ts";
import { encodeFrame, LaggedFrame } from "../../protocol/sse-frames.ts";
import { type Route, route } from "../route.ts";
import { openStream } from "../sse.ts";

/** The accounts that share spaces with this one, as far as this device knows them. */
export const identityRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/identities",
    id: "listIdentities",
    tag: "Account",
    summary: "The accounts one shares spaces with",
    responses: { 200: { description: "The directory", schema: strict({ identities: Type.Array(IdentityInfo) }) } },
    handler: async ({ engine }) => ({ identities: engine.identities.list() }),
  }),
  route({
    method: "GET",
    path: "/v1/identities/subscribe",
    id: "watchIdentities",
    tag: "Account",
    summary: "Watch the directory",
    responses: {
      200: {
        description: "News of the directory. `lagged` counts frames that were dropped for a slow reader",
        frames: { identities: IdentitiesFrame, lagged: LaggedFrame },
      },
    },
    handler: async (ctx) =>
      openStream(ctx, {
        capacity: LIMITS.forwarderCapacity,
        overflow: "lag",
        start: (sink) => {
          const stop = ctx.engine.identities.subscribe((frame) => sink.send(encodeFrame("identities", frame)));
          return { stop };
        },
      }),
  }),
  route({
    method: "GET",
    path: "/v1/identities/:identity",
    id: "getIdentity",
    tag: "Account",
    summary: "One account",
    responses: { 200: { description: "What is known of it", schema: IdentityInfo } },
    errors: ["identity.not_found"],
    handler: async ({ engine, params }) => engine.identities.get(params.identity),
  }),
];
