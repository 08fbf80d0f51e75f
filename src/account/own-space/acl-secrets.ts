import type { MemberMetadata } from "../../acl/record/epoch.ts";
import { decodeInviteToken, guestAccount, type InviteToken } from "../../acl/record/invite-token.ts";
import { inviteLinkKeyOf, pairLinkKeyOf } from "../../acl/record/space-keys.ts";
import { base64ToBytes, bytesToBase64, bytesToHex } from "../../base/bytes.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { sharedSecret } from "../../crypto/box.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { SpacePlace } from "../../space/port/places.ts";
import { ACL_SECRETS_RULES } from "./private-datasets.ts";
import type { TechSpace } from "./tech-space.ts";

/** Where the space of a token is to be found. */
export function placeOfToken(token: InviteToken): SpacePlace {
  const { spaceId, seed } = token;
  const transportSecret = token.kind === "request" ? undefined : token.transportSecret;
  return { spaceId, transportSecret, linkKey: inviteLinkKeyOf(spaceId, publicKeyOfSeed(seed)), seeds: [seed] };
}

type SecretKind = "invites" | "guests";

/** A record as it was read last. */
interface KnownRecord {
  readonly text: string;
  readonly row: Readonly<JsonObject>;
  /** What was found in it; undefined until somebody asks. */
  place?: { readonly found: SpacePlace | undefined };
}

/**
 * Keeps the secrets of invites that were minted here, and those by which this account joined, in the account's own space,
 * so that all its devices have them.
 */
export type AclSecrets = ReturnType<typeof createAclSecrets>;

export function createAclSecrets(tech: TechSpace, account: Account) {
  /**
   * Records are large where many invites were made, keys take long to derive, and with each round of a space and each change of
   * any somebody asks for them: so they are read anew only when they changed.
   */
  const known = new Map<SpaceId, KnownRecord>();
  const knownOf = (spaceId: SpaceId): KnownRecord | undefined => {
    const text = tech.recordText(ACL_SECRETS_RULES, spaceId);
    const last = known.get(spaceId);
    if (text === last?.text) return last;
    if (text === undefined) known.delete(spaceId);
    else known.set(spaceId, { text, row: JSON.parse(text) as JsonObject });
    return known.get(spaceId);
  };
  const rowOf = (spaceId: SpaceId) => knownOf(spaceId)?.row;

  const tokenIn = ({ token }: Readonly<JsonObject>): InviteToken | undefined =>
    typeof token === "string" ? decodeInviteToken(token) : undefined;

  const placeIn = (spaceId: SpaceId, row: Readonly<JsonObject>): SpacePlace | undefined => {
    const token = tokenIn(row);
    const { place } = row;
    const transportSecret = typeof place === "string" && place !== "" ? base64ToBytes(place) : undefined;
    const adder = typeof row["adder"] === "string" ? parseAccountId(row["adder"]) : undefined;
    if ((token && token.kind !== "request") || !transportSecret || !adder) return token && placeOfToken(token);
    const linkKey = pairLinkKeyOf(spaceId, sharedSecret(account.seed, adder));
    return { spaceId, transportSecret, linkKey, seeds: [account.seed] };
  };

  return {
    /** Durable before the invite or key of this seed is given to anybody. */
    async keep(spaceId: SpaceId, kind: SecretKind, seed: Uint8Array): Promise<void> {
      const key = bytesToHex(publicKeyOfSeed(seed));
      await tech.write(ACL_SECRETS_RULES, spaceId, [
        { type: "$set", path: `${kind}.${key}`, value: bytesToBase64(seed) },
      ]);
    },
    /** The seed of a public key, if this account minted it and the device that did has shared it. */
    seedOf(spaceId: SpaceId, kind: SecretKind, publicKey: Uint8Array): Uint8Array | undefined {
      const seeds = rowOf(spaceId)?.[kind];
      const text = isJsonObject(seeds) ? seeds[bytesToHex(publicKey)] : undefined;
      return typeof text === "string" ? base64ToBytes(text) : undefined;
    },
    /** Drops the secrets whose keys are not among the live ones. */
    async prune(spaceId: SpaceId, kind: SecretKind, live: readonly Uint8Array[]): Promise<void> {
      const seeds = rowOf(spaceId)?.[kind];
      const wanted = new Set(live.map(bytesToHex));
      const stale = Object.keys(isJsonObject(seeds) ? seeds : {}).filter((key) => !wanted.has(key));
      if (stale.length === 0) return;
      await tech.write(
        ACL_SECRETS_RULES,
        spaceId,
        stale.map((key) => ({ type: "$unset", path: `${kind}.${key}` })),
      );
    },
    /**
     * What this account joins by, what it says of itself when it asks to join, its request if it makes one, and when it was that it
     * joined a space that had ended for it.
     */
    async keepToken(
      spaceId: SpaceId,
      {
        token,
        hint,
        asked,
        againMs,
      }: {
        token: string;
        hint: MemberMetadata | undefined;
        asked: Uint8Array | undefined;
        againMs: number | undefined;
      },
    ): Promise<void> {
      const value = {
        token,
        hint: hint ? JSON.stringify(hint) : "",
        asked: asked ? bytesToBase64(asked) : "",
        place: "",
        ...(againMs === undefined ? {} : { again: String(againMs) }),
      };
      await tech.write(ACL_SECRETS_RULES, spaceId, [{ type: "$set", path: "", value }]);
    },
    /** The token by which this account joined, or asked to join. */
    tokenOf(spaceId: SpaceId): InviteToken | undefined {
      const row = rowOf(spaceId);
      return row && tokenIn(row);
    },
    /** The request to join that this account made. */
    askedOf(spaceId: SpaceId): Uint8Array | undefined {
      const asked = rowOf(spaceId)?.["asked"];
      return typeof asked === "string" && asked !== "" ? base64ToBytes(asked) : undefined;
    },
    /** The record with which the membership began that was the last to end (`membershipBegan`). */
    formerOf(spaceId: SpaceId): Uint8Array | undefined {
      const former = rowOf(spaceId)?.["former"];
      return typeof former === "string" && former !== "" ? base64ToBytes(former) : undefined;
    },
    /** This account's membership has ended, as far as it is concerned; undefined: it goes on. */
    async keepFormer(spaceId: SpaceId, began: Uint8Array | undefined): Promise<void> {
      const former = began ? bytesToBase64(began) : "";
      if ((rowOf(spaceId)?.["former"] ?? "") === former) return;
      await tech.write(ACL_SECRETS_RULES, spaceId, [{ type: "$set", path: "former", value: former }]);
    },
    /** When this account last began to join the space after it had ended for it, in Unix milliseconds; 0 if it never did. */
    joinedAgainMs(spaceId: SpaceId): number {
      const again = rowOf(spaceId)?.["again"];
      return typeof again === "string" && /^\d{1,16}$/.test(again) ? Number(again) : 0;
    },
    /** Where to find a space that this account joins by a token, or that somebody added it to. */
    placeOf(spaceId: SpaceId): SpacePlace | undefined {
      const record = knownOf(spaceId);
      if (!record) return undefined;
      record.place ??= { found: placeIn(spaceId, record.row) };
      return record.place.found;
    },
    /** Whether somebody added this account, at any time, without being asked. */
    wasAdded: (spaceId: SpaceId): boolean => rowOf(spaceId)?.["adder"] !== undefined,
    /** What somebody who added this account says about the space. */
    async keepPlace(spaceId: SpaceId, transportSecret: Uint8Array, adder: AccountId): Promise<void> {
      const value = { place: bytesToBase64(transportSecret), adder };
      await tech.write(ACL_SECRETS_RULES, spaceId, [{ type: "$set", path: "", value }]);
    },
    hintOf(spaceId: SpaceId): MemberMetadata | undefined {
      const hint = rowOf(spaceId)?.["hint"];
      return typeof hint === "string" && hint !== "" ? (JSON.parse(hint) as MemberMetadata) : undefined;
    },
    async dropToken(spaceId: SpaceId): Promise<void> {
      if (rowOf(spaceId)?.["token"] === undefined) return;
      await tech.write(ACL_SECRETS_RULES, spaceId, [
        { type: "$unset", path: "", value: { token: 1, hint: 1, asked: 1 } },
      ]);
    },
    /** Who this account is in a space: itself, or the account of the guest key that it reads by. */
    accountIn(spaceId: SpaceId): Account {
      const token = this.tokenOf(spaceId);
      return token?.kind === "guest" ? guestAccount(token, account.peerId) : account;
    },
  };
}
