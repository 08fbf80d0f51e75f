import { type Static, Type } from "@sinclair/typebox";
import { LIMITS } from "./limits.ts";
import { Instant, named, oneOf, strict } from "./schema.ts";

const Scalar = named("Scalar", Type.Union([Type.String(), Type.Number(), Type.Boolean()]));

/** What an account may do in a space. */
export const Permission = named("Permission", oneOf(["none", "reader", "guest", "writer", "admin", "owner"]));

const SpaceStatus = named(
  "SpaceStatus",
  oneOf([
    "active",
    "joining",
    "one_to_one_pending",
    "one_to_one_declined",
    "invite_pending",
    "invite_declined",
    "guest_revoked",
    "deleted",
  ]),
);

export const SpaceInfo = named(
  "SpaceInfo",
  strict({
    id: Type.String({ description: "Space id" }),
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    iconCid: Type.Optional(Type.String()),
    spaceIndexObjectId: Type.Optional(Type.String({ description: "On every active row" })),
    createdAt: Instant,
    spaceType: oneOf(["svc.space", "svc.onetoone"]),
    author: Type.Optional(
      Type.String({ description: "Account id of the creator; in a one-to-one the other participant" }),
    ),
    ownRole: Permission,
    settings: Type.Optional(
      Type.Record(Type.String(), Scalar, { description: "This account's own settings of the space" }),
    ),
    push: Type.Optional(
      strict({
        spaceKey: Type.String({
          description: "Base64 of the Ed25519 seed that signs the space's topics; rotates with the read key",
        }),
        encKey: Type.String({ description: "Base64 of a raw AES-256 key; rotates with the read key" }),
        encKeyId: Type.String({ description: "Hex sha256 of encKey" }),
      }),
    ),
    derived: Type.Optional(Type.Literal(true)),
    ended: Type.Optional(
      strict(
        {
          how: oneOf(["deleted", "unshared", "removed", "left"], {
            description: "For everybody; for all but the owner; for this account, by others or by itself",
          }),
          by: Type.String({ description: "Account id" }),
          name: Type.Optional(Type.String({ description: "What it was called in the space" })),
          at: Instant,
        },
        { description: "Who ended it and when, once it has ended for this account" },
      ),
    ),
    status: SpaceStatus,
  }),
);
export type SpaceInfo = Static<typeof SpaceInfo>;

export const DerivedSpaceItem = named(
  "DerivedSpaceItem",
  strict({
    name: Type.String(),
    spaceId: Type.String(),
    created: Type.Boolean({ description: "A usable row exists on some device" }),
    status: Type.Optional(SpaceStatus),
  }),
);
export type DerivedSpaceItem = Static<typeof DerivedSpaceItem>;

/** A text about a space or an account, when it is written. */
export const aboutText = (description?: string) =>
  Type.String({ maxLength: LIMITS.aboutTextChars, ...(description === undefined ? {} : { description }) });

export const SpaceCreateBody = named(
  "SpaceCreateBody",
  strict({
    name: Type.Optional(aboutText()),
    description: Type.Optional(aboutText()),
    iconCid: Type.Optional(aboutText()),
    spaceType: Type.Optional(Type.String({ description: "Empty or `svc.space`" })),
  }),
);

export const SpacePatchBody = named(
  "SpacePatchBody",
  strict({
    name: Type.Optional(aboutText("Empty clears")),
    description: Type.Optional(aboutText()),
    iconCid: Type.Optional(aboutText()),
  }),
);

export const SpaceSettingsBody = named(
  "SpaceSettingsBody",
  strict({
    set: Type.Optional(Type.Record(Type.String(), Scalar)),
    unset: Type.Optional(Type.Array(Type.String())),
  }),
);
