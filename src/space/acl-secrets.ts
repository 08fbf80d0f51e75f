import { base64ToBytes, bytesToBase64, bytesToHex } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import { publicKeyOfSeed } from "../crypto/private-key.ts";
import { isJsonObject } from "../protocol/json.ts";
import type { Account } from "./account.ts";
import type { MemberMetadata } from "./acl-epoch.ts";
import { decodeInviteToken, guestAccount, type InviteToken } from "./invite-token.ts";
import { ACL_SECRETS_RULES } from "./private-datasets.ts";
import type { TechSpace } from "./tech-space.ts";

type SecretKind = "invites" | "guests";

/** Custody of what was minted or used to join: in the account's own space, so that all its devices have it. */
export type AclSecrets = ReturnType<typeof createAclSecrets>;

export function createAclSecrets(tech: TechSpace) {
  return {
    /** Durable before anybody can be given what the seed is the secret of. */
    async keep(spaceId: SpaceId, kind: SecretKind, seed: Uint8Array): Promise<void> {
      const key = bytesToHex(publicKeyOfSeed(seed));
      await tech.write(ACL_SECRETS_RULES, spaceId, [
        { type: "$set", path: `${kind}.${key}`, value: bytesToBase64(seed) },
      ]);
    },
    /** The seed of a public key, if this account minted it and its device has told this one. */
    seedOf(spaceId: SpaceId, kind: SecretKind, publicKey: Uint8Array): Uint8Array | undefined {
      const seeds = tech.record(ACL_SECRETS_RULES, spaceId)?.[kind];
      const text = isJsonObject(seeds) ? seeds[bytesToHex(publicKey)] : undefined;
      return typeof text === "string" ? base64ToBytes(text) : undefined;
    },
    /** Drops the secrets whose keys are not among the live ones. */
    async prune(spaceId: SpaceId, kind: SecretKind, live: readonly Uint8Array[]): Promise<void> {
      const seeds = tech.record(ACL_SECRETS_RULES, spaceId)?.[kind];
      const wanted = new Set(live.map(bytesToHex));
      const stale = Object.keys(isJsonObject(seeds) ? seeds : {}).filter((key) => !wanted.has(key));
      if (stale.length === 0) return;
      await tech.write(
        ACL_SECRETS_RULES,
        spaceId,
        stale.map((key) => ({ type: "$unset", path: `${kind}.${key}` })),
      );
    },
    /** What this account joins by, and what it says of itself where it asks to. */
    async keepToken(spaceId: SpaceId, token: string, hint: MemberMetadata | undefined): Promise<void> {
      await tech.write(ACL_SECRETS_RULES, spaceId, [
        { type: "$set", path: "", value: { token, hint: hint ? JSON.stringify(hint) : "" } },
      ]);
    },
    /** The token by which this account joined, or asked to join. */
    tokenOf(spaceId: SpaceId): InviteToken | undefined {
      const token = tech.record(ACL_SECRETS_RULES, spaceId)?.["token"];
      return typeof token === "string" ? decodeInviteToken(token) : undefined;
    },
    /** Where the space is to be found that is joined by a token. */
    placeOf(spaceId: SpaceId) {
      const token = this.tokenOf(spaceId);
      if (token) return { spaceId, transportSecret: token.transportSecret, inviteKey: publicKeyOfSeed(token.seed) };
      const text = tech.record(ACL_SECRETS_RULES, spaceId)?.["place"];
      const transportSecret = typeof text === "string" ? base64ToBytes(text) : undefined;
      // Nobody's invite: who was added is found on the network alone.
      return transportSecret && { spaceId, transportSecret, inviteKey: tech.space.accountKey };
    },
    async keepPlace(spaceId: SpaceId, transportSecret: Uint8Array): Promise<void> {
      const value = bytesToBase64(transportSecret);
      await tech.write(ACL_SECRETS_RULES, spaceId, [{ type: "$set", path: "place", value }]);
    },
    hintOf(spaceId: SpaceId): MemberMetadata | undefined {
      const hint = tech.record(ACL_SECRETS_RULES, spaceId)?.["hint"];
      return typeof hint === "string" && hint !== "" ? (JSON.parse(hint) as MemberMetadata) : undefined;
    },
    async dropToken(spaceId: SpaceId): Promise<void> {
      if (tech.record(ACL_SECRETS_RULES, spaceId)?.["token"] === undefined) return;
      await tech.write(ACL_SECRETS_RULES, spaceId, [{ type: "$unset", path: "", value: { token: 1, hint: 1 } }]);
    },
    /** Who this account is in a space: itself, or the account of the guest key that it reads by. */
    accountIn(spaceId: SpaceId, account: Account): Account {
      const token = this.tokenOf(spaceId);
      return token?.kind === "guest" ? guestAccount(token, account.peerId) : account;
    },
  };
}
