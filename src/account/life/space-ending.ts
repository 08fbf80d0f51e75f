import type { AclOp } from "../../acl/record/op.ts";
import { decodePending, type PendingRecord } from "../../acl/record/record.ts";
import { rosterMember } from "../../acl/reducer/roster.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { AccountId } from "../../base/ids.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { refusedAs, type SvcError, svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import type { Space } from "../../space/space.ts";
import { ownMember } from "../rows/space-row.ts";

/** How a space ended for this account. Its row keeps it, since the log leaves this device with the space. */
export interface SpaceEnding {
  readonly how: "deleted" | "unshared" | "removed" | "left";
  readonly by: AccountId;
  /** What it was called in the space. */
  readonly name?: string | undefined;
  readonly atMs: number;
}

/** What the row of a space that has ended holds of it. */
export function endedFields({ how, by, name, atMs }: SpaceEnding): JsonObject {
  return { ended: { how, by, ...(name ? { name } : {}), at: { $date: new Date(atMs).toISOString() } } };
}

/** The error for a request to a space that has ended: who ended it and when, as far as its row says. */
export function spaceDeleted(spaceId: string, row: JsonObject): SvcError {
  const ended = row["ended"] as SpaceInfo["ended"];
  return ended ? refusedAs("space.deleted", { spaceId }, deedOf(ended)) : svcError("space.deleted", { spaceId });
}

function deedOf({ how, by, at: { $date: at } }: NonNullable<SpaceInfo["ended"]>): Refusal {
  switch (how) {
    case "deleted":
      return refusal("space.deleted_by", { by, at });
    case "unshared":
      return refusal("space.unshared_by", { by, at });
    case "removed":
      return refusal("space.removed_by", { by, at });
    case "left":
      return refusal("space.left", { at });
  }
}

/**
 * How the log ended an active space for this account, if it did. A log that has not yet reached the record by which this
 * account came ends nothing.
 */
export function endingOf(space: Space): SpaceEnding | undefined {
  const { deletedAt } = space.acl.state;
  if (deletedAt !== undefined) return endingAt(space, deletedAt, "deleted");
  const member = ownMember(space);
  const isOver = member?.status === "removed" || member?.status === "removing";
  const pos = member?.history.at(-1)?.pos;
  return isOver && pos !== undefined && space.role() === "none" ? endingAt(space, pos, "removed") : undefined;
}

/**
 * Who did it in the record at `pos`, and when: the record's author, or the author of the proposal that it gives effect to.
 */
function endingAt(space: Space, pos: number, otherwise: SpaceEnding["how"]): SpaceEnding {
  const record = space.acl.records()[Math.floor(pos)]?.record;
  if (!record) throw new Error("a record of the log is not there");
  for (const pending of [record, ...proposalsIn(record)]) {
    for (const op of pending.ops) {
      const how = howIn(op, pending, space.accountKey);
      if (how) return endingBy(space, pending, how);
    }
  }
  return endingBy(space, record, otherwise);
}

function endingBy(space: Space, { author, time }: PendingRecord, how: SpaceEnding["how"]): SpaceEnding {
  const { metadata } = rosterMember(space.id, space.acl.state, space.keys, author) ?? {};
  return { how, by: accountIdOf(author) as AccountId, name: metadata?.name, atMs: time };
}

function proposalsIn({ ops }: PendingRecord): PendingRecord[] {
  return ops.flatMap((op) => (op.op === "sequenced" ? (decodePending(op.pending) ?? []) : []));
}

function howIn(op: AclOp, { author }: PendingRecord, own: Uint8Array): SpaceEnding["how"] | undefined {
  if (op.op === "spaceDelete") return "deleted";
  if (op.op === "stopSharing") return "unshared";
  if (op.op === "selfRemove" && equalBytes(author, own)) return "left";
  if (op.op === "accountRemove" && equalBytes(op.account, own)) return "removed";
  return undefined;
}
