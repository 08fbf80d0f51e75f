import type { RepairCode, RepairFacts } from "../../protocol/repair-words.ts";
import type { ChangeBody } from "./change-body.ts";
import type { DatasetRules } from "./dataset-rules.ts";

/**
 * What the change engine asks of the space's ACL. Positions are indexes into the log of ACL records; a record of a
 * branch that lost stands at a fraction, between the record it followed and the next.
 */
export interface AclView {
  /** The newest record: what a change written now names. */
  head(): { id: Uint8Array; pos: number; clock: number };
  /** Where a record stands, or undefined when it is not here. */
  at(id: Uint8Array): { pos: number; clock: number } | undefined;
  /**
   * Does a change count? Its author must have been able to write at the position it names, and no later record may have
   * cut the writer's chain before `seq`.
   */
  counts(change: { author: Uint8Array; writer: Uint8Array; seq: number; id: Uint8Array; aclPos: number }): boolean;
  /** Whether an account is or ever was a member, or asked to be one. If absent, everybody counts as one. */
  knows?(author: Uint8Array): boolean;
  /**
   * Whether this change, now that it is stored, decides which of its forked writer's changes were accepted before a cut-
   * off.
   */
  decidesCutOff?(change: { author: Uint8Array; writer: Uint8Array; seq: number; id: Uint8Array }): boolean;
}

/** What must be brought in line with the ACL once it has changed, in the same transaction. */
export interface AclConsequences {
  /** Record ids that changes may have waited for. */
  named: readonly Uint8Array[];
  /** Accounts of whose changes some may have ceased to count. */
  revoked: readonly Uint8Array[];
  /** Read keys became known. */
  keys: boolean;
  /** Changes at this position or a later one may have another position now. */
  repositionFrom?: number;
}

/** The read keys of a space that this device holds. */
export interface KeyRing {
  current(): { id: Uint8Array; key: Uint8Array } | undefined;
  byId(id: Uint8Array): Uint8Array | undefined;
}

/**
 * Which rules a body folds under. `missing`: it names a definition that is not here yet, so its change waits;
 * `unknown`: no such dataset is built in and none was named.
 */
type RulesAnswer = { rules: DatasetRules } | { missing: string } | { unknown: true };

export interface RulesRegistry {
  rulesFor(dataset: string, definition: string | undefined): RulesAnswer;
  /**
   * Called with every body as it is folded, whether its change counts or not, and even when its object is deleted: what the
   * body defines is known by its content and stays known. Answers the definitions that changes may have waited for.
   */
  learn?(objectId: string, body: ChangeBody): readonly string[];
  /**
   * Whether a derived object of this type belongs to another object and is deleted with it. No other derived object ever is,
   * whatever stands in the deletion log.
   */
  endsWithItsRoot?(derivedType: string): boolean;
  /**
   * Whether what is learned from a dataset's changes outlives their object: their bodies are then kept for replicas that
   * come later.
   */
  outlives?(dataset: string): boolean;
}

/** Is given the code of what the disk changed and what became of it, and the facts. */
export type OnRepair = (code: RepairCode, facts: RepairFacts) => void;
