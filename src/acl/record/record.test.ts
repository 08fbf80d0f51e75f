import { describe, expect, test } from "bun:test";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { createAclWorld } from "../../../test/support/worlds/acl-world.ts";
import { equalBytes } from "../../base/bytes.ts";
import { decodeCbor, encodeCbor } from "../../base/dag-cbor.ts";
import { randomBytes } from "../../base/random.ts";
import { createSigner } from "../../crypto/sign.ts";
import { signEnvelope } from "../../crypto/signed-envelope.ts";
import { makeEpoch } from "./epoch.ts";
import { ACL_BOUNDS, type AclOp, type AclOpKind, opMap, readOp } from "./op.ts";
import { decodeAclRecord, decodePending, encodeAclProposal, encodeAclRecord } from "./record.ts";

const signer = createSigner(randomBytes(32));
const key = () => createSigner(randomBytes(32)).publicKey;
const cutOffs = () => [{ writer: randomBytes(16), seq: 3, id: randomBytes(32) }];
const metadata = () => ({ keyId: randomBytes(16), box: randomBytes(100) });
const { spaceId } = createAclWorld().genesis;
const epoch = () => makeEpoch(spaceId, randomBytes(32), [key()], [{ id: randomBytes(16), key: randomBytes(32) }]);

/** One op of each kind, with every field it may hold. */
const SAMPLES: Record<AclOpKind, () => AclOp> = {
  root: () => ({ op: "root", header: randomBytes(200), epoch: epoch() }),
  invite: () => ({ op: "invite", key: key(), mode: "open", permission: "reader" }),
  inviteRevoke: () => ({ op: "inviteRevoke", key: key() }),
  requestJoin: () => ({ op: "requestJoin", invite: key(), proof: randomBytes(64), metadata: metadata() }),
  inviteJoin: () => ({ op: "inviteJoin", invite: key(), proof: randomBytes(64) }),
  requestAccept: () => ({ op: "requestAccept", request: randomBytes(32), permission: "writer" }),
  requestDecline: () => ({ op: "requestDecline", request: randomBytes(32) }),
  requestCancel: () => ({ op: "requestCancel", request: randomBytes(32) }),
  permissionChange: () => ({ op: "permissionChange", account: key(), permission: "reader", cutOffs: cutOffs() }),
  accountAdd: () => ({ op: "accountAdd", account: key(), permission: "admin", metadata: metadata() }),
  accountRemove: () => ({ op: "accountRemove", account: key(), cutOffs: cutOffs() }),
  selfRemove: () => ({ op: "selfRemove" }),
  ownershipChange: () => ({ op: "ownershipChange", account: key(), oldPermission: "reader", cutOffs: cutOffs() }),
  guestKey: () => ({ op: "guestKey", key: key() }),
  guestRevoke: () => ({ op: "guestRevoke" }),
  readKeyChange: () => ({ op: "readKeyChange", epoch: epoch() }),
  shareKey: () => ({ op: "shareKey", keyId: randomBytes(16), sealed: [{ to: key(), box: randomBytes(92) }] }),
  stopSharing: () => ({ op: "stopSharing", cuts: [{ account: key(), cutOffs: cutOffs() }] }),
  spaceDelete: () => ({ op: "spaceDelete" }),
  profile: () => ({ op: "profile", metadata: metadata() }),
  sequenced: () => ({ op: "sequenced", pending: randomBytes(300) }),
  alias: () => ({ op: "alias", id: randomBytes(32), prev: randomBytes(32), clock: 7 }),
};
const KINDS = Object.keys(SAMPLES) as AclOpKind[];

const record = (ops: AclOp[]) =>
  encodeAclRecord({ space: randomBytes(32), prev: randomBytes(32), time: 5, clock: 9, ops }, signer);
const proposal = (ops: AclOp[]) =>
  encodeAclProposal({ space: randomBytes(32), basis: randomBytes(32), time: 5, ops }, signer);

/** Signs the given header, whether it is valid or not. */
function signHeader(header: { [key: string]: unknown }, kind: "acl" | "acl-proposal" = "acl"): Uint8Array {
  return signEnvelope(kind, encodeCbor(header as never), signer);
}
const headerOf = (bytes: Uint8Array) => (decodeCbor(bytes) as { h: { [key: string]: unknown } }).h;

describe("codec", () => {
  for (const kind of KINDS) {
    test(`[ACL-12] ${kind} is read back as it was written`, () => {
      const op = SAMPLES[kind]();
      const made = record([op]);
      const read = decodeAclRecord(made.bytes)!;
      expect(encodeCbor(opMap(read.ops[0]!))).toEqual(encodeCbor(opMap(op)));
      expect(equalBytes(read.id, made.id)).toBe(true);
      expect([read.time, read.clock]).toEqual([5, 9]);
      expect(equalBytes(read.author, signer.publicKey)).toBe(true);
    });
    test(`[ACL-12] ${kind} with a field more, or one less, is no op`, () => {
      const map = opMap(SAMPLES[kind]()) as { [key: string]: never };
      expect(() => readOp({ ...map, extra: null })).toThrow(RangeError);
      const required = Object.keys(map).filter((field) => field !== "metadata" && field !== "cutOffs");
      for (const field of required) {
        const { [field]: _left, ...rest } = map;
        expect(() => readOp(rest)).toThrow(RangeError);
      }
    });
  }

  test("[ACL-12] one changed bit makes bytes that are neither this record nor another", () => {
    const rng = createRng(runSeed("acl codec"));
    for (const kind of KINDS) {
      for (const made of [record([SAMPLES[kind]()]), proposal([SAMPLES[kind]()])]) {
        for (let i = 0; i < 60; i++) {
          const bytes = Uint8Array.from(made.bytes);
          bytes[rng.int(0, bytes.length - 1)]! ^= 1 << rng.int(0, 7);
          expect(decodePending(bytes)).toBeUndefined();
        }
      }
    }
  });

  test("[ACL-12] cut, lengthened and spliced bytes are no record", () => {
    const rng = createRng(runSeed("acl splices"));
    const [one, two] = [record([SAMPLES.invite()]).bytes, record([SAMPLES.accountRemove()]).bytes];
    for (let i = 0; i < 300; i++) {
      const at = rng.int(0, one.length - 1);
      expect(decodePending(one.subarray(0, at))).toBeUndefined();
      expect(decodePending(Buffer.concat([one, two.subarray(0, at + 1)]))).toBeUndefined();
      const spliced = Buffer.concat([one.subarray(0, at), two.subarray(rng.int(0, two.length - 1))]);
      if (!spliced.equals(two)) expect(decodePending(spliced)).toBeUndefined();
    }
  });

  test("[ACL-12] random bytes are no record", () => {
    for (let length = 0; length < 400; length++) expect(decodePending(randomBytes(length))).toBeUndefined();
    for (const value of [null, 1, "h", [], {}, { h: null, s: null }, { h: {}, s: randomBytes(64) }])
      expect(decodePending(encodeCbor(value as never))).toBeUndefined();
  });

  test("[ACL-12] a signed header is taken only in its own shape", () => {
    const good = headerOf(record([SAMPLES.selfRemove()]).bytes);
    expect(decodeAclRecord(signHeader(good))).toBeDefined();
    const wrong: { [key: string]: unknown }[] = [
      { ...good, extra: 1 },
      { ...good, v: 2 },
      { ...good, kind: "change" },
      { ...good, ops: [] },
      { ...good, ops: null },
      { ...good, ops: Array.from({ length: ACL_BOUNDS.ops + 1 }, () => ({ op: "selfRemove" })) },
      { ...good, clock: -1 },
      { ...good, clock: "1" },
      { ...good, time: -1 },
      { ...good, author: new Uint8Array(32) },
      { ...good, space: randomBytes(32) },
      { ...good, prev: randomBytes(32) },
      { ...good, basis: good["prev"] },
      { ...good, ops: [{ op: "unheardOf" }] },
      { ...good, ops: ["selfRemove"] },
      { ...good, ops: [null] },
    ];
    for (const header of wrong) expect(decodePending(signHeader(header))).toBeUndefined();
  });

  test("[ACL-12] a signature for one kind is worth nothing for the other", () => {
    const asRecord = headerOf(record([SAMPLES.selfRemove()]).bytes);
    expect(decodePending(signHeader(asRecord, "acl-proposal"))).toBeUndefined();
    const asProposal = headerOf(proposal([SAMPLES.selfRemove()]).bytes);
    expect(decodePending(signHeader(asProposal, "acl-proposal"))?.kind).toBe("acl-proposal");
    expect(decodePending(signHeader(asProposal, "acl"))).toBeUndefined();
    expect(decodeAclRecord(signHeader(asProposal, "acl-proposal"))).toBeUndefined();
  });

  test("[ACL-12] what is too large is not looked at", () => {
    const many = Array.from({ length: ACL_BOUNDS.cutOffs + 1 }, () => cutOffs()[0]!);
    expect(decodePending(record([{ op: "accountRemove", account: key(), cutOffs: many }]).bytes)).toBeUndefined();
    const half = many.slice(0, ACL_BOUNDS.cutOffs / 2 + 1);
    const twice: AclOp[] = [1, 2].map(() => ({ op: "accountRemove", account: key(), cutOffs: half }));
    expect(decodePending(record(twice).bytes)).toBeUndefined();
    expect(
      decodePending(record([{ op: "sequenced", pending: randomBytes(ACL_BOUNDS.recordBytes) }]).bytes),
    ).toBeUndefined();
  });
});
