import { expect, test } from "bun:test";
import { refusalOf } from "../../../test/support/errors-of.ts";
import { bytesToBase58 } from "../../base/base58.ts";
import { concatBytes } from "../../base/bytes.ts";
import type { PeerId, SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { createSigner } from "../../crypto/sign.ts";
import {
  decodeInviteToken,
  encodeInviteToken,
  guestAccount,
  type OpenToken,
  type RequestToken,
} from "./invite-token.ts";

const token = (kind: OpenToken["kind"] = "member"): OpenToken => ({
  kind,
  spaceId: cidFromDigest(randomBytes(32)) as SpaceId,
  seed: randomBytes(32),
  transportSecret: randomBytes(32),
});
const request = (receivers: number): RequestToken => ({
  kind: "request",
  spaceId: cidFromDigest(randomBytes(32)) as SpaceId,
  seed: randomBytes(32),
  basis: randomBytes(32),
  keyId: randomBytes(16),
  metadataKey: createSigner(randomBytes(32)).publicKey,
  receivers: Array.from({ length: receivers }, () => createSigner(randomBytes(32)).publicKey),
});

test("[ACL-16] a token is read back as it was written, and short enough to send", () => {
  for (const written of [token("member"), token("guest"), request(1), request(2)]) {
    const text = encodeInviteToken(written);
    expect(decodeInviteToken(text)).toEqual(written);
    expect(text.length).toBeLessThan(written.kind === "request" ? 300 : 150);
    expect(text).toMatch(/^[1-9A-HJ-NP-Za-km-z]+$/);
  }
});

test("[ACL-16] one wrong, missing or added character is invite.invalid", () => {
  const text = encodeInviteToken(token());
  const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  for (let at = 0; at < text.length; at++) {
    const other = alphabet[(alphabet.indexOf(text[at]!) + 1 + (at % 56)) % 58]!;
    expect(refusalOf(() => decodeInviteToken(text.slice(0, at) + other + text.slice(at + 1))).code).toBe(
      "invite.invalid",
    );
    expect(refusalOf(() => decodeInviteToken(text.slice(0, at) + text.slice(at + 1))).code).toBe("invite.invalid");
    expect(refusalOf(() => decodeInviteToken(`${text.slice(0, at)}1${text.slice(at)}`)).code).toBe("invite.invalid");
  }
  for (const junk of ["", " ", "0", "hello", `${text} `, "1".repeat(1000), "é"])
    expect(refusalOf(() => decodeInviteToken(junk)).code).toBe("invite.invalid");
});

test("[ACL-16] another version or kind is invite.invalid, even well made", () => {
  const rest = randomBytes(96);
  const made = (version: number, kind: number) => {
    const body = concatBytes(Uint8Array.of(version, kind), rest);
    return bytesToBase58(concatBytes(body, sha256(body).subarray(0, 4)));
  };
  expect(decodeInviteToken(made(1, 1)).kind).toBe("member");
  expect(decodeInviteToken(made(1, 2)).kind).toBe("guest");
  for (const [version, kind] of [
    [0, 1],
    [2, 1],
    [1, 0],
    [1, 3], // the length of another kind
    [1, 4],
  ] as const)
    expect(refusalOf(() => decodeInviteToken(made(version, kind))).code).toBe("invite.invalid");
});

test("[ACL-1] all guests are one account, that of the token's secret", () => {
  const written = token("guest");
  const account = guestAccount(written, "peer" as PeerId);
  expect(account.signer.publicKey).toEqual(createSigner(written.seed).publicKey);
  expect(account.id).toStartWith("A");
});
