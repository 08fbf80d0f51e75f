/** Everything that comes from others as bytes: how it is made, spoilt, read, and told canonical. */

import { decodeInviteToken, encodeInviteToken } from "../../../src/acl/record/invite-token.ts";
import { decodePending, encodeAclProposal, encodeAclRecord } from "../../../src/acl/record/record.ts";
import { decodeSpaceHeader } from "../../../src/acl/record/space-header.ts";
import { base58ToBytes, bytesToBase58 } from "../../../src/base/base58.ts";
import { concatBytes, utf8ToBytes } from "../../../src/base/bytes.ts";
import { type CborValue, decodeCbor, encodeCbor } from "../../../src/base/dag-cbor.ts";
import { silentLog } from "../../../src/base/log.ts";
import { decodeBody, encodeBody } from "../../../src/change/codec/change-body.ts";
import {
  ChangeFault,
  decodeChange,
  encodeChange,
  encodeDerivedRoot,
  encodeHeader,
  isDerivedRoot,
} from "../../../src/change/codec/change-codec.ts";
import { stubOf } from "../../../src/change/codec/change-stub.ts";
import { sealTo } from "../../../src/crypto/box.ts";
import { deriveKey } from "../../../src/crypto/derive.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import { peerIdOf } from "../../../src/crypto/peer-id.ts";
import { open, seal } from "../../../src/crypto/seal.ts";
import { signEnvelope } from "../../../src/crypto/signed-envelope.ts";
import { buildTree, levelCounts, openPage, positionIn } from "../../../src/files/chunk-tree.ts";
import { CHUNK_BYTES, sealChunk } from "../../../src/files/content-seal.ts";
import { SvcError } from "../../../src/protocol/errors.ts";
import { createEventRelay } from "../../../src/sync/event-relay.ts";
import { openInboxMessage } from "../../../src/sync/inbox/inbox-messages.ts";
import { createFrameReader, encodeFrame, FRAME } from "../../../src/sync/lan/framing.ts";
import { HandshakeError, markedList, readTokens } from "../../../src/sync/lan/handshake.ts";
import { openLogMessage, sealLogMessage } from "../../../src/sync/network/log-message.ts";
import { createTransports } from "../../../src/sync/transports.ts";
import { createAclCast } from "../worlds/acl-matrix.ts";
import { createAccount } from "../worlds/acl-world.ts";
import { sealedInboxMessage } from "../worlds/inbox-message.ts";
import { bytesFrom, contentOf, mutateBytes, mutateCbor, mutateEncoded } from "./mutate.ts";
import { bytesOf, map, refusesWith, spaceDigest, spaceId, type WireCodec } from "./wire-codec.ts";
import { SESSION_CODECS } from "./wire-session-codecs.ts";

const author = createAccount();
const key = new Uint8Array(32).fill(7);
const never = () => false;

const cbor: WireCodec = {
  name: "dag-cbor",
  weight: 10,
  make: () => encodeCbor({ a: [1, "text", null, true, bytesOf(20)], b: { c: -1 } }).slice(),
  spoil: mutateEncoded,
  decode: decodeCbor,
  refuses: refusesWith(RangeError),
  encode: (value: CborValue) => encodeCbor(value),
};

const change: WireCodec = {
  name: "change",
  weight: 15,
  make(rng) {
    if (rng.chance(0.1)) return encodeDerivedRoot({ space: spaceDigest, type: "t", derivation: "d" }).bytes.slice();
    const isRoot = rng.chance(0.2);
    const header = encodeHeader({
      kind: isRoot ? "root" : "change",
      space: spaceDigest,
      object: isRoot ? null : bytesOf(32),
      parents: isRoot ? [] : [bytesOf(32)],
      lamport: 2,
      writer: bytesOf(16),
      seq: 1,
      prev: null,
      author: author.signer.publicKey,
      time: 1,
      acl: bytesOf(32),
      keyId: bytesOf(16),
    });
    const { bytes } = encodeChange(header, isRoot ? undefined : bytesFrom(rng, 60), author.signer);
    return rng.chance(0.3) ? stubOf(bytes).slice() : bytes.slice();
  },
  spoil: mutateEncoded,
  decode: (bytes) => decodeChange(bytes),
  refuses: refusesWith(ChangeFault),
  encode(value: ReturnType<typeof decodeChange>) {
    if (isDerivedRoot(value)) return encodeDerivedRoot(value.header).bytes;
    const { sealed, bodyHash, signature } = value;
    const header = decodeCbor(encodeHeader(value.header));
    return encodeCbor({ ...(sealed ? { b: sealed } : bodyHash ? { c: bodyHash } : {}), h: header, s: signature });
  },
};

const BODY = {
  dataset: "items",
  records: [{ id: "a", upsert: true, ops: [{ type: "$set", path: "x.y", value: { z: [1, "2", null] } }] }],
  traceIds: ["t"],
};
const body: WireCodec = {
  name: "body of a change",
  weight: 10,
  make: () => encodeBody(BODY as Parameters<typeof encodeBody>[0])!,
  spoil(rng, good) {
    if (rng.chance(0.5)) return mutateBytes(rng, good);
    const text = JSON.stringify(mutateCbor(rng, BODY as unknown as CborValue));
    const nested = rng.chance(0.1) ? text.replace("1", "[".repeat(rng.pick([10, 200, 5_000]))) : text;
    const odd = rng.chance(0.2) ? nested.replace(/\d/, rng.pick(["-0", "1e999", '"\\ud800"', "1e-400"])) : nested;
    const plain = Buffer.from(odd);
    return rng.chance(0.8)
      ? concatBytes(Uint8Array.of(0), plain)
      : concatBytes(Uint8Array.of(1), Bun.zstdCompressSync(plain));
  },
  decode: (bytes) => decodeBody(bytes)?.body,
  refuses: never,
  // The text of a body may be written in many ways; what is read from it is written in one.
  encode: (value: Parameters<typeof encodeBody>[0]) => encodeBody(decodeBody(encodeBody(value)!)!.body)!,
};

const cast = createAclCast();
const aclUnits = [
  ...cast.world.records.map(({ bytes }) => bytes),
  encodeAclProposal({ space: spaceDigest, basis: bytesOf(32), time: 1, ops: [{ op: "selfRemove" }] }, author.signer)
    .bytes,
];
const acl: WireCodec = {
  name: "ACL record",
  weight: 3,
  make: (rng) => rng.pick(aclUnits),
  spoil(rng, good) {
    if (rng.chance(0.3)) return mutateBytes(rng, good);
    const header = mutateCbor(rng, map(map(contentOf(good))["h"]));
    const signed = rng.chance(0.8) ? { ...map(header), author: author.signer.publicKey } : header;
    const kind = map(signed)?.["kind"] === "acl-proposal" ? "acl-proposal" : "acl";
    return signAny(kind, signed, good);
  },
  decode: decodePending,
  refuses: never,
  encode: (pending: NonNullable<ReturnType<typeof decodePending>>) => {
    const isOurs = Buffer.compare(pending.author, author.signer.publicKey) === 0;
    if (!isOurs) return pending.bytes;
    return pending.kind === "acl"
      ? encodeAclRecord(pending, author.signer).bytes
      : encodeAclProposal(pending, author.signer).bytes;
  },
};

/** Signed by the author, whatever it is; `otherwise` for what has no encoding. */
function signAny(kind: Parameters<typeof signEnvelope>[0], header: CborValue, otherwise: Uint8Array): Uint8Array {
  try {
    return signEnvelope(kind, encodeCbor(header).slice(), author.signer);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return otherwise;
  }
}

const header: WireCodec = {
  name: "header of a space",
  weight: 3,
  make: () => cast.world.genesis.header,
  spoil(rng, good) {
    if (rng.chance(0.4)) return mutateEncoded(rng, good);
    const spoilt = mutateCbor(rng, map(map(contentOf(good))["h"]));
    return signAny("space", { ...map(spoilt), author: author.signer.publicKey }, good);
  },
  decode: decodeSpaceHeader,
  refuses: never,
  encode: (value: NonNullable<ReturnType<typeof decodeSpaceHeader>>) => value.bytes,
};

const frames: WireCodec = {
  name: "LAN frames",
  weight: 8,
  make: (rng) =>
    concatBytes(
      ...Array.from({ length: rng.int(1, 4) }, () =>
        encodeFrame(
          rng.pick(Object.values(FRAME)),
          rng.int(0, 2 ** 32 - 1),
          bytesFrom(rng, rng.int(0, 50)),
          rng.chance(0.2),
        ),
      ),
    ),
  spoil: mutateBytes,
  decode(bytes) {
    const reader = createFrameReader(1_000);
    const read = [];
    for (let at = 0; at < bytes.length; at += 7) {
      const some = reader.push(bytes.subarray(at, at + 7));
      if (!some) return undefined;
      read.push(...some.map((frame) => ({ ...frame, payload: frame.payload.slice() })));
    }
    return read;
  },
  refuses: never,
};

const tokens: WireCodec = {
  name: "LAN tokens",
  weight: 4,
  make: (rng) => markedList(bytesFrom(rng, 1024), rng.chance(0.5)),
  spoil: mutateBytes,
  decode: readTokens,
  refuses: refusesWith(HandshakeError),
  encode: ({ tokens: list, goesOn }: ReturnType<typeof readTokens>) => markedList(list, goesOn),
};

const logMessage: WireCodec = {
  name: "log message",
  weight: 6,
  make: (rng) => sealLogMessage(key, "subject", [bytesFrom(rng, 30), bytesFrom(rng, 1)]),
  spoil(rng, good) {
    const plain = open(key, good, utf8ToBytes("subject"))!;
    return rng.chance(0.2) ? mutateBytes(rng, good) : seal(key, mutateBytes(rng, plain), utf8ToBytes("subject"));
  },
  decode: (bytes) => openLogMessage(key, "subject", bytes),
  refuses: never,
};

const inbox: WireCodec = {
  name: "inbox message",
  weight: 0.5,
  make: () => sealedInboxMessage(author, author.signer.publicKey, "space.added", { spaceId }),
  spoil(rng, good) {
    if (rng.chance(0.2)) return mutateBytes(rng, good);
    const text = rng.pick([
      '{"a":1}',
      "[]",
      "{",
      "1",
      `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
      '{"__proto__":{}}',
    ]);
    const fields = {
      v: 1,
      kind: "k",
      to: author.signer.publicKey,
      from: author.signer.publicKey,
      time: 1,
      body: utf8ToBytes(text),
    };
    const signed = signAny("inbox", rng.chance(0.3) ? fields : mutateCbor(rng, fields), good);
    return sealTo(author.signer.publicKey, rng.chance(0.2) ? mutateBytes(rng, signed) : signed, "svc/inbox/v1");
  },
  decode: (bytes) => openInboxMessage(author, bytes),
  refuses: never,
};

const epoch = { id: bytesOf(16), key };
const room = { id: spaceId, readKey: () => epoch, acl: { permissionOf: () => "writer" } } as never;
const relay = createEventRelay({
  account: author,
  peerId: author.peerId,
  tech: { id: "tech" } as never,
  transports: createTransports(),
  clock: { nowMs: () => 1_000 },
  log: silentLog,
  open: async () => room,
  // What is heard goes out to streams as text.
  receive: ({ data }) => void JSON.stringify(data),
});
relay.watch({ scope: "space", spaceId }, [">"]);
const event: WireCodec = {
  name: "event",
  weight: 1,
  make: () => encodeCbor({ k: epoch.id, b: bytesOf(60) }).slice(),
  spoil(rng, good) {
    if (rng.chance(0.2)) return mutateEncoded(rng, good);
    const data = rng.pick(['"x"', "{", "[]", `${"[".repeat(50_000)}${"]".repeat(50_000)}`, "1e999"]);
    const fields = {
      v: 1,
      space: spaceId,
      topic: "ev/a/-",
      data: utf8ToBytes(data),
      author: author.signer.publicKey,
      peer: peerIdOf(author.signer.publicKey),
      time: 1_000,
    };
    const signed = signAny("event", rng.chance(0.3) ? fields : mutateCbor(rng, fields), good);
    const sealed = seal(
      deriveKey(key, "event", spaceId),
      rng.chance(0.2) ? mutateBytes(rng, signed) : signed,
      epoch.id,
    );
    return encodeCbor({ k: epoch.id, b: sealed }).slice();
  },
  decode: (bytes) => relay.take(room, bytes),
  refuses: never,
};

const token: WireCodec = {
  name: "invite token",
  weight: 2,
  make: () => utf8ToBytes(encodeInviteToken({ kind: "member", spaceId, seed: bytesOf(32), transportSecret: key })),
  spoil(rng, good) {
    if (rng.chance(0.5)) return mutateBytes(rng, good);
    const bytes = mutateBytes(rng, base58ToBytes(Buffer.from(good).toString())!.subarray(0, -4));
    return utf8ToBytes(bytesToBase58(concatBytes(bytes, sha256(bytes).subarray(0, 4))));
  },
  decode: (bytes) => decodeInviteToken(Buffer.from(bytes).toString("latin1")),
  refuses: (error) => error instanceof SvcError && error.code === "invite.invalid",
  encode: (value: ReturnType<typeof decodeInviteToken>) => utf8ToBytes(encodeInviteToken(value)),
};

const content = { hash: bytesOf(32), size: CHUNK_BYTES * 3, key };
const manifest: WireCodec = {
  name: "manifest of a file",
  weight: 4,
  make: () => buildTree(content, bytesOf(32 * 3)).pages[0]!.sealed,
  spoil(rng) {
    const head = concatBytes(
      utf8ToBytes("svc/file-root/v1\0"),
      bytesFrom(rng, 8),
      bytesFrom(rng, rng.pick([0, 31, 32, 96, 128])),
    );
    return sealChunk(key, content.hash, positionIn(levelCounts(content.size), 1, 0), mutateBytes(rng, head));
  },
  decode: (bytes) => openPage(content, positionIn(levelCounts(content.size), 1, 0), bytes),
  refuses: never,
};

export const WIRE_CODECS: readonly WireCodec[] = [
  cbor,
  change,
  body,
  acl,
  header,
  ...SESSION_CODECS,
  frames,
  tokens,
  logMessage,
  inbox,
  event,
  token,
  manifest,
];
