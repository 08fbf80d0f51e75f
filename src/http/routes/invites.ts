import { Type } from "@sinclair/typebox";
import { Invite, InviteCreateBody, JoinBody, MintedToken } from "../../protocol/member.ts";
import { strict } from "../../protocol/schema.ts";
import { SpaceInfo } from "../../protocol/space.ts";
import { reply } from "../reply/reply.ts";
import { type Route, route } from "../route.ts";

/** Tokens that let others into a space, and joining by such a token. */
export const inviteRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/join",
    id: "joinSpace",
    tag: "Invites",
    summary: "Join a space by an invite or guest token",
    description:
      "The row says `joining` until the space is here: after an acceptance, where the invite asks for one. A space that is active already answers the same.",
    body: JoinBody,
    example: { inviteToken: "3Yd…", metadata: { name: "Ada" } },
    responses: { 202: { description: "The space's row", schema: SpaceInfo } },
    errors: ["invite.invalid", "space.deleted"],
    handler: async ({ engine, body }) => engine.joins.join(body.inviteToken, body.metadata),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/invites",
    id: "createInvite",
    tag: "Invites",
    summary: "Make an invite, in place of any other",
    description: "By default its holder asks to join; an `open` invite lets it in with the role given.",
    body: InviteCreateBody,
    example: { mode: "open", permission: "writer" },
    responses: { 201: { description: "Its token", schema: MintedToken } },
    errors: ["acl.forbidden"],
    handler: async ({ engine, params, body }) => (await engine.space(params.spaceId)).members.mintInvite(body),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/invites",
    id: "listInvites",
    tag: "Invites",
    summary: "Live invites",
    description: "Tokens are shown on the devices of who minted them.",
    responses: { 200: { description: "The invites", schema: strict({ invites: Type.Array(Invite) }) } },
    handler: async ({ engine, params }) => ({ invites: (await engine.space(params.spaceId)).members.invites() }),
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/invites/:recordId",
    id: "getInvite",
    tag: "Invites",
    summary: "One invite",
    responses: { 200: { description: "The invite", schema: Invite } },
    errors: ["invite.not_found"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.invite(params.recordId),
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/invites",
    id: "revokeAllInvites",
    tag: "Invites",
    summary: "Revoke all invites",
    responses: { 204: { description: "Revoked" } },
    errors: ["acl.forbidden"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.revokeInvites(),
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/invites/:recordId",
    id: "revokeInvite",
    tag: "Invites",
    summary: "Revoke an invite",
    responses: { 204: { description: "Revoked" } },
    errors: ["invite.not_found", "acl.forbidden"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.revokeInvite(params.recordId),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/guest-key",
    id: "createGuestKey",
    tag: "Invites",
    summary: "The space's public read-only token, made if need be",
    responses: { 201: { description: "The token, the same each time", schema: MintedToken } },
    errors: ["acl.forbidden"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.guestKey(),
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/guest-key",
    id: "revokeGuestKey",
    tag: "Invites",
    summary: "Revoke the public read-only token; the space gets a new key",
    responses: { 204: { description: "Revoked" } },
    errors: ["guest_key.not_found", "acl.forbidden"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.revokeGuestKey(),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/invite/accept",
    id: "acceptDirectInvite",
    tag: "Invites",
    summary: "Accept having been added to a space",
    responses: {
      200: { description: "The space is here", schema: SpaceInfo },
      202: { description: "Accepted; its content is still coming", schema: SpaceInfo },
    },
    errors: ["space.not_invite_pending"],
    handler: async ({ engine, params }) => {
      const { info, loaded } = await engine.directAdds.accept(params.spaceId);
      return loaded ? info : reply(202, info);
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/invite/decline",
    id: "declineDirectInvite",
    tag: "Invites",
    summary: "Decline having been added to a space",
    responses: { 204: { description: "Declined; accepting later overrides" } },
    errors: ["space.not_invite_pending"],
    handler: async ({ engine, params }) => engine.directAdds.decline(params.spaceId),
  }),
];
