import { AcceptBody, AddBody, DeclineBody, OwnershipBody, PermissionsBody, RemoveBody } from "../../protocol/member.ts";
import { type Route, route } from "../route.ts";

const IDENTITY = "A5dZ6hL1nKpQ8rT3uVwXyZ2aBcDeFgHjKmNpQrStUvWxYz12";

/**
 * Who may do what in a space. An owner's act takes effect at once; without a network, an act of an admin or member must
 * first reach an owner's device.
 */
export const aclRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/accept",
    id: "acceptJoinRequest",
    tag: "ACL",
    summary: "Accept a request to join",
    body: AcceptBody,
    example: { requestRecordId: "bafyrei…", permission: "writer" },
    responses: { 204: { description: "Accepted" } },
    errors: ["acl.forbidden"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).members.accept(body.requestRecordId, body.permission),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/decline",
    id: "declineJoinRequest",
    tag: "ACL",
    summary: "Decline a request to join",
    body: DeclineBody,
    example: { identity: IDENTITY },
    responses: { 204: { description: "Declined" } },
    errors: ["acl.forbidden", "identity.not_found"],
    handler: async ({ engine, params, body }) => (await engine.space(params.spaceId)).members.decline(body.identity),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/permissions",
    id: "changePermissions",
    tag: "ACL",
    summary: "Change the role of members",
    body: PermissionsBody,
    example: { changes: [{ identity: IDENTITY, permission: "reader" }] },
    responses: { 204: { description: "Changed, all or none" } },
    errors: ["acl.forbidden", "identity.not_found"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).members.setPermissions(body.changes),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/remove",
    id: "removeMembers",
    tag: "ACL",
    summary: "Remove members; the space gets a new key",
    body: RemoveBody,
    example: { identities: [IDENTITY] },
    responses: { 204: { description: "Removed, all or none" } },
    errors: ["acl.forbidden", "identity.not_found"],
    handler: async ({ engine, params, body }) => (await engine.space(params.spaceId)).members.remove(body.identities),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/add",
    id: "addMembers",
    tag: "ACL",
    summary: "Add accounts without an invite",
    body: AddBody,
    example: { accounts: [{ identity: IDENTITY, permission: "writer" }] },
    responses: { 204: { description: "Added, all or none" } },
    errors: ["acl.forbidden"],
    handler: async ({ engine, params, body }) => (await engine.space(params.spaceId)).members.add(body.accounts),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/ownership",
    id: "transferOwnership",
    tag: "ACL",
    summary: "Hand the space to another member",
    body: OwnershipBody,
    example: { newOwner: IDENTITY, oldOwnerPerm: "admin" },
    responses: { 204: { description: "Handed over" } },
    errors: ["acl.forbidden", "identity.not_found"],
    handler: async ({ engine, params, body }) =>
      (await engine.space(params.spaceId)).members.transferOwnership(body.newOwner, body.oldOwnerPerm),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/self-remove",
    id: "leaveSpace",
    tag: "ACL",
    summary: "Leave a space",
    responses: { 204: { description: "Left; the others learn of it when they sync" } },
    errors: ["acl.forbidden", "space.not_joined"],
    handler: async ({ engine, params }) => engine.life.leave(params.spaceId),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/cancel-join",
    id: "cancelJoin",
    tag: "ACL",
    summary: "Take back a request to join",
    responses: { 204: { description: "Taken back" } },
    errors: ["space.not_invite_pending"],
    handler: async ({ engine, params }) => engine.joins.cancel(params.spaceId),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/acl/stop-sharing",
    id: "stopSharing",
    tag: "ACL",
    summary: "Drop everybody else, all invites and requests",
    responses: { 204: { description: "The space is private; nothing is done where it was" } },
    errors: ["acl.forbidden"],
    handler: async ({ engine, params }) => (await engine.space(params.spaceId)).members.stopSharing(),
  }),
];
