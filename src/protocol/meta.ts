import { type Static, Type } from "@sinclair/typebox";
import { named, strict } from "./schema.ts";

export const DeviceCopied = named(
  "DeviceCopied",
  strict({
    where: Type.Union([Type.Literal("network"), Type.Literal("lan")], { description: "Where it was met" }),
    since: Type.String({ format: "date-time" }),
    remedy: Type.String({ description: "What to do" }),
  }),
);
export type DeviceCopied = Static<typeof DeviceCopied>;

export const Health = named(
  "Health",
  strict({
    status: Type.String({ description: "`ok`" }),
    version: Type.String({ description: "`svc v<semver> (sdk v<semver>)`" }),
    startedAt: Type.String({ format: "date-time" }),
    account: Type.String({ description: "The account served; empty while unauthorized" }),
    bootstrapping: Type.Boolean({ description: "The one-shot boot pass is still running" }),
    controlUrl: Type.Optional(
      Type.String({ description: "Where the runtime's control API is; absent where the runtime is turned off" }),
    ),
    push: Type.Optional(Type.Literal(true, { description: "A push node is configured: the push routes answer" })),
    warnings: Type.Optional(
      Type.Array(strict({ code: Type.String(), message: Type.String({ description: "With the remedy" }) }), {
        description: "What somebody has to do something about; absent while there is nothing",
      }),
    ),
  }),
);
export type Health = Static<typeof Health>;

export const AuthStatus = named(
  "AuthStatus",
  strict({
    authorized: Type.Boolean(),
    accountId: Type.Optional(Type.String({ description: "The account served, when authorized" })),
    accounts: Type.Array(
      strict({
        id: Type.String(),
        default: Type.Optional(Type.Literal(true, { description: "The wallet lies at the data root itself" })),
      }),
      { description: "Wallets in the data root" },
    ),
  }),
);
export type AuthStatus = Static<typeof AuthStatus>;

export const AuthBody = named(
  "AuthBody",
  strict({
    mnemonic: Type.Optional(Type.String({ description: "Restore: 12 BIP-39 words" })),
    index: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 0x7fffffff, description: "Restore: derivation index, default 1" }),
    ),
    accountId: Type.Optional(Type.String({ description: "Select: an account whose wallet is in the data root" })),
    passkey: Type.Optional(Type.String({ description: "Opens an encrypted wallet, or encrypts a new one" })),
  }),
);
export type AuthBody = Static<typeof AuthBody>;

export const AuthResult = named(
  "AuthResult",
  strict({
    accountId: Type.String(),
    created: Type.Boolean({ description: "A wallet file was written" }),
    mnemonic: Type.Optional(Type.String({ description: "Only when generated, and only this once" })),
  }),
);
export type AuthResult = Static<typeof AuthResult>;
