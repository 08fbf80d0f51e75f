import { Type } from "@sinclair/typebox";
import { svcError } from "../../protocol/errors.ts";
import { named, strict } from "../../protocol/schema.ts";
import { aboutText } from "../../protocol/space.ts";
import { type Route, route } from "../route.ts";

const Metadata = named(
  "Metadata",
  strict({
    name: Type.Optional(aboutText()),
    description: Type.Optional(aboutText()),
    iconCid: Type.Optional(aboutText()),
  }),
);

const AccountRecord = named(
  "AccountRecord",
  strict({
    id: Type.String({ description: "Account id, the same on every device" }),
    peerId: Type.String({ description: "This install" }),
    techSpaceId: Type.String(),
    metadata: Type.Optional(Metadata),
  }),
);

export const accountRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/account",
    id: "getAccount",
    tag: "Account",
    summary: "Own id and profile",
    responses: { 200: { description: "The account; metadata is absent until first written", schema: AccountRecord } },
    handler: async ({ engine }) => {
      const metadata = engine.tech.profile();
      return {
        id: engine.accountId,
        peerId: engine.peerId,
        techSpaceId: engine.tech.space.id,
        ...(metadata ? { metadata } : {}),
      };
    },
  }),
  route({
    method: "PUT",
    path: "/v1/account/metadata",
    id: "setAccountMetadata",
    tag: "Account",
    summary: "Change one's profile",
    description: "An absent field keeps its value, an empty string clears it. Contacts see it once they hold the key.",
    body: Metadata,
    example: { name: "Ada" },
    responses: { 204: { description: "Changed" } },
    errors: ["dataset.validation", "request.too_large"],
    handler: async ({ engine, body }) => {
      if (Object.keys(body).length === 0)
        throw svcError(
          "request.missing_field",
          { field: "name" },
          "Give at least one of name, description and iconCid",
        );
      await engine.changeProfile(body);
    },
  }),
];
