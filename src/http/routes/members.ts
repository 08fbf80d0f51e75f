import { Type } from "@sinclair/typebox";
import { LIMITS } from "../../protocol/limits.ts";
import { JoinRequest, Member, MemberFrame } from "../../protocol/member.ts";
import { strict } from "../../protocol/schema.ts";
import { encodeFrame, LaggedFrame } from "../../protocol/sse-frames.ts";
import { type Route, route } from "../route.ts";
import { openStream } from "../sse.ts";
import { ofSpace } from "../stream/space-stream.ts";

/** The members of a space, as its ACL log names them. */
export const memberRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/members",
    id: "listMembers",
    tag: "Members",
    summary: "The roster",
    description: "Everybody who has or had to do with the space, guests' shared key among them.",
    responses: { 200: { description: "The members", schema: strict({ members: Type.Array(Member) }) } },
    handler: async ({ engine, params }) => ({ members: (await engine.space(params.spaceId)).members.list() }),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/members/me",
    id: "getOwnMember",
    tag: "Members",
    summary: "One's own membership",
    responses: { 200: { description: "The member", schema: Member } },
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.me(),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/members/requests",
    id: "listJoinRequests",
    tag: "Members",
    summary: "Requests to join that wait",
    responses: { 200: { description: "The requests", schema: strict({ requests: Type.Array(JoinRequest) }) } },
    handler: async ({ engine, params }) => ({ requests: (await engine.space(params.spaceId)).members.requests() }),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/members/subscribe",
    id: "watchMembers",
    tag: "Members",
    summary: "Watch the members",
    description: "What happens from now on; read the roster after `ready` for what is.",
    responses: {
      200: {
        description: "News of members. `lagged` counts frames that were dropped for a slow reader",
        frames: { member: MemberFrame, lagged: LaggedFrame },
      },
    },
    handler: async (ctx) =>
      openStream(
        ctx,
        ofSpace(ctx, {
          capacity: LIMITS.forwarderCapacity,
          overflow: "lag",
          async start(sink) {
            const { members: service } = await ctx.engine.space(ctx.params.spaceId);
            return { stop: service.subscribe((frame) => sink.send(encodeFrame("member", frame))) };
          },
        }),
      ),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/members/:identity",
    id: "getMember",
    tag: "Members",
    summary: "One member",
    responses: { 200: { description: "The member", schema: Member } },
    errors: ["identity.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.get(params.identity),
  }),
];
