import { OneToOneBody, RegisterIncomingBody } from "../../protocol/member.ts";
import { SpaceInfo } from "../../protocol/space.ts";
import { type Route, route } from "../route.ts";

/** Spaces of two accounts. */
export const oneToOneRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/spaces/one-to-one",
    id: "startOneToOne",
    tag: "One-to-one",
    summary: "Begin a space with one other account",
    description: "The same space for both. Also accepts what the other began, and takes back a decline or a deletion.",
    body: OneToOneBody,
    example: { otherIdentity: "A5dZ6hL1nKpQ8rT3uVwXyZ2aBcDeFgHjKmNpQrStUvWxYz12" },
    responses: { 201: { description: "The space", schema: SpaceInfo } },
    handler: async ({ engine, body }) => engine.oneToOne.start(body.otherIdentity),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/one-to-one/register-incoming",
    id: "registerIncomingOneToOne",
    tag: "One-to-one",
    summary: "Register a request that came some other way",
    description:
      "Shows a pending row on this device. Idempotent: a row there is already is left alone. Beyond 256 rows that wait, no more are shown.",
    body: RegisterIncomingBody,
    responses: { 204: { description: "Registered" } },
    handler: async ({ engine, body }) => engine.oneToOne.registerIncoming(body.peerIdentity, body.displayHint ?? {}),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/one-to-one/accept",
    id: "acceptOneToOne",
    tag: "One-to-one",
    summary: "Accept a one-to-one space",
    responses: { 200: { description: "The space", schema: SpaceInfo } },
    errors: ["space.not_invite_pending"],
    handler: async ({ engine, params }) => engine.oneToOne.accept(params.spaceId),
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/one-to-one/decline",
    id: "declineOneToOne",
    tag: "One-to-one",
    summary: "Decline a one-to-one space",
    responses: { 204: { description: "Declined, until it is accepted or begun anew" } },
    errors: ["space.not_invite_pending"],
    handler: async ({ engine, params }) => engine.oneToOne.decline(params.spaceId),
  }),
];
