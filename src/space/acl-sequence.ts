import { bytesToHex } from "../base/bytes.ts";
import { type AclContext, type AclMade, type ComposeOptions, composeRecord, opsFaultIn } from "./acl-compose.ts";
import type { AclOp } from "./acl-op.ts";
import { type AclRecord, type AclUnit, decodeAclUnit } from "./acl-record.ts";
import { unitKnown } from "./acl-reducer.ts";

/**
 * What an owner's device makes of a proposal, or of a record of a branch that lost: the record that gives it effect, a
 * reason to forget it, or a reason to keep it for later.
 */
export type Sequenced = { made: AclMade } | { drop: string } | { wait: string };

/**
 * Proposes again what somebody asked for, on the head of the moment. Its author's rights are those of now. A record that
 * can no longer take effect is given a place all the same when `isNamed`: when changes of members name it.
 */
export function sequenceProposal(
  context: AclContext,
  unit: AclUnit,
  isNamed: (recordId: Uint8Array) => boolean,
): Sequenced {
  const known = unitKnown(context.state, unit.id);
  if (known) return { drop: known };
  if (unit.kind === "acl") return sequenceRecord(context, unit, isNamed);
  if (!context.state.positions.has(bytesToHex(unit.basis))) return { wait: "its author knew another chain" };
  const ops: AclOp[] = [{ op: "sequenced", unit: unit.bytes }];
  const fault = opsFaultIn(context, ops);
  return fault ? { drop: fault } : { made: composeRecord(context, ops) };
}

function sequenceRecord(context: AclContext, record: AclRecord, isNamed: (recordId: Uint8Array) => boolean): Sequenced {
  if (!record.prev) return { drop: "a root is not sequenced" };
  if (!context.state.positions.has(bytesToHex(record.prev))) return { wait: "what it followed has no place yet" };
  // Keys of the branch that lost: what was written under them must open for everybody who remains.
  const sideKeys = record.ops.flatMap((op) => {
    const key = op.op === "readKeyChange" && context.keys.byId(op.epoch.keyId);
    return key ? [{ id: op.epoch.keyId, key }] : [];
  });
  const options: ComposeOptions = { sideKeys, rotate: sideKeys.length > 0, minClock: record.clock };
  const alias: AclOp = { op: "alias", id: record.id, prev: record.prev, clock: record.clock };
  const ops = opsAgain(context, record, alias);
  const fault = opsFaultIn(context, ops, options);
  if (!fault) return { made: composeRecord(context, ops, options) };
  if (!isNamed(record.id) || opsFaultIn(context, [alias], options)) return { drop: fault };
  return { made: composeRecord(context, [alias], options) };
}

/** A record as it is, or, when it gave effect to others' units, these and a place for itself. */
function opsAgain(context: AclContext, record: AclRecord, alias: AclOp): AclOp[] {
  if (!record.ops.some((op) => op.op === "sequenced" || op.op === "alias"))
    return [{ op: "sequenced", unit: record.bytes }];
  const inner = record.ops.filter((op) => {
    if (op.op === "alias") return !unitKnown(context.state, op.id);
    const unit = op.op === "sequenced" && decodeAclUnit(op.unit);
    return unit && !unitKnown(context.state, unit.id);
  });
  return [...inner, alias];
}
