import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { AclRecord, EpochOp, Permission } from "./acl-record.ts";
import type { SpaceHeader } from "./space-header.ts";

/** A member's standing over time: append-only, so that what someone wrote while allowed stays valid for ever. */
export interface MemberState {
  account: Uint8Array;
  /** From which position of the chain which permission held, oldest first. */
  history: { pos: number; permission: Permission }[];
}

export interface AclState {
  members: Map<string, MemberState>;
  epochs: { pos: number; epoch: EpochOp }[];
  /** Positions by record id (hex), and each record's clock. */
  positions: Map<string, number>;
  clocks: number[];
  head: Uint8Array | undefined;
}

export function emptyAcl(): AclState {
  return { members: new Map(), epochs: [], positions: new Map(), clocks: [], head: undefined };
}

const WRITERS: ReadonlySet<Permission> = new Set<Permission>(["owner", "admin", "writer"]);

export function canWrite(permission: Permission): boolean {
  return WRITERS.has(permission);
}

/** The permission an account held right after the record at `pos`. */
export function permissionAt(state: AclState, account: Uint8Array, pos: number): Permission {
  const history = state.members.get(bytesToHex(account))?.history ?? [];
  for (let i = history.length - 1; i >= 0; i--) if (history[i]!.pos <= pos) return history[i]!.permission;
  return "none";
}

/**
 * Takes the next record of the chain into the state, or answers why it is no valid next record; the state is untouched
 * then. Every client judges every record by this one function.
 */
export function applyAclRecord(state: AclState, record: AclRecord, header: SpaceHeader): string | undefined {
  const pos = state.clocks.length;
  if (pos === 0 ? record.prev !== null : !state.head || !record.prev || !equalBytes(record.prev, state.head))
    return "it does not follow the chain's head";
  if (pos > 0 && record.clock < state.clocks[pos - 1]!) return "its clock runs backwards";
  for (const op of record.ops) {
    if (pos !== 0 || record.ops.length !== 1) return "only the first record is a root";
    if (header.kind !== "onetoone" && !equalBytes(record.author, header.author))
      return "the root is not its space's author's";
    state.members.set(bytesToHex(record.author), { account: record.author, history: [{ pos, permission: "owner" }] });
    state.epochs.push({ pos, epoch: op.epoch });
  }
  state.positions.set(bytesToHex(record.id), pos);
  state.clocks.push(record.clock);
  state.head = record.id;
  return undefined;
}
