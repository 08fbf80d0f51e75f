/**
 * What the convergence test needs of the engine, and nothing more. The adapter over the sources (`replica.ts` beside
 * this file) implements it; the test imports only these types and that adapter's `openWorld`.
 *
 * A world is one space with one object carrying one dataset:
 *   `{name: "items", idRule: "user", dynamic: true, fields: s string, n number, t array, o object, all mutableBy any}`
 * and a second dataset `auto` (`idRule: "auto"`, field `s` string, mutableBy any) for forged record ids.
 * Replicas are separate database files that exchange nothing but the bytes of packets.
 */
import type { DecodedChange, Value } from "../oracle/reference-fold.ts";

export interface WriteOp {
  type: "$set" | "$unset" | "$inc" | "$addToSet" | "$pull";
  path?: string;
  value?: Value;
}
export interface WriteRecord {
  id: string;
  upsert?: boolean;
  ops: WriteOp[];
}

/** Opaque bytes that one replica hands to another: a change or an ACL record. */
export interface Packet {
  /** Content id: the same bytes have the same id everywhere. */
  id: string;
  kind: "change" | "acl";
  bytes: Uint8Array;
}

export type Outcome =
  /** In the graph, and it counts. */
  | "applied"
  /** Known before; nothing happened. */
  | "duplicate"
  /** In the graph, but it does not count: its author had no right. */
  | "discounted"
  /** Kept durably until what it waits for arrives. */
  | "parked"
  /** Invalid by its own bytes, signature, clock or chain: kept out of the graph, others unharmed. */
  | "refused";

interface Verdict {
  id: string;
  outcome: Outcome;
  /** A short machine-readable cause when the outcome is discounted, parked or refused. */
  reason?: string;
}

export interface Replica {
  readonly name: string;
  /** A local write to a dataset (default `items`); resolves once it is durable. */
  write(records: WriteRecord[], dataset?: "items" | "auto"): Promise<void>;
  deleteRecords(ids: string[]): Promise<void>;
  /** Everything this replica holds that can be handed on, parents and ACL records before what needs them. */
  packets(): Promise<Packet[]>;
  /** Takes packets in as they are, in this order. One bad packet never costs the others. One verdict each. */
  ingest(packets: readonly Packet[]): Promise<Verdict[]>;
  /** Row texts of a dataset (default `items`) as stored, tombstones included, ordered by record id. */
  rowTexts(dataset?: "items" | "auto"): Promise<string[]>;
  /** Wipes the projection and folds it again from the changes. */
  rebuild(): Promise<void>;
  /** Closes the database file and opens it again. */
  reopen(): Promise<void>;
  /** The changes of `items` in this replica's graph, opened, in any order. */
  decoded(): Promise<DecodedChange[]>;
  /** Ids of the packets that are parked here. */
  parked(): Promise<string[]>;
  /** Pairs of different changes at one (writer, seq) that this replica has seen. */
  forks(): Promise<number>;
}

export type Forgery =
  | "stranger" // well made and signed by an account that was never in the space
  | "foreign-key" // sealed under a key that is none of the space's epochs
  | "acl-without-right" // by a member's key, at an ACL position where it could not write
  | "wrong-lamport" // one higher than its parents allow
  | "low-lamport" // slipped in before its parents
  | "broken-chain" // `prev` is not the writer's change before it
  | "same-seq" // a second, different change at a (writer, seq) that is taken; otherwise valid
  | "forged-record-id" // on `auto`: creates a record whose id is not the change's
  | "unknown-parent" // a parent that nobody has (see `missing`)
  | "bad-signature" // one bit of the signature flipped
  | "bad-bytes" // does not re-encode identically
  | "bad-text" // holds text that is no UTF-8
  | "other-space"; // belongs to another space

interface ForgedPacket {
  packet: Packet;
  /** For `unknown-parent`: the packet that would make it whole. */
  missing?: Packet;
}

export interface World extends AsyncDisposable {
  /** A further device of the owner's account, with its own database file and its own writer. */
  createReplica(name: string): Promise<Replica>;
  /**
   * A replica of another account that the owner's ACL record lets in with the role of a writer. Absent while the
   * engine cannot add members.
   */
  createMember?(name: string): Promise<Replica>;
  /** An ACL record by the owner that removes the member; its cut-offs are what `at` has accepted from it. */
  removeMember?(member: Replica, at: Replica): Promise<void>;
  /** A packet that is wrong in this one way and right in every other, made with what `base` holds. */
  forge(kind: Forgery, base: Replica): Promise<ForgedPacket>;
}

interface WorldOptions {
  /** How many ops of a record lie between two checkpoints; default the engine's. */
  checkpointEveryOps?: number;
  /** How long a turn folds what others sent; default the engine's. With 0 every row of every change waits for a later one. */
  foldSliceMs?: number;
  /** Directory for the database files. */
  dir: string;
  /** Milliseconds since the epoch; moves with every call. */
  now: () => number;
}
export type OpenWorld = (options: WorldOptions) => Promise<World>;
