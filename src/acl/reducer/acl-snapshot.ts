import { bytesToHex, concatBytes, equalBytes, hexToBytes, utf8ToBytes } from "../../base/bytes.ts";
import { type CborValue, decodeCanonicalCbor, encodingLists, LazyList } from "../../base/dag-cbor.ts";
import { atOnce } from "../../base/slices.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { CutOff, EpochOp, SealedKey } from "../record/op.ts";
import type { Permission } from "../record/permission.ts";
import type { StoredRecord } from "../record/stored-record.ts";
import {
  type AclState,
  type EpochState,
  emptyAcl,
  type MemberState,
  type MemberStatus,
  sidePosition,
  sidePositionParts,
} from "./state.ts";

/**
 * What an ACL log says up to some record, kept beside it, so that opening a space need not judge again what was judged
 * here. It is not a source of truth: it is bound to the bytes of the records and to the rules, and ignored where either
 * differs.
 */

/**
 * Raise this whenever the rules give the same log another meaning, or a state is encoded in another way: then logs are
 * judged again.
 */
const JUDGED_BY = utf8ToBytes("svc/acl-snapshot/v2\0");

const CHECKSUM_BYTES = 32;

type PackedKey = [to: Uint8Array, box: Uint8Array];
type PackedCutOff = [writer: Uint8Array, seq: number, id: Uint8Array];
type PackedCut = [pos: number, cutOffs: PackedCutOff[]];
type PackedPositions = [key: Uint8Array, pos: number][];
type PackedMember = [
  account: Uint8Array,
  status: string,
  history: [pos: number, permission: string][],
  metadata: [keyId: Uint8Array, box: Uint8Array] | null,
  joinedBy: Uint8Array[],
  acts: [since: number, count: number] | null,
];
/** Of what a record holds, only the record's position is kept, because epochs carry the keys of all members. */
type PackedState = {
  members: PackedMember[];
  invites: [key: Uint8Array, id: Uint8Array, author: Uint8Array, permission: string][];
  requests: [id: Uint8Array, account: Uint8Array][];
  epochs: [pos: number, shared: PackedKey[]][];
  cuts: [account: Uint8Array, cuts: PackedCut[]][];
  /** Records of lost branches that found a position, with its two parts as whole numbers. */
  sides: [id: Uint8Array, base: number, sequencedAt: number, clock: number][];
  sequenced: PackedPositions;
  usedKeys: PackedPositions;
  clocks: number[];
  space: Uint8Array;
  owner: Uint8Array | null;
  guest: [key: Uint8Array, author: Uint8Array] | null;
  deletedAt: number | null;
  managedAt: number;
  strangersRecords: number;
};

/** Encodes the state that all of these records have led to. */
export const encodeAclSnapshot = (state: AclState, records: readonly StoredRecord[]): Uint8Array =>
  atOnce(encodingAclSnapshot(state, records));

/** Does the same in steps. */
export function* encodingAclSnapshot(state: AclState, records: readonly StoredRecord[]): Generator<void, Uint8Array> {
  const packed = yield* encodingLists(packState(state));
  return concatBytes(checksumOf(packed, records.slice(0, state.clocks.length)), packed);
}

/**
 * The state after the first of these records; undefined for a snapshot of other records or other rules, or a damaged one.
 */
export function decodeAclSnapshot(bytes: Uint8Array, records: readonly StoredRecord[]): AclState | undefined {
  const packed = bytes.subarray(CHECKSUM_BYTES);
  const checksum = bytes.subarray(0, CHECKSUM_BYTES);
  let read: PackedState;
  try {
    read = decodeCanonicalCbor(packed) as PackedState;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  const count = Array.isArray(read?.clocks) ? read.clocks.length : 0;
  if (count === 0 || count > records.length) return undefined;
  const judged = records.slice(0, count);
  return equalBytes(checksum, checksumOf(packed, judged)) ? unpackState(read, judged) : undefined;
}

function checksumOf(packed: Uint8Array, records: readonly StoredRecord[]): Uint8Array {
  return sha256(concatBytes(JUDGED_BY, sha256(packed), ...records.map(({ id }) => id)));
}

/** The state as PackedState; its long lists are made while they are encoded. */
function packState(state: AclState): Record<keyof PackedState, CborValue | LazyList> {
  const sides = [...state.positions].filter(([, { pos }]) => !Number.isInteger(pos));
  return {
    members: listOf(state.members, ([, member]) => packMember(member)),
    invites: listOf(state.invites, ([, { key, id, author, permission }]) => [key, id, author, permission]),
    requests: listOf(state.requests, ([, { id, account }]) => [id, account]),
    epochs: new LazyList(state.epochs.length, mapped(state.epochs, packEpoch)),
    cuts: listOf(state.revocations, ([name, cuts]) => [
      hexToBytes(name)!,
      cuts.map(
        ({ pos, cutOffs }): PackedCut => [pos, cutOffs.map(({ writer, seq, id }): PackedCutOff => [writer, seq, id])],
      ),
    ]),
    sides: new LazyList(
      sides.length,
      mapped(sides, ([name, { pos, clock }]) => [hexToBytes(name)!, ...sidePositionParts(pos), clock]),
    ),
    sequenced: listOf(state.sequenced, packPosition),
    usedKeys: listOf(state.usedKeys, packPosition),
    clocks: new LazyList(state.clocks.length, state.clocks),
    space: state.space!,
    owner: state.owner ?? null,
    guest: state.guest ? [state.guest.key, state.guest.author] : null,
    deletedAt: state.deletedAt ?? null,
    managedAt: state.managedAt,
    strangersRecords: state.strangersRecords,
  };
}

function listOf<V>(entries: ReadonlyMap<string, V>, pack: (entry: [string, V]) => CborValue): LazyList {
  return new LazyList(entries.size, mapped(entries, pack));
}

function* mapped<E>(entries: Iterable<E>, pack: (entry: E) => CborValue): Generator<CborValue> {
  for (const entry of entries) yield pack(entry);
}

const packEpoch = ({ pos, shared }: EpochState): PackedState["epochs"][number] => [
  pos,
  shared.map(({ to, box }): PackedKey => [to, box]),
];

const packPosition = ([name, pos]: [string, number]): PackedPositions[number] => [hexToBytes(name)!, pos];

const packMember = ({ account, status, history, metadata, joinedBy, acts }: MemberState): PackedMember => [
  account,
  status,
  history.map(({ pos, permission }) => [pos, permission]),
  metadata ? [metadata.keyId, metadata.box] : null,
  [...joinedBy],
  acts ? [acts.since, acts.count] : null,
];

function unpackState(packed: PackedState, records: readonly StoredRecord[]): AclState {
  const state = emptyAcl();
  for (const member of packed.members) state.members.set(bytesToHex(member[0]), unpackMember(member));
  for (const [key, id, author, permission] of packed.invites)
    state.invites.set(bytesToHex(key), { key, id, author, permission: permission as "none" });
  for (const [id, account] of packed.requests) state.requests.set(bytesToHex(id), { id, account });
  const begun = epochsBegunBy(records);
  for (const [pos, shared] of packed.epochs) {
    const epoch = begun(pos);
    state.epochs.push({ pos, epoch, shared: shared.map(([to, box]): SealedKey => ({ to, box })) });
    state.epochPositions.set(bytesToHex(epoch.keyId), pos);
  }
  for (const [account, cuts] of packed.cuts)
    state.revocations.set(
      bytesToHex(account),
      cuts.map(([pos, cutOffs]) => ({
        pos,
        cutOffs: cutOffs.map(([writer, seq, id]): CutOff => ({ writer, seq, id })),
      })),
    );
  unpackPositions(state, packed, records);
  for (const [id, pos] of packed.sequenced) state.sequenced.set(bytesToHex(id), pos);
  for (const [key, pos] of packed.usedKeys) state.usedKeys.set(bytesToHex(key), pos);
  for (const clock of packed.clocks) state.clocks.push(clock);
  state.space = packed.space;
  state.head = records.at(-1)!.id;
  state.owner = packed.owner ?? undefined;
  state.guest = packed.guest ? { key: packed.guest[0], author: packed.guest[1] } : undefined;
  state.deletedAt = packed.deletedAt ?? undefined;
  state.managedAt = packed.managedAt;
  state.strangersRecords = packed.strangersRecords;
  return state;
}

const unpackMember = ([account, status, history, metadata, joinedBy, acts]: PackedMember): MemberState => ({
  account,
  status: status as MemberStatus,
  history: history.map(([pos, permission]) => ({ pos, permission: permission as Permission })),
  metadata: metadata ? { keyId: metadata[0], box: metadata[1] } : undefined,
  joinedBy,
  acts: acts ? { since: acts[0], count: acts[1] } : undefined,
});

/** The position of each record, preceded by those of the lost branches that it gave a position. */
function unpackPositions(state: AclState, { sides, clocks }: PackedState, records: readonly StoredRecord[]): void {
  let next = 0;
  for (const [pos, { id }] of records.entries()) {
    for (; sides[next]?.[2] === pos; next++) {
      const [lost, base, sequencedAt, clock] = sides[next]!;
      state.positions.set(bytesToHex(lost), { pos: sidePosition(base, sequencedAt), clock });
    }
    state.positions.set(bytesToHex(id), { pos, clock: clocks[pos]! });
  }
}

/** Returns a function that gives the epochs that begin at a position, one per call. */
function epochsBegunBy(records: readonly StoredRecord[]): (pos: number) => EpochOp {
  const left = new Map<number, EpochOp[]>();
  return (pos) => {
    let epochs = left.get(pos);
    if (!epochs) {
      const { ops } = records[pos]!.record;
      epochs = ops.flatMap((op) => (op.op === "root" || op.op === "readKeyChange" ? [op.epoch] : []));
      left.set(pos, epochs);
    }
    return epochs.shift()!;
  };
}
