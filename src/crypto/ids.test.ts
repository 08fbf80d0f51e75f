import { expect, test } from "bun:test";
import { CID } from "multiformats/cid";
import { sha256 as multiformatsSha256 } from "multiformats/hashes/sha2";
import { base58ToBytes, bytesToBase58 } from "../base/base58.ts";
import { bytesToHex, hexToBytes, utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";
import { accountIdOf, parseAccountId } from "./account-id.ts";
import { cidBytesFromDigest, cidFromDigest, cidOf, digestOfCid, digestOfCidBytes } from "./cid.ts";
import { parsePeerId, peerIdOf } from "./peer-id.ts";
import { publicKeyOfSeed } from "./private-key.ts";

const newPublicKey = () => publicKeyOfSeed(randomBytes(32));

test("account id: any-sync's published address parses and is written again", () => {
  const published = "ABCw4rFBR7qU2HGzHwnKLYo9mMRcjGhFK28gSy58RKc5feqz";
  const publicKey = parseAccountId(published);
  expect(publicKey).toHaveLength(32);
  expect<string>(accountIdOf(publicKey!)).toBe(published);
});

test("account id: begins with A for every key, and parses to it", () => {
  for (let i = 0; i < 200; i++) {
    const publicKey = newPublicKey();
    const id = accountIdOf(publicKey);
    expect(id[0]).toBe("A");
    expect(parseAccountId(id)).toEqual(publicKey);
  }
});

test("account id: one wrong character, another version, another length and a small-order key are refused", () => {
  const id = accountIdOf(newPublicKey());
  for (let i = 0; i < id.length; i++) {
    const wrong = id.slice(0, i) + (id[i] === "z" ? "y" : "z") + id.slice(i + 1);
    expect(parseAccountId(wrong)).toBeUndefined();
  }
  const bytes = base58ToBytes(id)!;
  bytes[0] = 0x30;
  expect(parseAccountId(bytesToBase58(bytes))).toBeUndefined();
  for (const text of ["", "A", `1${id}`, `${id} `, id.slice(0, -1)]) expect(parseAccountId(text)).toBeUndefined();
  expect(parseAccountId(accountIdOf(new Uint8Array(32)))).toBeUndefined();
});

test("peer id: the Ed25519 example of the libp2p specification", () => {
  const protobuf = hexToBytes("080112201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e")!;
  const publicKey = protobuf.slice(4);
  const id = peerIdOf(publicKey);
  expect(bytesToHex(base58ToBytes(id)!)).toBe(`0024${bytesToHex(protobuf)}`);
  expect(id.startsWith("12D3KooW")).toBe(true);
  expect(parsePeerId(id)).toEqual(publicKey);
  const published = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA";
  expect<string>(peerIdOf(parsePeerId(published)!)).toBe(published);
});

test("peer id: another key type, length or a small-order key is refused", () => {
  const bytes = base58ToBytes(peerIdOf(newPublicKey()))!;
  expect(parsePeerId(bytesToBase58(bytes.slice(0, -1)))).toBeUndefined();
  bytes[3] = 2; // secp256k1
  expect(parsePeerId(bytesToBase58(bytes))).toBeUndefined();
  expect(parsePeerId(peerIdOf(new Uint8Array(32)))).toBeUndefined();
  expect(parsePeerId("")).toBeUndefined();
});

test("cid: equal to the multiformats library's CIDv1 of dag-cbor", async () => {
  for (const text of ["", "a", "svc"]) {
    const bytes = utf8ToBytes(text);
    const reference = CID.createV1(0x71, await multiformatsSha256.digest(bytes));
    const cid = cidOf(bytes);
    expect(cid).toBe(reference.toString());
    expect(cidBytesFromDigest(digestOfCid(cid)!)).toEqual(reference.bytes);
    expect(cidFromDigest(digestOfCidBytes(reference.bytes)!)).toBe(cid);
  }
});

test("cid: another version, codec, hash, base, case or spelling is refused", async () => {
  const bytes = utf8ToBytes("svc");
  const cid = cidOf(bytes);
  const digest = await multiformatsSha256.digest(bytes);
  const others = [
    CID.createV0(digest as never).toString(),
    CID.createV1(0x70, digest).toString(),
    CID.createV1(0x55, digest).toString(),
    cid.toUpperCase(),
    `z${cid.slice(1)}`,
    cid.slice(0, -1),
    `${cid}a`,
    `${cid.slice(0, -1)}${cid.endsWith("b") ? "d" : "b"}`, // last bits not zero
    "",
  ];
  for (const other of others) expect(digestOfCid(other)).toBeUndefined();
  const binary = cidBytesFromDigest(digestOfCid(cid)!);
  for (let i = 0; i < 4; i++) {
    const changed = binary.slice();
    changed[i]! ^= 1;
    expect(digestOfCidBytes(changed)).toBeUndefined();
  }
});
