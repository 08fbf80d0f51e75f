import type { ChangeBody } from "./change-body.ts";
import type { DatasetRules } from "./dataset-rules.ts";

/** What the change engine asks of the space's ACL. Positions are indexes into the chain of ACL records. */
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
export type RulesAnswer = { rules: DatasetRules } | { missing: string } | { unknown: true };

export interface RulesRegistry {
  rulesFor(dataset: string, definition: string | undefined): RulesAnswer;
  /**
   * Told of every body as it is folded, whether its change counts or not and even when its object is deleted: what it
   * defines is known by its content and stays known. Answers the definitions that changes may have waited for.
   */
  learn?(objectId: string, body: ChangeBody): readonly string[];
}
