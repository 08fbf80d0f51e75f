import { concatBytes, equalBytes } from "../../base/bytes.ts";
import { type CborValue, decodeCbor, encodeCbor } from "../../base/dag-cbor.ts";
import type { Pull, PulledFrame, RemoteState } from "../../space/port/replica.ts";
import { LACKS_NOTHING, type WriterState } from "../../space/port/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";

/** Bytes of a peer that do not follow the protocol. */
export class SessionFault extends Error {}

type Fields = { [key: string]: CborValue };

/** What a space's replica says that it is at. */
export interface SpaceState extends Omit<RemoteState, "vector"> {
  /** False: the peer does not hold the space, or does not serve it to us; then the other fields say nothing. */
  readonly known: boolean;
  /** It has exactly what we said we have; the vector is left out. */
  readonly same: boolean;
  /** It is still fetching what we have. */
  readonly more: boolean;
  readonly aclCount: number;
  /** Whether the space's content is served to us; if not, its ACL log alone is. */
  readonly content: boolean;
  readonly vector: readonly WriterState[];
  /** The vector does not fit into the message, and is to be asked for. */
  readonly rest?: boolean;
}

/** What another replica is at, with the whole of its vector. */
export interface WholeState extends Omit<SpaceState, "vector" | "rest">, RemoteState {
  /** More of the vector was not asked for. */
  readonly isPart?: boolean;
}

/** Part of a vector, for one who has said which parts of a vector it has itself. */
export interface VectorPage {
  /** A bit for each of the parts that were named, from the lowest of the first byte on: 1 where it is the same here. */
  readonly shared: Uint8Array;
  /** Writers of other parts. */
  readonly vector: readonly WriterState[];
  /** It goes on behind the last of these writers. */
  readonly rest: boolean;
}

const NOTHING_PENDING = new Uint8Array(32);
/** Whether records are pending where this digest comes from. */
export const isPending = (digest: Uint8Array): boolean => !equalBytes(digest, NOTHING_PENDING);

/** The answer for a space that is not here, or that the asker may not know of. */
export const NOT_HELD: SpaceState = {
  known: false,
  same: false,
  more: false,
  aclHead: new Uint8Array(32),
  aclCount: 0,
  pending: NOTHING_PENDING,
  content: false,
  lacks: LACKS_NOTHING,
  vector: [],
};

export interface StateRequest {
  readonly space: string;
  readonly aclHead: Uint8Array;
  readonly pending: Uint8Array;
  readonly digest: Uint8Array;
}

export interface PullRequest extends Pull {
  readonly space: string;
}

export const encodeStateRequest = (request: StateRequest): Uint8Array => encodeCbor({ ...request });

export function decodeStateRequest(bytes: Uint8Array): StateRequest {
  const map = fieldsOf(bytes);
  return {
    space: text(map, "space"),
    aclHead: blob(map, "aclHead", 32),
    pending: blob(map, "pending", 32),
    digest: blob(map, "digest", 32),
  };
}

export function encodeState(state: SpaceState): Uint8Array {
  return encodeCbor(state.known ? { ...state, vector: vectorValue(state.vector) } : { known: false });
}

export function decodeState(bytes: Uint8Array): SpaceState {
  const map = fieldsOf(bytes);
  if (map["known"] !== true) return NOT_HELD;
  return {
    known: true,
    same: map["same"] === true,
    more: map["more"] === true,
    aclHead: blob(map, "aclHead", 32),
    aclCount: count(map, "aclCount"),
    pending: blob(map, "pending", 32),
    content: map["content"] === true,
    lacks: blob(map, "lacks", 32),
    vector: readVector(map["vector"]),
    ...(map["rest"] === true ? { rest: true } : {}),
  };
}

/** More of a vector: what stands behind a writer, but for the parts with these hashes. */
export const encodeVectorRequest = (space: string, after: Uint8Array, parts: readonly Uint8Array[]): Uint8Array =>
  encodeCbor({ space, after, parts: concatBytes(...parts) });
export function decodeVectorRequest(bytes: Uint8Array): { space: string; after: Uint8Array; parts: Uint8Array[] } {
  const map = fieldsOf(bytes);
  const parts = digests(map["parts"]);
  if (parts.length > SYNC_BOUNDS.parts) throw new SessionFault("too many parts of a vector");
  return { space: text(map, "space"), after: bound(map["after"]), parts };
}

export const encodeVectorPage = ({ shared, vector, rest }: VectorPage): Uint8Array =>
  encodeCbor({ shared, vector: vectorValue(vector), rest });
export function decodeVectorPage(bytes: Uint8Array): VectorPage {
  const map = fieldsOf(bytes);
  const shared = map["shared"];
  if (!(shared instanceof Uint8Array)) throw new SessionFault("shared is no bytes");
  return { shared: new Uint8Array(shared), vector: readVector(map["vector"]), rest: map["rest"] === true };
}

export function encodePullRequest(request: PullRequest): Uint8Array {
  return encodeCbor({
    space: request.space,
    vector: vectorValue(request.vector),
    ...(request.only ? { only: true } : {}),
    cursor: request.cursor,
    chains: request.chains.map(({ author, writer, ids }) => ({ author, writer, ids: concatBytes(...ids) })),
    held: concatBytes(...request.held),
  });
}

export function decodePullRequest(bytes: Uint8Array): PullRequest {
  const map = fieldsOf(bytes);
  return {
    space: text(map, "space"),
    vector: readVector(map["vector"]),
    ...(map["only"] === true ? { only: true } : {}),
    cursor: count(map, "cursor"),
    chains: list(map, "chains").map((item) => {
      const chain = asFields(item);
      return { author: blob(chain, "author", 32), writer: blob(chain, "writer", 16), ids: digests(chain["ids"]) };
    }),
    held: digests(map["held"]),
  };
}

export function encodePullReply(reply: PulledFrame): Uint8Array {
  return encodeCbor({ ...reply, changes: [...reply.changes], needIds: [...reply.needIds] });
}

export function decodePullReply(bytes: Uint8Array): PulledFrame {
  const map = fieldsOf(bytes);
  return {
    changes: blobs(map, "changes"),
    next: count(map, "next"),
    withheld: count(map, "withheld"),
    needIds: blobs(map, "needIds"),
  };
}

/** `{space, ids}`: these changes, wherever they stand. */
export const encodeWants = (space: string, ids: readonly Uint8Array[]): Uint8Array =>
  encodeCbor({ space, ids: concatBytes(...ids) });

export function decodeWants(bytes: Uint8Array): { space: string; ids: Uint8Array[] } {
  const map = fieldsOf(bytes);
  return { space: text(map, "space"), ids: digests(map["ids"]).slice(0, SYNC_BOUNDS.wants) };
}

/** A list of changes or of ACL records. */
export const encodeItems = (items: readonly Uint8Array[]): Uint8Array => encodeCbor({ items: [...items] });
export const decodeItems = (bytes: Uint8Array): Uint8Array[] => blobs(fieldsOf(bytes), "items");

/** Asks for the ACL log of a space from a record on. */
export const encodeAclRequest = (space: string, from: number): Uint8Array => encodeCbor({ space, from });
export function decodeAclRequest(bytes: Uint8Array): { space: string; from: number } {
  const map = fieldsOf(bytes);
  return { space: text(map, "space"), from: count(map, "from") };
}

export const encodeSpaceName = (space: string): Uint8Array => encodeCbor({ space });
export const decodeSpaceName = (bytes: Uint8Array): string => text(fieldsOf(bytes), "space");

/** Spaces, and what the asker is at in each; answered by one byte each, 1 where the other is at the same. */
export const encodeMarks = (marks: readonly (readonly [space: string, mark: Uint8Array])[]): Uint8Array =>
  encodeCbor({ spaces: marks.map(([space]) => space), marks: concatBytes(...marks.map(([, mark]) => mark)) });

export function decodeMarks(bytes: Uint8Array): (readonly [space: string, mark: Uint8Array])[] {
  const map = fieldsOf(bytes);
  const marks = digests(map["marks"]);
  const spaces = list(map, "spaces");
  if (spaces.length !== marks.length || spaces.length > SYNC_BOUNDS.marks)
    throw new SessionFault("a list of marks is torn");
  return spaces.map((space, index) => {
    if (typeof space !== "string") throw new SessionFault("a space is no text");
    return [space, marks[index]!] as const;
  });
}

/** Proof of the guest key that a space is read by. */
export const encodeGuestProof = (space: string, key: Uint8Array, proof: Uint8Array): Uint8Array =>
  encodeCbor({ space, key, proof });
export function decodeGuestProof(bytes: Uint8Array): { space: string; key: Uint8Array; proof: Uint8Array } {
  const map = fieldsOf(bytes);
  return { space: text(map, "space"), key: blob(map, "key", 32), proof: blob(map, "proof", 64) };
}

/** A payload for the members of a space. */
export function decodeSpacePayload(bytes: Uint8Array): { space: string; payload: Uint8Array } {
  const map = fieldsOf(bytes);
  const payload = map["payload"];
  if (!(payload instanceof Uint8Array)) throw new SessionFault("payload is no bytes");
  return { space: text(map, "space"), payload: new Uint8Array(payload) };
}

function vectorValue(vector: readonly WriterState[]): CborValue {
  return vector.map(({ author, writer, seq, count, last, forks }) => [author, writer, seq, count, last, forks]);
}

function readVector(value: CborValue | undefined): WriterState[] {
  if (!Array.isArray(value)) throw new SessionFault("no vector");
  return value.map((item) => {
    if (!Array.isArray(item) || item.length !== 6) throw new SessionFault("a malformed vector");
    const [author, writer, seq, count, last, forks] = item;
    const isCount = (each: CborValue | undefined): each is number => typeof each === "number" && each >= 0;
    if (
      !sized(author, 32) ||
      !sized(writer, 16) ||
      !isCount(seq) ||
      !isCount(count) ||
      count < seq ||
      !sized(last, 32) ||
      !(forks instanceof Uint8Array) ||
      (forks.length !== 0 && forks.length !== 32)
    )
      throw new SessionFault("a malformed vector");
    return { author, writer, seq, count, last, forks };
  });
}

/** Checks that a value is the two fields of a writer, joined, or empty. */
function bound(value: CborValue | undefined): Uint8Array {
  if (!sized(value, 48) && !sized(value, 0)) throw new SessionFault("a malformed place in a vector");
  return value;
}

function fieldsOf(bytes: Uint8Array): Fields {
  try {
    return asFields(decodeCbor(bytes, SYNC_BOUNDS.values));
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) throw new SessionFault(error.message);
    throw error;
  }
}

function asFields(value: CborValue): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array)
    throw new SessionFault("a message is a map");
  return value as Fields;
}

const sized = (value: CborValue | undefined, length: number): value is Uint8Array =>
  value instanceof Uint8Array && value.length === length;

function blob(map: Fields, field: string, length: number): Uint8Array {
  const value = map[field];
  if (!sized(value, length)) throw new SessionFault(`${field} has another length`);
  return value;
}
function text(map: Fields, field: string): string {
  const value = map[field];
  if (typeof value !== "string") throw new SessionFault(`${field} is no text`);
  return value;
}
function count(map: Fields, field: string): number {
  const value = map[field];
  if (typeof value !== "number" || value < 0) throw new SessionFault(`${field} is no count`);
  return value;
}
function list(map: Fields, field: string): CborValue[] {
  const value = map[field];
  if (!Array.isArray(value)) throw new SessionFault(`${field} is no list`);
  return value;
}
/** Copies the bytes, so that keeping one of them does not keep the whole message. */
function blobs(map: Fields, field: string): Uint8Array[] {
  return list(map, field).map((item) => {
    if (!(item instanceof Uint8Array)) throw new SessionFault(`${field} holds something else than bytes`);
    return new Uint8Array(item);
  });
}
function digests(value: CborValue | undefined): Uint8Array[] {
  if (!(value instanceof Uint8Array) || value.length % 32 !== 0) throw new SessionFault("a list of ids is torn");
  return Array.from({ length: value.length / 32 }, (_, index) => value.subarray(index * 32, index * 32 + 32));
}
