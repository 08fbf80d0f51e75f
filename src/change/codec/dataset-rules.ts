import type { AccountId, ObjectId, SpaceId } from "../../base/ids.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { Refusal } from "../../protocol/refusals.ts";
import type { RecordOp } from "./change-body.ts";

/** What a rule may know of the change it judges: its own envelope and immutable facts of creation, nothing else. */
export interface ChangeEnvelope {
  version: string;
  changeId: Uint8Array;
  author: AccountId;
  timeMs: number;
  spaceId: SpaceId;
  objectId: ObjectId;
  /** Author and time of the object's root; absent for a derived object. */
  objectAuthor?: AccountId;
}

export type FieldScope = "synced" | "local" | "derived" | "account";

/** One path set by a stamp: the segments and the value. */
export type Stamp = readonly [segments: readonly string[], value: Json];

/**
 * How a dataset's records fold. Every hook is a pure function of its arguments, so that each device, whatever arrived
 * first, comes to the same verdict. Hooks answer why the record's change or the op is dropped, or undefined.
 */
export interface DatasetRules {
  readonly name: string;
  /**
   * `auto`: ids come from the change that creates; `user`: the caller's; `object`: one record, whose id is the
   * object's, in the collection that all objects of the space share.
   */
  readonly idRule: "auto" | "user" | "object";
  /** With `auto`: the one id that a create may name all the same, since it follows from what is created. */
  derivedId?(ops: readonly RecordOp[], envelope: ChangeEnvelope): string | undefined;
  /** Its changes leave no rows in the history. */
  readonly skipHistory?: boolean;
  /** May this change create the record with this (final) id? */
  refuseCreate?(id: string, ops: readonly RecordOp[], envelope: ChangeEnvelope): Refusal | undefined;
  refuseDelete?(doc: JsonObject, envelope: ChangeEnvelope): Refusal | undefined;
  /** `segments` is the final path of one field, also of each key of a multi-field op. */
  refuseOp?(
    doc: JsonObject,
    segments: readonly string[],
    op: RecordOp,
    creating: boolean,
    envelope: ChangeEnvelope,
  ): Refusal | undefined;
  /** What is applied in place of an op, for values that the change's envelope decides. */
  rewriteOp?(segments: readonly string[], op: RecordOp, envelope: ChangeEnvelope): RecordOp;
  /** Whether an `$unset` at this path takes the objects above it along that it leaves empty. */
  dropsEmptied?(segments: readonly string[]): boolean;
  /** Derived fields to set once the change's ops took effect on the record. */
  stamps?(doc: JsonObject, creating: boolean, envelope: ChangeEnvelope): readonly Stamp[];
  /** Where values of this path live. Absent: all synced. */
  scopeOf?(segments: readonly string[]): FieldScope;
}
