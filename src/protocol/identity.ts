import { type Static, Type } from "@sinclair/typebox";
import { strict } from "./schema.ts";

/** What is known of another account. Profile fields are absent until its key has arrived. */
export const IdentityInfo = strict({
  identity: Type.String({ description: "Account id" }),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  iconCid: Type.Optional(Type.String()),
  spaceIds: Type.Array(Type.String(), { description: "Spaces shared with it" }),
});
export type IdentityInfo = Static<typeof IdentityInfo>;

/** News of the directory; a part that says nothing is absent. */
export const IdentitiesFrame = strict({
  added: Type.Optional(Type.Array(IdentityInfo)),
  updated: Type.Optional(Type.Array(IdentityInfo)),
  removed: Type.Optional(Type.Array(Type.String())),
});
export type IdentitiesFrame = Static<typeof IdentitiesFrame>;
