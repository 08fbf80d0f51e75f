import { bytesToHex, concatBytes, equalBytes } from "../../base/bytes.ts";
import { canSealTo } from "../../crypto/box.ts";
import { sha256 } from "../../crypto/hash.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { isJoinRequest } from "../record/join-request.ts";
import type { AclOp } from "../record/op.ts";
import { canManage } from "../record/permission.ts";
import type { AclRecord } from "../record/record.ts";
import { sequencedPending } from "../record/signed-parts.ts";
import type { SpaceHeader } from "../record/space-header.ts";
import type { Application, OpSource } from "./application.ts";
import { createJournal } from "./journal.ts";
import { beginEpoch } from "./read-key.ts";
import { applyOp, type RuleOp } from "./rules.ts";
import { type AclState, permissionOf, readKeyHolders, sidePosition } from "./state.ts";

/** Lamports are safe integers: this keeps anybody from using them up by claiming to have seen one far ahead. */
const MAX_CLOCK_STEP = 2 ** 32;
/**
 * Most records of accounts without any right between two of the owner or an admin (ACL-5). The holder of a token can ask,
 * withdraw and ask again. Every member keeps and judges each such record permanently, so only those who manage the space
 * can make room for more.
 */
const MAX_STRANGERS_RECORDS = 1024;
/**
 * What a member that does not manage the space may add to the log between two records of those who do (ACL-10), counted
 * in records and in their acts: every member keeps a record permanently.
 */
const MAX_MEMBER_ACTS = 128;

/** What applying a record has changed. */
export interface AclApplied {
  /** Undoes it; only while no later record is applied. */
  undo(): void;
  /** Ids that changes can name from now on: the record's, and those of lost-branch records that found their position. */
  named: Uint8Array[];
  /** Accounts some of whose earlier changes may no longer count. */
  revoked: Uint8Array[];
}

/**
 * Applies the next record of the log to the state. Returns why it is not a valid next record, and then leaves the state
 * unchanged. Every client judges every record, local or received, by this function alone.
 */
export function applyAclRecord(
  state: AclState,
  record: AclRecord,
  header: SpaceHeader,
): { fault: Refusal } | AclApplied {
  const app = begin(state, header, record.space);
  const named = [record.id];
  const fault =
    recordFault(app, record) ?? countRecord(app, record) ?? opsFault(app, record, named) ?? outcomeFault(app);
  if (fault) {
    app.journal.undo();
    return { fault };
  }
  app.journal.put(state.positions, bytesToHex(record.id), { pos: app.pos, clock: record.clock });
  app.journal.push(state.clocks, record.clock);
  app.journal.assign(state, { head: record.id });
  return { undo: () => app.journal.undo(), named, revoked: app.revoked };
}

/** What a record would have to add to these ops: the accounts that need a key, and which key. Nothing is changed. */
export interface AclDemand {
  /** Accounts that must get the current key. */
  owed: Uint8Array[];
  /** Whether the key must change instead; the new one goes to `holders`. */
  rotationDue: boolean;
  holders: Uint8Array[];
}

/** Tries ops as the next record of `author` would apply them, and returns which keys they call for. */
export function tryAclOps(
  state: AclState,
  header: SpaceHeader,
  record: { space: Uint8Array; author: Uint8Array; clock: number; ops: readonly AclOp[] },
): { fault: Refusal } | AclDemand {
  const app = begin(state, header, record.space);
  try {
    const sourceId = new Uint8Array(32);
    const fault = stateFault(app) ?? countRecord(app, record) ?? opsFault(app, { ...record, id: sourceId }, []);
    if (fault) return { fault };
    const holders = readKeyHolders(state);
    if (holders.size > LIMITS.spaceMembers) return { fault: refusal("acl.space_full") };
    return { owed: [...app.owed.values()], rotationDue: app.rotationDue, holders: [...holders.values()] };
  } finally {
    app.journal.undo();
  }
}

function begin(state: AclState, header: SpaceHeader, space: Uint8Array): Application {
  const pos = state.clocks.length;
  return { state, journal: createJournal(), header, space, pos, owed: new Map(), rotationDue: false, revoked: [] };
}

/** Why the record is not the next link; undefined when it is. */
function recordFault(app: Application, record: AclRecord): Refusal | undefined {
  const { state, pos, header } = app;
  if (pos === 0) {
    if (record.prev !== null) return refusal("acl.not_next");
    return rootFault(app, record);
  }
  if (!record.prev || !equalBytes(record.prev, state.head!)) return refusal("acl.not_next");
  if (!equalBytes(record.space, state.space!)) return refusal("acl.another_space");
  if (header.kind === "onetoone") return refusal("acl.one_to_one_fixed");
  const before = state.clocks[pos - 1]!;
  if (record.clock < before) return refusal("acl.clock_back");
  if (record.clock > before + MAX_CLOCK_STEP) return refusal("acl.clock_ahead");
  if (record.clock > before && !canManage(permissionOf(state, record.author)))
    return refusal("acl.managers_only", { act: "clock" });
  return stateFault(app);
}

/**
 * Counts a record against the bounds of accounts that do not manage the space; a record of one that does resets the
 * counts.
 */
function countRecord(
  app: Application,
  { author, ops }: { readonly author: Uint8Array; readonly ops: readonly AclOp[] },
): Refusal | undefined {
  const { state, journal, pos } = app;
  const role = permissionOf(state, author);
  if (pos === 0) return undefined;
  if (canManage(role)) journal.assign(state, { managedAt: pos, strangersRecords: 0 });
  else if (role !== "none") return ops.every(isLeave) ? undefined : countAct(app, author);
  else if (state.strangersRecords >= MAX_STRANGERS_RECORDS) return refusal("acl.strangers_full");
  else journal.assign(state, { strangersRecords: state.strangersRecords + 1 });
  return undefined;
}

/** An account that has used up its bound can still leave. */
const isLeave = ({ op }: AclOp): boolean => op === "selfRemove";

function countAct({ state, journal }: Application, actor: Uint8Array): Refusal | undefined {
  const name = bytesToHex(actor);
  const member = state.members.get(name)!;
  const count = member.acts?.since === state.managedAt ? member.acts.count : 0;
  if (count >= MAX_MEMBER_ACTS) return refusal("acl.member_full");
  journal.put(state.members, name, { ...member, acts: { since: state.managedAt, count: count + 1 } });
  return undefined;
}

/** Applies a signed op, and counts it where its author does not manage the space. */
function act(app: Application, op: RuleOp, source: OpSource): Refusal | undefined {
  const role = permissionOf(app.state, source.actor);
  const isCounted = role !== "none" && !canManage(role) && !isLeave(op);
  return (isCounted ? countAct(app, source.actor) : undefined) ?? applyOp(app, op, source);
}

function stateFault({ state }: Application): Refusal | undefined {
  return state.deletedAt === undefined ? undefined : refusal("acl.space_deleted");
}

function rootFault(app: Application, record: AclRecord): Refusal | undefined {
  const [root] = record.ops;
  if (root?.op !== "root" || record.ops.length !== 1) return refusal("acl.root_alone");
  if (!equalBytes(sha256(root.header), record.space)) return refusal("acl.root_header");
  if (root.epoch.previous.length > 0) return refusal("acl.root_key_before");
  if (!canSealTo(root.epoch.metadataKey)) return refusal("acl.metadata_key");
  const holders = app.header.kind === "created" ? [app.header.author] : [];
  if (!equalBytes(concatBytes(...root.epoch.sealed.map(({ to }) => to)), concatBytes(...holders)))
    return refusal("acl.root_key_holders");
  return undefined;
}

function opsFault(
  app: Application,
  record: { author: Uint8Array; id: Uint8Array; clock: number; ops: readonly AclOp[] },
  named: Uint8Array[],
): Refusal | undefined {
  if (app.pos === 0) return applyRoot(app, record);
  const source: OpSource = { actor: record.author, sourceId: record.id };
  const repeated = idsTakenTwice(record.ops);
  if (repeated) return repeated;
  for (const op of record.ops) {
    const fault = stateFault(app) ?? opFault(app, op, source, record.clock, named);
    if (fault) return fault;
  }
  return undefined;
}

/** An invite or request has the id of what holds it, so a record or proposal holds at most one of each. */
function idsTakenTwice(ops: readonly AclOp[]): Refusal | undefined {
  const count = (kind: AclOp["op"]) => ops.filter((op) => op.op === kind).length;
  return count("invite") > 1 || count("requestJoin") > 1 ? refusal("acl.one_invite_or_request") : undefined;
}

function opFault(
  app: Application,
  op: AclOp,
  source: OpSource,
  clock: number,
  named: Uint8Array[],
): Refusal | undefined {
  switch (op.op) {
    case "root":
      return refusal("acl.root_again");
    case "sequenced":
      return sequence(app, op.pending, source, clock, named);
    case "alias": {
      if (permissionOf(app.state, source.actor) !== "owner") return refusal("acl.owner_only", { act: "alias" });
      return givePosition(app, op, clock, named);
    }
    default:
      return act(app, op, source);
  }
}

/**
 * The root makes the first members: the space's author becomes its owner; in a one-to-one space both accounts become
 * writers.
 */
function applyRoot(app: Application, record: { author: Uint8Array; ops: readonly AclOp[] }): Refusal | undefined {
  const { state, journal, header } = app;
  const root = record.ops[0]!;
  if (root.op !== "root") return refusal("acl.root_alone");
  const first = header.kind === "onetoone" ? header.pair : [header.author];
  if (header.kind !== "onetoone" && !equalBytes(record.author, header.author)) return refusal("acl.root_author");
  for (const account of first) {
    const permission = header.kind === "onetoone" ? "writer" : "owner";
    const history = [{ pos: 0, permission } as const];
    journal.put(state.members, bytesToHex(account), {
      account,
      status: "active",
      history,
      metadata: undefined,
      joinedBy: [],
      acts: undefined,
    });
  }
  journal.assign(state, { space: app.space, owner: header.kind === "onetoone" ? undefined : header.author });
  beginEpoch(app, root.epoch);
  return undefined;
}

/**
 * The owner gives effect to what somebody else signed: a proposal, or a record of a lost branch. Where the network puts
 * records in order, an author does so with its own proposal, and an admin with a request to join. It keeps its id, so it
 * takes effect only once.
 */
function sequence(
  app: Application,
  bytes: Uint8Array,
  by: OpSource,
  clock: number,
  named: Uint8Array[],
): Refusal | undefined {
  const pending = sequencedPending(bytes);
  const isOwn = pending?.kind === "acl-proposal" && equalBytes(pending.author, by.actor);
  const role = permissionOf(app.state, by.actor);
  const mayCarry = isOwn || role === "owner" || (pending && isJoinRequest(pending) && canManage(role));
  if (!mayCarry) return refusal("acl.owner_only", { act: "sequenced" });
  if (!pending) return refusal("acl.sequenced_malformed");
  if (!equalBytes(pending.space, app.space)) return refusal("acl.sequenced_of_another_space");
  const known = tookEffect(app.state, pending.id);
  if (known) return known;
  const repeated = idsTakenTwice(pending.ops);
  if (repeated) return repeated;
  if (pending.kind === "acl") {
    if (!pending.prev) return refusal("acl.sequenced_root");
    const fault = givePosition(app, { id: pending.id, prev: pending.prev, clock: pending.clock }, clock, named);
    if (fault) return fault;
  } else {
    if (!app.state.positions.has(bytesToHex(pending.basis))) return refusal("acl.basis_unknown");
    app.journal.put(app.state.sequenced, bytesToHex(pending.id), app.pos);
  }
  const source: OpSource = { actor: pending.author, sourceId: pending.id };
  for (const op of pending.ops) {
    const fault = stateFault(app) ?? sequencedOpFault(app, op, source);
    if (fault) return fault;
  }
  return undefined;
}

/** The keys in what is sequenced were made for another state: the account that sequences it makes new ones. */
function sequencedOpFault(app: Application, op: AclOp, source: OpSource): Refusal | undefined {
  switch (op.op) {
    case "root":
    case "sequenced":
    case "alias":
      return refusal("acl.sequenced_nested");
    case "shareKey":
      return undefined;
    case "readKeyChange":
      if (!canManage(permissionOf(app.state, source.actor)))
        return refusal("acl.managers_only", { act: "readKeyChange" });
      app.rotationDue = true;
      return undefined;
    default:
      return act(app, op, source);
  }
}

export function tookEffect(state: AclState, id: Uint8Array): Refusal | undefined {
  const name = bytesToHex(id);
  return state.positions.has(name) || state.sequenced.has(name) ? refusal("acl.took_effect") : undefined;
}

/** Gives a record of a lost branch its position: after the record at which the branch left the log. */
function givePosition(
  app: Application,
  record: { id: Uint8Array; prev: Uint8Array; clock: number },
  clock: number,
  named: Uint8Array[],
): Refusal | undefined {
  const known = tookEffect(app.state, record.id);
  if (known) return known;
  const prev = app.state.positions.get(bytesToHex(record.prev));
  if (!prev) return refusal("acl.prev_unplaced");
  if (record.clock < prev.clock || record.clock > clock) return refusal("acl.clock_misfit");
  const pos = sidePosition(prev.pos, app.pos);
  app.journal.put(app.state.positions, bytesToHex(record.id), { pos, clock: record.clock });
  named.push(record.id);
  return undefined;
}

/** What must hold after every record. */
function outcomeFault(app: Application): Refusal | undefined {
  if (app.rotationDue) return refusal("acl.key_stays");
  if (app.owed.size > 0) return refusal("acl.key_owed");
  return readKeyHolders(app.state).size > LIMITS.spaceMembers ? refusal("acl.space_full") : undefined;
}
