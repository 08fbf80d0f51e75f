import { base58ToBytes, bytesToBase58 } from "../base/base58.ts";
import { concatBytes } from "../base/bytes.ts";
import type { PeerId, SpaceId } from "../base/ids.ts";
import type { Account } from "../crypto/account.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import { cidFromDigest, digestOfCid } from "../crypto/cid.ts";
import { sha256 } from "../crypto/hash.ts";
import { createSigner } from "../crypto/sign.ts";
import { svcError } from "../protocol/errors.ts";

/**
 * What an invite or guest token holds. `member`: the secret lets its holder ask to join or, if the invite is an open
 * one, join. `guest`: the secret is the account that all guests read as.
 */
export interface InviteToken {
  kind: "member" | "guest";
  spaceId: SpaceId;
  /** 32-byte Ed25519 seed. */
  seed: Uint8Array;
  /** Where the space is to be found: its name on the network, and the seal of what lies there. */
  transportSecret: Uint8Array;
}

const VERSION = 1;
const KINDS = ["member", "guest"] as const;
const SECRET_BYTES = 32;
const CHECK_BYTES = 4;
const BODY_BYTES = 2 + 3 * SECRET_BYTES;

/** base58(version ‖ kind ‖ digest of the space id ‖ seed ‖ transport secret ‖ first 4 bytes of their sha2-256). */
export function encodeInviteToken(token: InviteToken): string {
  const digest = digestOfCid(token.spaceId);
  if (!digest || token.seed.length !== SECRET_BYTES || token.transportSecret.length !== SECRET_BYTES)
    throw new RangeError("a token holds a space id, a seed and a transport secret");
  const body = concatBytes(
    Uint8Array.of(VERSION, KINDS.indexOf(token.kind) + 1),
    digest,
    token.seed,
    token.transportSecret,
  );
  return bytesToBase58(concatBytes(body, sha256(body).subarray(0, CHECK_BYTES)));
}

/** Reads a token strictly. Throws `invite.invalid`. */
export function decodeInviteToken(text: string): InviteToken {
  const bytes = base58ToBytes(text);
  if (bytes?.length !== BODY_BYTES + CHECK_BYTES) throw svcError("invite.invalid");
  const body = bytes.subarray(0, BODY_BYTES);
  const kind = KINDS[body[1]! - 1];
  const intact = Buffer.compare(sha256(body).subarray(0, CHECK_BYTES), bytes.subarray(BODY_BYTES)) === 0;
  if (!intact || body[0] !== VERSION || kind === undefined) throw svcError("invite.invalid");
  const secret = (index: number) => body.slice(2 + index * SECRET_BYTES, 2 + (index + 1) * SECRET_BYTES);
  return { kind, spaceId: cidFromDigest(secret(0)) as SpaceId, seed: secret(1), transportSecret: secret(2) };
}

/** The account that all guests of a space read as. */
export function guestAccount(token: InviteToken, peerId: PeerId): Account {
  const signer = createSigner(token.seed);
  return { id: accountIdOf(signer.publicKey), peerId, seed: token.seed, signer };
}
