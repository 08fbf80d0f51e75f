/**
 * `bun test/bench/codecs.ts`: the codecs that are our own, each against what it stands in for, in one process by turns. A ratio
 * says how many times as long ours takes; below 1 it is faster.
 */
import { generateKeyPairSync } from "node:crypto";
import * as ipld from "@ipld/dag-cbor";
import { ed25519 } from "@noble/curves/ed25519.js";
import { CID } from "multiformats/cid";
import { decodeCanonicalCbor, encodeCbor, Link } from "../../src/base/dag-cbor.ts";
import { randomBytes } from "../../src/base/random.ts";
import { cidFromDigest } from "../../src/crypto/cid.ts";
import { admitPublicKey } from "../../src/crypto/public-key.ts";
import { createSigner } from "../../src/crypto/sign.ts";
import { createDeviceCertificate } from "../../src/sync/lan/device-certificate.ts";
import { createFrameReader, encodeFrame, FRAGMENT_BYTES, FRAME } from "../../src/sync/lan/framing.ts";
import { type Line, median, renderTable } from "./report.ts";

const TURNS = 15;

/** Microseconds of one call, the median over turns of `calls` each. */
function timeBoth(calls: number, ours: () => void, other: () => void): [number, number] {
  const times: [number[], number[]] = [[], []];
  for (let turn = 0; turn < TURNS; turn++)
    for (const [at, run] of [ours, other].entries()) {
      const begun = performance.now();
      for (let call = 0; call < calls; call++) run();
      times[at as 0 | 1].push(((performance.now() - begun) * 1000) / calls);
    }
  return [median(times[0]), median(times[1])];
}

function line(name: string, [ours, other]: [number, number]): Line {
  return { name, ratio: ours / other, figures: `${ours.toFixed(2)} µs against ${other.toFixed(2)} µs` };
}

/** The header of a change, as it is signed. */
const digests = Array.from({ length: 4 }, () => randomBytes(32));
const body = randomBytes(200);
const header = (link: (digest: Uint8Array) => unknown) => ({
  v: 1,
  kind: "change",
  space: link(digests[0]!),
  object: link(digests[1]!),
  parents: [link(digests[2]!)],
  lamport: 123_456,
  writer: digests[3]!.subarray(0, 16),
  seq: 4_711,
  prev: link(digests[2]!),
  author: digests[3]!,
  time: 1_800_000_000_000,
  acl: link(digests[0]!),
  keyId: digests[1]!.subarray(0, 16),
  body,
});
const own = header((digest) => new Link(digest)) as unknown as Parameters<typeof encodeCbor>[0];
const theirs = header((digest) => CID.parse(cidFromDigest(digest)));
const bytes = encodeCbor(own);
if (!Buffer.from(bytes).equals(Buffer.from(ipld.encode(theirs)))) throw new Error("the two encode differently");

const message = randomBytes(1 << 20);
const sendFramed = (): void => {
  const reader = createFrameReader(FRAGMENT_BYTES);
  for (let at = 0; at < message.length; at += FRAGMENT_BYTES) {
    const more = at + FRAGMENT_BYTES < message.length;
    reader.push(encodeFrame(FRAME.response, 1, message.subarray(at, at + FRAGMENT_BYTES), more));
  }
};
const seed = randomBytes(32);
const signature = (): void => {
  createDeviceCertificate(seed);
};
const { publicKey } = createSigner(seed);
const hash = new Bun.CryptoHasher("sha256");

console.log(
  renderTable([
    line(
      "a change's header encoded, against @ipld/dag-cbor",
      timeBoth(
        2_000,
        () => void encodeCbor(own),
        () => void ipld.encode(theirs),
      ),
    ),
    line(
      "decoded, with the check of its canonical form, against @ipld/dag-cbor's decoding and encoding again",
      timeBoth(
        2_000,
        () => void decodeCanonicalCbor(bytes),
        () => void ipld.encode(ipld.decode(bytes)),
      ),
    ),
    line(
      "a message of 1 MiB cut into frames and read back, against its SHA-256",
      timeBoth(20, sendFramed, () => void hash.update(message)),
    ),
    line(
      "a public key looked at, against @noble/curves' reading it as a point and asking for its order",
      timeBoth(
        500,
        () => void admitPublicKey(publicKey),
        () => void ed25519.Point.fromBytes(publicKey).isSmallOrder(),
      ),
    ),
    line(
      "a device's certificate, once a start, against making a key pair",
      timeBoth(100, signature, () => void generateKeyPairSync("ed25519")),
    ),
  ]),
);
