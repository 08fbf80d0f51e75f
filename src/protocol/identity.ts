import { type Static, Type } from "@sinclair/typebox";
import { named, strict } from "./schema.ts";

/** What is known of another account. Profile fields are absent until its key has arrived. */
export const IdentityInfo = named(
  "IdentityInfo",
  strict({
    identity: Type.String({ description: "Account id" }),
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    iconCid: Type.Optional(Type.String()),
    spaceIds: Type.Array(Type.String(), { description: "Spaces shared with it" }),
  }),
);
export type IdentityInfo = Static<typeof IdentityInfo>;

/** A change in the directory; a part without news is absent. */
export const IdentitiesFrame = named(
  "IdentitiesFrame",
  strict({
    added: Type.Optional(Type.Array(IdentityInfo)),
    updated: Type.Optional(Type.Array(IdentityInfo)),
    removed: Type.Optional(Type.Array(Type.String())),
  }),
);
export type IdentitiesFrame = Static<typeof IdentitiesFrame>;
