/** Changes for a world that no honest device writes, each wrong in one way. */
import type { ObjectId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { createBodyOpener } from "../../../src/change/codec/body-opener.ts";
import type { ChangeBody } from "../../../src/change/codec/change-body.ts";
import {
  type Change,
  type ChangeHeader,
  decodeChange,
  encodeChange,
  encodeHeader,
} from "../../../src/change/codec/change-codec.ts";
import { changeIdOf } from "../../../src/change/codec/change-stub.ts";
import { autoRecordId } from "../../../src/change/codec/version.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { keyIdOf } from "../../../src/crypto/seal.ts";
import type { Signer } from "../../../src/crypto/sign.ts";
import type { Space } from "../../../src/space/space.ts";
import { createAccount } from "../worlds/acl-world.ts";
import type { Forgery, OpenWorld, Packet } from "../worlds/replica-port.ts";
import { allChanges, objectIn, packetOf } from "../worlds/world-space.ts";

type ForgedPacket = Awaited<ReturnType<Awaited<ReturnType<OpenWorld>>["forge"]>>;
type Encoded = ReturnType<typeof encodeChange>;

/** A replica's space, by whose state things are forged. */
interface Base {
  readonly space: Space;
  readonly owner: Account;
  readonly now: () => number;
}

/** The parts of a change that a forger turns at will; whatever is not named is as an honest device would have it. */
interface Draft {
  header?: Partial<ChangeHeader>;
  body?: ChangeBody;
  signer?: Signer;
  readKey?: Uint8Array;
}

export function forge(kind: Forgery, base: Base): ForgedPacket {
  const twisted = TWISTED_BYTES[kind];
  if (twisted) {
    const bytes = twisted(build(base, {}).bytes);
    return { packet: packetOf("change", changeIdOf(bytes), bytes) };
  }
  if (kind === "unknown-parent") {
    const missing = build(base, {});
    const orphan = build(base, { header: { parents: [missing.id], lamport: lastLamport(base.space) + 2 } });
    return { packet: toPacket(orphan), missing: toPacket(missing) };
  }
  return { packet: toPacket(build(base, draftOf(kind, base.space))) };
}

const toPacket = ({ bytes, id }: Encoded): Packet => packetOf("change", id, bytes);

const lastLamport = (space: Space): number => Math.max(...objectIn(space)!.heads.map((parent) => parent.lamport));

/** What is wrong in the bytes alone. */
const TWISTED_BYTES: { readonly [K in Forgery]?: (bytes: Uint8Array) => Uint8Array } = {
  "bad-signature": (bytes) => {
    const turned = bytes.slice();
    turned[turned.length - 1]! ^= 1;
    return turned;
  },
  // One byte after the end: the same value, another encoding.
  "bad-bytes": (bytes) => Buffer.concat([bytes, Uint8Array.of(0)]),
  // The header says "change" in a text that turns invalid: major type 3, six bytes.
  "bad-text": (bytes) => {
    const turned = Buffer.from(bytes);
    turned[turned.indexOf("\x66change") + 1] = 0xff;
    return turned;
  },
};

function draftOf(kind: Forgery, space: Space): Draft {
  const own = [...allChanges(space)].filter((change) => change.seq > 0);
  const last = decodeChange(own[own.length - 1]!.bytes) as Change;
  const lamport = lastLamport(space);
  const afterLast = Math.max(lamport, last.header.lamport) + 1;
  switch (kind) {
    case "stranger":
    case "acl-without-right":
      return { signer: createAccount().signer };
    case "foreign-key":
      return { readKey: randomBytes(32) };
    case "wrong-lamport":
      return { header: { lamport: lamport + 2 } };
    case "low-lamport":
      return { header: { lamport } };
    case "broken-chain": {
      // Continues the writer at a number that its named predecessor does not have.
      const { writer, seq } = last.header;
      return { header: { writer, seq: seq + 2, prev: last.id, lamport: afterLast } };
    }
    case "same-seq": {
      const { writer, seq, prev } = last.header;
      return { header: { writer, seq, prev, lamport: afterLast } };
    }
    case "forged-record-id":
      return { body: bodyOf("auto", autoRecordId(randomBytes(32), 0)) };
    case "other-space":
      return { header: { space: randomBytes(32) } };
    default:
      throw new Error(`${kind} is forged in another way`);
  }
}

const bodyOf = (dataset: string, id: string): ChangeBody => ({
  dataset,
  records: [{ id, upsert: true, ops: [{ type: "$set", path: "s", value: "forged" }] }],
});

function build({ space, owner, now }: Base, draft: Draft): Encoded {
  const object = objectIn(space)!;
  const { signer = owner.signer, readKey = space.keys.current()!.key, body = bodyOf("items", "forged") } = draft;
  const [own] = [...allChanges(space)].filter((change) => change.seq > 0);
  const header: ChangeHeader = {
    kind: "change",
    space: decodeChange(own!.bytes).header.space,
    object: object.id,
    parents: object.heads.map((parent) => parent.id),
    lamport: lastLamport(space) + 1,
    writer: randomBytes(16),
    seq: 1,
    prev: null,
    author: signer.publicKey,
    time: now(),
    acl: space.acl.head().id,
    keyId: keyIdOf(readKey),
    ...draft.header,
  };
  const headerBytes = encodeHeader(header);
  const keys = { current: () => undefined, byId: () => undefined };
  const epoch = { id: header.keyId, key: readKey };
  const sealed = createBodyOpener(space.id, keys).seal(body, object.idText as ObjectId, epoch, headerBytes);
  return encodeChange(headerBytes, sealed, signer);
}
