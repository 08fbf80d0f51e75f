import { base58ToBytes, bytesToBase58 } from "../../base/base58.ts";
import { concatBytes } from "../../base/bytes.ts";
import type { PeerId, SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { canSealTo } from "../../crypto/box.ts";
import { cidFromDigest, digestOfCid } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { createSigner } from "../../crypto/sign.ts";
import { svcError } from "../../protocol/errors.ts";

/**
 * A token that gives access by itself. `member`: its holder may join. `guest`: its secret is the account as which all
 * guests read.
 */
export interface OpenToken {
  kind: "member" | "guest";
  spaceId: SpaceId;
  /** 32-byte Ed25519 seed. */
  seed: Uint8Array;
  /**
   * Transport secret of one of the space's places on the network. The log leads on from there, because each new read key
   * is sealed to the token's key.
   */
  transportSecret: Uint8Array;
}

/** A token that lets its holder ask to join: it names whom to ask, and gives no access to the space itself. */
export interface RequestToken {
  kind: "request";
  spaceId: SpaceId;
  /** 32-byte Ed25519 seed. */
  seed: Uint8Array;
  /** The record of the log that the request follows. */
  basis: Uint8Array;
  /** The epoch to whose metadata key the holder's profile is sealed. */
  keyId: Uint8Array;
  metadataKey: Uint8Array;
  /** Accounts that receive the request: the one that minted the invite, and the owner. */
  receivers: readonly Uint8Array[];
}

/** What an invite or guest token holds. */
export type InviteToken = OpenToken | RequestToken;

const VERSION = 1;
const KINDS = ["member", "guest", "request"] as const;
const SECRET_BYTES = 32;
const KEY_ID_BYTES = 16;
const CHECK_BYTES = 4;
const HEAD_BYTES = 2 + 2 * SECRET_BYTES;
const OPEN_BYTES = HEAD_BYTES + SECRET_BYTES;
const RECEIVERS_AT = HEAD_BYTES + 2 * SECRET_BYTES + KEY_ID_BYTES;
const RECEIVERS_MAX = 2;

/**
 * base58(version ‖ kind ‖ digest of the space id ‖ seed ‖ rest ‖ first 4 bytes of their sha2-256); the rest is the transport
 * secret, or for a request basis ‖ key id ‖ metadata key ‖ receivers.
 */
export function encodeInviteToken(token: InviteToken): string {
  const digest = digestOfCid(token.spaceId);
  const rest =
    token.kind === "request"
      ? concatBytes(token.basis, token.keyId, token.metadataKey, ...token.receivers)
      : token.transportSecret;
  const head = concatBytes(Uint8Array.of(VERSION, KINDS.indexOf(token.kind) + 1), digest ?? rest, token.seed);
  const body = concatBytes(head, rest);
  if (!digest || head.length !== HEAD_BYTES || !isLengthOf(token.kind, body.length))
    throw new RangeError("a token holds a space id, a seed and what its kind calls for");
  return bytesToBase58(concatBytes(body, sha256(body).subarray(0, CHECK_BYTES)));
}

function isLengthOf(kind: InviteToken["kind"], length: number): boolean {
  if (kind !== "request") return length === OPEN_BYTES;
  const receivers = (length - RECEIVERS_AT) / SECRET_BYTES;
  return Number.isInteger(receivers) && receivers >= 1 && receivers <= RECEIVERS_MAX;
}

/** Reads a token strictly (ACL-16). Throws `invite.invalid`. */
export function decodeInviteToken(text: string): InviteToken {
  const bytes = base58ToBytes(text);
  const body = bytes?.slice(0, -CHECK_BYTES);
  const kind = body && KINDS[body[1]! - 1];
  if (!bytes || !body || kind === undefined || !isLengthOf(kind, body.length) || body[0] !== VERSION)
    throw svcError("invite.invalid");
  if (Buffer.compare(sha256(body).subarray(0, CHECK_BYTES), bytes.subarray(-CHECK_BYTES)) !== 0)
    throw svcError("invite.invalid");
  const part = (from: number, length = SECRET_BYTES) => body.slice(from, from + length);
  const spaceId = cidFromDigest(part(2)) as SpaceId;
  const seed = part(2 + SECRET_BYTES);
  if (kind !== "request") return { kind, spaceId, seed, transportSecret: part(HEAD_BYTES) };
  const receivers: Uint8Array[] = [];
  for (let at = RECEIVERS_AT; at < body.length; at += SECRET_BYTES) receivers.push(part(at));
  const metadataKey = part(HEAD_BYTES + SECRET_BYTES + KEY_ID_BYTES);
  if (![metadataKey, ...receivers].every(canSealTo)) throw svcError("invite.invalid");
  return {
    kind,
    spaceId,
    seed,
    basis: part(HEAD_BYTES),
    keyId: part(HEAD_BYTES + SECRET_BYTES, KEY_ID_BYTES),
    metadataKey,
    receivers,
  };
}

/** The account as which all guests of a space read. */
export function guestAccount(token: Pick<InviteToken, "seed">, peerId: PeerId): Account {
  const signer = createSigner(token.seed);
  return { id: accountIdOf(signer.publicKey), peerId, seed: token.seed, signer };
}
