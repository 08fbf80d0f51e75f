import { expect, test } from "bun:test";
import { sign as signNative, verify as verifyNative } from "node:crypto";
import { ed25519 } from "@noble/curves/ed25519.js";
import bip39 from "../../test/vectors/bip39-english.json" with { type: "json" };
import refusedKeys from "../../test/vectors/ed25519-refused-keys.json" with { type: "json" };
import hkdf from "../../test/vectors/rfc5869-hkdf-sha256.json" with { type: "json" };
import rfc8032 from "../../test/vectors/rfc8032-ed25519.json" with { type: "json" };
import argon2 from "../../test/vectors/rfc9106-argon2id.json" with { type: "json" };
import slip10 from "../../test/vectors/slip10-ed25519.json" with { type: "json" };
import wycheproof from "../../test/vectors/wycheproof-ed25519.json" with { type: "json" };
import { bytesToHex, hexToBytes, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { accountIdOf, parseAccountId } from "./account-id.ts";
import { deriveAccountSecret, deriveAccountSeed } from "./account-keys.ts";
import { hkdfSha256 } from "./derive.ts";
import { ENTROPY_BYTES, entropyToMnemonic, generateEntropy, mnemonicToEntropy, mnemonicToSeed } from "./mnemonic.ts";
import { argon2id } from "./passkey.ts";
import { ed25519PrivateKey, publicKeyOfSeed } from "./private-key.ts";
import { admitPublicKey, publicKeyObject } from "./public-key.ts";
import { verify } from "./sign.ts";
import { deriveSlip10 } from "./slip10.ts";

const bytes = (hex: string) => hexToBytes(hex)!;

test("BIP-39: entropy, words and seed of the English reference vectors", async () => {
  let ofTwelveWords = 0;
  for (const { entropy, mnemonic, seed } of bip39.vectors) {
    expect(bytesToHex(await mnemonicToSeed(mnemonic, bip39.passphrase))).toBe(seed);
    if (bytes(entropy).length === ENTROPY_BYTES) {
      ofTwelveWords++;
      expect(await entropyToMnemonic(bytes(entropy))).toBe(mnemonic);
      expect(await mnemonicToEntropy(mnemonic)).toEqual(bytes(entropy));
    } else {
      expect(await mnemonicToEntropy(mnemonic)).toBeUndefined(); // 18 and 24 words are refused
      await expect(entropyToMnemonic(bytes(entropy))).rejects.toThrow(RangeError);
    }
  }
  expect(ofTwelveWords).toBe(8);
});

test("[ACC-1] a phrase is taken in any case, white space and Unicode form", async () => {
  const { entropy, mnemonic } = bip39.vectors[1]!;
  const typed = [
    `  ${mnemonic.toUpperCase()}\n`,
    mnemonic.replaceAll(" ", "\t\r\n  "),
    mnemonic.replaceAll(" ", "\u3000"),
    mnemonic.replace("legal", "\uff4c\uff45\uff47\uff41\uff4c"), // full-width letters
  ];
  for (const phrase of typed) expect(await mnemonicToEntropy(phrase)).toEqual(bytes(entropy));
});

test("a phrase with a wrong checksum, word, count or length is refused", async () => {
  const { mnemonic } = bip39.vectors[0]!;
  const words = mnemonic.split(" ");
  const refused = [
    "",
    " ",
    words.slice(0, 11).join(" "),
    `${mnemonic} abandon`,
    mnemonic.replace("about", "abandon"), // checksum
    mnemonic.replace("about", "abou"),
    mnemonic.replace("about", "svc"),
    words.join(","),
    `${mnemonic}${" ".repeat(100_000)}`,
    "abandon ".repeat(100_000),
  ];
  for (const phrase of refused) expect(await mnemonicToEntropy(phrase)).toBeUndefined();
});

test("fresh entropy makes a phrase that parses back", async () => {
  const entropy = generateEntropy();
  const mnemonic = await entropyToMnemonic(entropy);
  expect(mnemonic.split(" ")).toHaveLength(12);
  expect(await mnemonicToEntropy(mnemonic)).toEqual(entropy);
});

test("SLIP-0010: every node of Ed25519 test vectors 1 and 2", () => {
  for (const { seed, nodes } of slip10.vectors) {
    for (const { path, chainCode, key, publicKey } of nodes) {
      const node = deriveSlip10(bytes(seed), path);
      expect(bytesToHex(node.chainCode)).toBe(chainCode);
      expect(bytesToHex(node.key)).toBe(key);
      expect(bytesToHex(publicKeyOfSeed(node.key))).toBe(publicKey);
    }
  }
  for (const index of [-1, 2 ** 31, 0.5, Number.NaN])
    expect(() => deriveSlip10(new Uint8Array(32), [index])).toThrow(RangeError);
});

test("RFC 8032: keys and signatures of § 7.1", () => {
  for (const { seed, publicKey, message, signature } of rfc8032.vectors) {
    expect(bytesToHex(publicKeyOfSeed(bytes(seed)))).toBe(publicKey);
    const made = signNative(null, bytes(message), ed25519PrivateKey(bytes(seed)));
    expect(bytesToHex(made)).toBe(signature);
    expect(verifyNative(null, bytes(message), publicKeyObject(bytes(publicKey))!, bytes(signature))).toBe(true);
  }
});

test("Wycheproof: valid signatures verify, special values of R and S do not", () => {
  const key = publicKeyObject(bytes(wycheproof.publicKey))!;
  for (const { message, signature } of wycheproof.valid) {
    expect(verifyNative(null, bytes(message), key, bytes(signature))).toBe(true);
  }
  for (const signature of wycheproof.invalidSignatures) {
    expect(verifyNative(null, bytes(wycheproof.invalidMessage), key, bytes(signature))).toBe(false);
  }
  expect(wycheproof.invalidSignatures).toHaveLength(20);
});

test("RFC 5869: HKDF-SHA256 test cases 1 to 3", () => {
  for (const { ikm, salt, info, length, okm } of hkdf.vectors) {
    expect(bytesToHex(hkdfSha256(bytes(ikm), bytes(salt), bytes(info), length))).toBe(okm);
  }
});

test("RFC 9106: the argon2id tag of § 5.3", async () => {
  const tag = await argon2id({
    message: bytes(argon2.password),
    nonce: bytes(argon2.salt),
    secret: bytes(argon2.secret),
    associatedData: bytes(argon2.associatedData),
    memory: argon2.memoryKiB,
    passes: argon2.passes,
    parallelism: argon2.parallelism,
    tagLength: argon2.tagLength,
  });
  expect(bytesToHex(tag)).toBe(argon2.tag);
});

test("the eight small-order keys are small-order to another implementation, and none is admitted", () => {
  expect(refusedKeys.smallOrder).toHaveLength(8);
  for (const { key } of refusedKeys.smallOrder) {
    expect(ed25519.Point.fromBytes(bytes(key)).isSmallOrder()).toBe(true);
    expect(admitPublicKey(bytes(key))).toBe(false);
    expect(publicKeyObject(bytes(key))).toBeUndefined();
    expect(parseAccountId(accountIdOf(bytes(key)))).toBeUndefined();
  }
});

test("no non-canonical encoding of a key is admitted", () => {
  expect(refusedKeys.nonCanonical).toHaveLength(40);
  for (const { key } of refusedKeys.nonCanonical) expect(admitPublicKey(bytes(key))).toBe(false);
});

test("keys next to the refused ones and ordinary keys are admitted", () => {
  const nearP = bytes("ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"); // p − 2
  const two = new Uint8Array(32).fill(0).with(0, 2);
  for (const key of [nearP, two, bytes(wycheproof.publicKey)]) expect(admitPublicKey(key)).toBe(true);
  for (let i = 0; i < 100; i++) expect(admitPublicKey(publicKeyOfSeed(randomBytes(32)))).toBe(true);
  for (const length of [0, 31, 33]) expect(admitPublicKey(new Uint8Array(length).fill(5))).toBe(false);
});

test("a forgery that holds under the identity key for every message is not accepted", () => {
  const identity = bytes(refusedKeys.smallOrder[0]!.key);
  const forged = new Uint8Array(64).with(0, 1); // R = identity, S = 0
  for (const text of ["a", "b", "c"]) expect(verify(identity, "acl", utf8ToBytes(text), forged)).toBe(false);
});

test("[ACC-1] an account's key is the node m/44'/2046'/index'/0' of its phrase, another for each index", async () => {
  const { entropy, mnemonic } = bip39.vectors[0]!;
  const seeds = new Set<string>();
  for (const index of [0, 1, 2, 2 ** 31 - 1]) {
    const seed = await deriveAccountSeed(bytes(entropy), index);
    expect(seed).toEqual(deriveSlip10(await mnemonicToSeed(mnemonic), [44, 2046, index, 0]).key);
    seeds.add(bytesToHex(seed));
  }
  expect(seeds.size).toBe(4);
});

test("an index that is no hardened index is refused with its field", async () => {
  for (const index of [-1, 2 ** 31, 1.5, Number.NaN]) {
    const refused = deriveAccountSeed(new Uint8Array(16), index);
    await expect(refused).rejects.toMatchObject({ code: "request.invalid_field", details: { field: "index" } });
  }
});

test("[ACC-1] the ids of a known phrase stay what they are", async () => {
  // Pinned: a change here would lock every user out of their account.
  const { entropy } = bip39.vectors[0]!;
  const ids = [];
  for (const index of [0, 1]) ids.push(accountIdOf(publicKeyOfSeed(await deriveAccountSeed(bytes(entropy), index))));
  const secrets = (["tech-space", "derived-space/agent", "network", "p2p", "inbox"] as const).map((label) =>
    bytesToHex(deriveAccountSecret(new Uint8Array(32).fill(1), label)),
  );
  expect({ ids: ids as string[], secrets }).toMatchInlineSnapshot(`
    {
      "ids": [
        "A7YjXkE2tNFwjCBFmSABF3WnzKdA9dDyhHtF2pWqiqMRZ8Wy",
        "AAea89kVSHkHvoKR4juuQwBsARpGVB1SFHWSvwjpLzRceJpq",
      ],
      "secrets": [
        "40ee5257815eca383cfdb6cf53b154f9928507c4062d23a1464244c28cfc37d6",
        "57d5c20839c23d92ebdfc90639bf3cd4d2d307e9d4a165a65f8002caec7f4b09",
        "a74167655044da1feb65a96cc323e55ed550a03829b46c248b10cf6e3b75d0f6",
        "e1d408073222e90695c96bea6dbf64411e10a6851f17c015eb9c75343ca5e45b",
        "6a17595a0de90dd5ca9f15f23116855d74018da09267a333bd4704b1b1a37597",
      ],
    }
  `);
});
