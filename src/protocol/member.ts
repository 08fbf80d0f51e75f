import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, strict } from "./schema.ts";
import { aboutText, Permission } from "./space.ts";

/** What an account says about itself: the one shape of hints and metadata (ACL-4). */
const ProfileHint = named(
  "ProfileHint",
  strict({
    name: Type.Optional(aboutText()),
    description: Type.Optional(aboutText()),
    iconCid: Type.Optional(aboutText()),
  }),
);

/** A role that can be given; any other, including `owner`, is `request.schema`. */
const Granted = named("GrantedPermission", oneOf(["reader", "writer", "admin"], { fault: "request.schema" }));

const MemberStatus = named(
  "MemberStatus",
  oneOf(["unknown", "joining", "active", "removed", "declined", "removing", "canceled"]),
);

/** A member of a space (ACL-4). Profile fields are absent until their key is here. */
export const Member = named(
  "Member",
  strict({
    identity: Type.String({ description: "Account id; of guests the id of the key they share" }),
    permission: Permission,
    status: MemberStatus,
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    iconCid: Type.Optional(Type.String()),
    requestRecordId: Type.Optional(Type.String({ description: "While a request to join is pending" })),
  }),
);
export type Member = Static<typeof Member>;

export const JoinRequest = named(
  "JoinRequest",
  strict({
    requestRecordId: Type.String(),
    recordId: Type.String({ description: "The same as requestRecordId" }),
    identity: Type.String(),
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    iconCid: Type.Optional(Type.String()),
  }),
);
export type JoinRequest = Static<typeof JoinRequest>;

/** A change of one member; `previous` is null on `added`. */
export const MemberFrame = named(
  "MemberFrame",
  strict({
    kind: oneOf(["added", "changed", "removed"]),
    member: Member,
    previous: Type.Union([Member, Type.Null()]),
  }),
);
export type MemberFrame = Static<typeof MemberFrame>;

export const Invite = named(
  "Invite",
  strict({
    recordId: Type.String(),
    permission: oneOf(["none", "reader", "writer"], {
      description: "`none`: its holder asks to join, and the role is chosen then",
    }),
    inviteToken: Type.Optional(Type.String({ description: "On the devices of who minted it" })),
  }),
);
export type Invite = Static<typeof Invite>;

export const MintedToken = named("MintedToken", strict({ spaceId: Type.String(), inviteToken: Type.String() }));
export type MintedToken = Static<typeof MintedToken>;

export const InviteCreateBody = named(
  "InviteCreateBody",
  strict({
    mode: Type.Optional(
      oneOf(["request", "open"], {
        description: "`request`, the default: who holds it asks; `open`: it joins at once",
      }),
    ),
    permission: Type.Optional(
      oneOf(["reader", "writer"], { description: "Of an open invite", fault: "request.schema" }),
    ),
  }),
);
export type InviteCreateBody = Static<typeof InviteCreateBody>;

export const JoinBody = named(
  "JoinBody",
  strict({ inviteToken: Type.String({ minLength: 1 }), metadata: Type.Optional(ProfileHint) }),
);

export const AcceptBody = named(
  "AcceptBody",
  strict({ requestRecordId: Type.String({ minLength: 1 }), permission: Granted }),
);
export const DeclineBody = named("DeclineBody", strict({ identity: Type.String({ minLength: 1 }) }));
export const PermissionsBody = named(
  "PermissionsBody",
  strict({
    changes: Type.Array(strict({ identity: Type.String(), permission: Granted }), { minItems: 1 }),
  }),
);
export const RemoveBody = named("RemoveBody", strict({ identities: Type.Array(Type.String(), { minItems: 1 }) }));
export const AddBody = named(
  "AddBody",
  strict({
    accounts: Type.Array(
      strict({ identity: Type.String(), permission: Granted, metadata: Type.Optional(ProfileHint) }),
      {
        minItems: 1,
      },
    ),
  }),
);
export const OwnershipBody = named(
  "OwnershipBody",
  strict({ newOwner: Type.String({ minLength: 1 }), oldOwnerPerm: Granted }),
);

export const OneToOneBody = named("OneToOneBody", strict({ otherIdentity: Type.String() }));
export const RegisterIncomingBody = named(
  "RegisterIncomingBody",
  strict({
    peerIdentity: Type.String(),
    displayHint: Type.Optional(ProfileHint),
  }),
);
