import { type CborValue, Link } from "../../base/dag-cbor.ts";
import { admitPublicKey, PUBLIC_KEY_BYTES } from "../../crypto/public-key.ts";
import { SIGNATURE_BYTES } from "../../crypto/sign.ts";
import { GRANTABLE, type GrantablePermission, INVITABLE, type InvitablePermission } from "./permission.ts";

/** A read key sealed to one account, or to the holder of an invite's or guest key's secret. */
export interface SealedKey {
  to: Uint8Array;
  box: Uint8Array;
}

/** A new read key: sealed to each account that may read, with the previous keys sealed under it. */
export interface EpochOp {
  keyId: Uint8Array;
  /** Public half of a key derived from the read key: members' metadata is sealed to it. */
  metadataKey: Uint8Array;
  sealed: SealedKey[];
  /** The current key first, then keys of lost branches; empty in the first epoch. */
  previous: { keyId: Uint8Array; sealed: Uint8Array }[];
}

/** The last change accepted from a writer; changes after it do not count. A forked writer has several. */
export interface CutOff {
  writer: Uint8Array;
  seq: number;
  id: Uint8Array;
}

/** What a member publishes to the others about itself: sealed to the metadata key of the epoch it names. */
export interface SealedMetadata {
  keyId: Uint8Array;
  box: Uint8Array;
}

/** What an ACL record does. A record's ops are applied in order, all or none. */
export type AclOp =
  | { op: "root"; header: Uint8Array; epoch: EpochOp }
  | { op: "invite"; key: Uint8Array; mode: "request" }
  | { op: "invite"; key: Uint8Array; mode: "open"; permission: InvitablePermission }
  | { op: "inviteRevoke"; key: Uint8Array }
  | { op: "requestJoin"; invite: Uint8Array; proof: Uint8Array; metadata?: SealedMetadata }
  | { op: "inviteJoin"; invite: Uint8Array; proof: Uint8Array; metadata?: SealedMetadata }
  | { op: "requestAccept"; request: Uint8Array; permission: GrantablePermission }
  | { op: "requestDecline"; request: Uint8Array }
  | { op: "requestCancel"; request: Uint8Array }
  | { op: "permissionChange"; account: Uint8Array; permission: GrantablePermission; cutOffs?: CutOff[] }
  | { op: "accountAdd"; account: Uint8Array; permission: GrantablePermission; metadata?: SealedMetadata }
  | { op: "accountRemove"; account: Uint8Array; cutOffs: CutOff[] }
  | { op: "selfRemove" }
  | { op: "ownershipChange"; account: Uint8Array; oldPermission: GrantablePermission; cutOffs?: CutOff[] }
  | { op: "guestKey"; key: Uint8Array }
  | { op: "guestRevoke" }
  /** Starts an epoch. Its key goes to exactly those who may read. */
  | { op: "readKeyChange"; epoch: EpochOp }
  /** Gives the current key to the accounts that this record admits. */
  | { op: "shareKey"; keyId: Uint8Array; sealed: SealedKey[] }
  | { op: "stopSharing"; cuts: { account: Uint8Array; cutOffs: CutOff[] }[] }
  | { op: "spaceDelete" }
  | { op: "profile"; metadata: SealedMetadata }
  /** The owner puts a proposal, or a record of a lost branch, into the log. */
  | { op: "sequenced"; pending: Uint8Array }
  /** Gives a position to changes that name this record of a lost branch, which can no longer take effect. */
  | { op: "alias"; id: Uint8Array; prev: Uint8Array; clock: number };

export type AclOpKind = AclOp["op"];

/** Bounds on what a record may hold; they are checked before its content is read. */
export const ACL_BOUNDS = {
  recordBytes: 512 << 10,
  ops: 2048,
  sealedKeys: 1100,
  previousKeys: 16,
  cutOffs: 4096,
  metadataBoxBytes: 2048,
} as const;

export function countCutOffs(ops: readonly AclOp[]): number {
  let count = 0;
  for (const op of ops) {
    if (op.op === "stopSharing") for (const cut of op.cuts) count += cut.cutOffs.length;
    else if ("cutOffs" in op && op.cutOffs) count += op.cutOffs.length;
  }
  return count;
}

const KEY_ID_BYTES = 16;
const WRITER_BYTES = 16;

type Map = { [key: string]: CborValue };

/** Reads a map with exactly these fields; a field that ends in `?` may be absent. Throws RangeError. */
export function readMap(value: CborValue | undefined, ...fields: readonly string[]): Map {
  if (
    typeof value !== "object" ||
    value === null ||
    Array.isArray(value) ||
    value instanceof Uint8Array ||
    value instanceof Link
  )
    throw new RangeError("not a map");
  let known = 0;
  for (const field of fields) {
    const optional = field.endsWith("?");
    const name = optional ? field.slice(0, -1) : field;
    if (Object.hasOwn(value, name)) known++;
    else if (!optional) throw new RangeError(`no ${name}`);
  }
  if (Object.keys(value).length !== known) throw new RangeError("unknown fields");
  return value;
}

function readBytes(value: CborValue | undefined, length: number): Uint8Array {
  if (!(value instanceof Uint8Array) || value.length !== length) throw new RangeError(`not ${length} bytes`);
  return value;
}

function readBlob(value: CborValue | undefined, maxBytes: number): Uint8Array {
  if (!(value instanceof Uint8Array) || value.length === 0 || value.length > maxBytes)
    throw new RangeError("not bytes of that size");
  return value;
}

export function readKey(value: CborValue | undefined): Uint8Array {
  const key = readBytes(value, PUBLIC_KEY_BYTES);
  if (!admitPublicKey(key)) throw new RangeError("not an admissible public key");
  return key;
}

export function readLink(value: CborValue | undefined): Uint8Array {
  if (!(value instanceof Link)) throw new RangeError("not a link");
  return value.digest;
}

export function readCount(value: CborValue | undefined, least: number): number {
  if (typeof value !== "number" || value < least) throw new RangeError("not a number from there on");
  return value;
}

export function readList<T>(value: CborValue | undefined, max: number, read: (item: CborValue) => T): T[] {
  if (!Array.isArray(value) || value.length > max) throw new RangeError("not a list of that length");
  return value.map(read);
}

function readOneOf<T extends string>(value: CborValue | undefined, names: readonly T[]): T {
  const known = names.find((name) => name === value);
  if (known === undefined) throw new RangeError("none of the names known");
  return known;
}

const sealedMap = (keys: readonly SealedKey[]): CborValue => keys.map(({ to, box }) => ({ to, box }));
const readSealed = (value: CborValue | undefined): SealedKey[] =>
  readList(value, ACL_BOUNDS.sealedKeys, (item) => {
    const map = readMap(item, "to", "box");
    return { to: readKey(map["to"]), box: readBlob(map["box"], 256) };
  });

const cutOffsMap = (cutOffs: readonly CutOff[]): CborValue =>
  cutOffs.map(({ writer, seq, id }) => ({ writer, seq, id: new Link(id) }));
const readCutOffs = (value: CborValue | undefined): CutOff[] =>
  readList(value, ACL_BOUNDS.cutOffs, (item) => {
    const map = readMap(item, "writer", "seq", "id");
    return { writer: readBytes(map["writer"], WRITER_BYTES), seq: readCount(map["seq"], 1), id: readLink(map["id"]) };
  });

const metadataMap = ({ keyId, box }: SealedMetadata): CborValue => ({ keyId, box });
function readMetadata(value: CborValue | undefined): SealedMetadata {
  const map = readMap(value, "keyId", "box");
  return { keyId: readBytes(map["keyId"], KEY_ID_BYTES), box: readBlob(map["box"], ACL_BOUNDS.metadataBoxBytes) };
}

const epochMap = (epoch: EpochOp): CborValue => ({
  keyId: epoch.keyId,
  metadataKey: epoch.metadataKey,
  sealed: sealedMap(epoch.sealed),
  previous: epoch.previous.map(({ keyId, sealed }) => ({ keyId, sealed })),
});
function readEpoch(value: CborValue | undefined): EpochOp {
  const map = readMap(value, "keyId", "metadataKey", "sealed", "previous");
  return {
    keyId: readBytes(map["keyId"], KEY_ID_BYTES),
    metadataKey: readKey(map["metadataKey"]),
    sealed: readSealed(map["sealed"]),
    previous: readList(map["previous"], ACL_BOUNDS.previousKeys, (item) => {
      const entry = readMap(item, "keyId", "sealed");
      return { keyId: readBytes(entry["keyId"], KEY_ID_BYTES), sealed: readBlob(entry["sealed"], 128) };
    }),
  };
}

/** The form in which a record holds an op. */
export function opMap(op: AclOp): CborValue {
  switch (op.op) {
    case "root":
      return { op: op.op, header: op.header, epoch: epochMap(op.epoch) };
    case "invite":
      return { op: op.op, key: op.key, mode: op.mode, ...(op.mode === "open" ? { permission: op.permission } : {}) };
    case "inviteRevoke":
    case "guestKey":
      return { op: op.op, key: op.key };
    case "requestJoin":
    case "inviteJoin":
      return { op: op.op, invite: op.invite, proof: op.proof, ...metadataField(op.metadata) };
    case "requestAccept":
      return { op: op.op, request: new Link(op.request), permission: op.permission };
    case "requestDecline":
    case "requestCancel":
      return { op: op.op, request: new Link(op.request) };
    case "permissionChange":
      return { op: op.op, account: op.account, permission: op.permission, ...cutOffsField(op.cutOffs) };
    case "accountAdd":
      return { op: op.op, account: op.account, permission: op.permission, ...metadataField(op.metadata) };
    case "accountRemove":
      return { op: op.op, account: op.account, cutOffs: cutOffsMap(op.cutOffs) };
    case "ownershipChange":
      return { op: op.op, account: op.account, oldPermission: op.oldPermission, ...cutOffsField(op.cutOffs) };
    case "selfRemove":
    case "guestRevoke":
    case "spaceDelete":
      return { op: op.op };
    case "readKeyChange":
      return { op: op.op, epoch: epochMap(op.epoch) };
    case "shareKey":
      return { op: op.op, keyId: op.keyId, sealed: sealedMap(op.sealed) };
    case "stopSharing":
      return { op: op.op, cuts: op.cuts.map(({ account, cutOffs }) => ({ account, cutOffs: cutOffsMap(cutOffs) })) };
    case "profile":
      return { op: op.op, metadata: metadataMap(op.metadata) };
    case "sequenced":
      return { op: op.op, pending: op.pending };
    case "alias":
      return { op: op.op, id: new Link(op.id), prev: new Link(op.prev), clock: op.clock };
  }
}

const metadataField = (metadata: SealedMetadata | undefined): Map =>
  metadata ? { metadata: metadataMap(metadata) } : {};
const cutOffsField = (cutOffs: CutOff[] | undefined): Map => (cutOffs ? { cutOffs: cutOffsMap(cutOffs) } : {});

/** Reads an op strictly: only known fields, bounded sizes, admissible keys. Throws RangeError. */
export function readOp(value: CborValue): AclOp {
  const kind = (value as Map | null)?.["op"];
  switch (kind) {
    case "root": {
      const map = readMap(value, "op", "header", "epoch");
      return { op: kind, header: readBlob(map["header"], 1024), epoch: readEpoch(map["epoch"]) };
    }
    case "invite": {
      const map = readMap(value, "op", "key", "mode", "permission?");
      const key = readKey(map["key"]);
      const mode = readOneOf(map["mode"], ["request", "open"]);
      if (mode === "open") return { op: kind, key, mode, permission: readOneOf(map["permission"], INVITABLE) };
      readMap(value, "op", "key", "mode");
      return { op: kind, key, mode };
    }
    case "inviteRevoke":
    case "guestKey":
      return { op: kind, key: readKey(readMap(value, "op", "key")["key"]) };
    case "requestJoin":
    case "inviteJoin": {
      const map = readMap(value, "op", "invite", "proof", "metadata?");
      return {
        op: kind,
        invite: readKey(map["invite"]),
        proof: readBytes(map["proof"], SIGNATURE_BYTES),
        ...readMetadataField(map["metadata"]),
      };
    }
    case "requestAccept": {
      const map = readMap(value, "op", "request", "permission");
      return { op: kind, request: readLink(map["request"]), permission: readOneOf(map["permission"], GRANTABLE) };
    }
    case "requestDecline":
    case "requestCancel":
      return { op: kind, request: readLink(readMap(value, "op", "request")["request"]) };
    case "permissionChange":
    case "accountAdd":
    case "accountRemove":
    case "ownershipChange":
      return readAccountOp(value, kind);
    case "selfRemove":
    case "guestRevoke":
    case "spaceDelete":
      readMap(value, "op");
      return { op: kind };
    case "readKeyChange":
      return { op: kind, epoch: readEpoch(readMap(value, "op", "epoch")["epoch"]) };
    case "shareKey": {
      const map = readMap(value, "op", "keyId", "sealed");
      return { op: kind, keyId: readBytes(map["keyId"], KEY_ID_BYTES), sealed: readSealed(map["sealed"]) };
    }
    case "stopSharing": {
      const cuts = readList(readMap(value, "op", "cuts")["cuts"], ACL_BOUNDS.sealedKeys, (item) => {
        const map = readMap(item, "account", "cutOffs");
        return { account: readKey(map["account"]), cutOffs: readCutOffs(map["cutOffs"]) };
      });
      return { op: kind, cuts };
    }
    case "profile":
      return { op: kind, metadata: readMetadata(readMap(value, "op", "metadata")["metadata"]) };
    case "sequenced":
      return { op: kind, pending: readBlob(readMap(value, "op", "pending")["pending"], ACL_BOUNDS.recordBytes) };
    case "alias": {
      const map = readMap(value, "op", "id", "prev", "clock");
      return { op: kind, id: readLink(map["id"]), prev: readLink(map["prev"]), clock: readCount(map["clock"], 0) };
    }
    default:
      throw new RangeError("an unknown op");
  }
}

type AccountOp = "permissionChange" | "accountAdd" | "accountRemove" | "ownershipChange";

/** Reads an op on one account. */
function readAccountOp(value: CborValue, kind: AccountOp): AclOp {
  switch (kind) {
    case "permissionChange": {
      const map = readMap(value, "op", "account", "permission", "cutOffs?");
      const permission = readOneOf(map["permission"], GRANTABLE);
      return { op: kind, account: readKey(map["account"]), permission, ...readCutOffsField(map["cutOffs"]) };
    }
    case "accountAdd": {
      const map = readMap(value, "op", "account", "permission", "metadata?");
      const permission = readOneOf(map["permission"], GRANTABLE);
      return { op: kind, account: readKey(map["account"]), permission, ...readMetadataField(map["metadata"]) };
    }
    case "accountRemove": {
      const map = readMap(value, "op", "account", "cutOffs");
      return { op: kind, account: readKey(map["account"]), cutOffs: readCutOffs(map["cutOffs"]) };
    }
    case "ownershipChange": {
      const map = readMap(value, "op", "account", "oldPermission", "cutOffs?");
      const oldPermission = readOneOf(map["oldPermission"], GRANTABLE);
      return { op: kind, account: readKey(map["account"]), oldPermission, ...readCutOffsField(map["cutOffs"]) };
    }
  }
}

const readCutOffsField = (value: CborValue | undefined) => (value === undefined ? {} : { cutOffs: readCutOffs(value) });
const readMetadataField = (value: CborValue | undefined) =>
  value === undefined ? {} : { metadata: readMetadata(value) };
