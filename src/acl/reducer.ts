import { bytesToHex, concatBytes, equalBytes } from "../base/bytes.ts";
import { sha256 } from "../crypto/hash.ts";
import { LIMITS } from "../protocol/limits.ts";
import type { Application, OpSource } from "./application.ts";
import { isJoinRequest } from "./join-request.ts";
import { createJournal } from "./journal.ts";
import type { AclOp } from "./op.ts";
import { canManage } from "./permission.ts";
import { beginEpoch } from "./read-key.ts";
import type { AclRecord } from "./record.ts";
import { applyOp } from "./rules.ts";
import { sequencedPending } from "./signed-parts.ts";
import type { SpaceHeader } from "./space-header.ts";
import { type AclState, permissionOf, readKeyHolders, sidePosition } from "./state.ts";

/** Lamports are safe integers: nobody may use them up by claiming to have seen one far ahead. */
const MAX_CLOCK_STEP = 2 ** 32;
/**
 * Records of accounts without any right, between two of the owner or an admin. Whoever holds a token can ask, take back and
 * ask again; each such record is kept and judged by every member for ever, so those who manage the space pay for it.
 */
const MAX_STRANGERS_RECORDS = 1024;

/** What taking a record in has changed. */
export interface AclApplied {
  /** Takes it back; only while nothing was applied after it. */
  undo(): void;
  /** Ids that changes can name from now on: the record's and those of lost branches that found their place. */
  named: Uint8Array[];
  /** Accounts of whose earlier changes some may have ceased to count. */
  cut: Uint8Array[];
}

/**
 * Takes the next record of the chain into the state, or answers why it is no valid next record; the state is untouched
 * then. Every client judges every record, local or received, by this one function.
 */
export function applyAclRecord(
  state: AclState,
  record: AclRecord,
  header: SpaceHeader,
): { fault: string } | AclApplied {
  const app = begin(state, header, record.space);
  const named = [record.id];
  const fault =
    recordFault(app, record) ?? countStrangers(app, record.author) ?? opsFault(app, record, named) ?? outcomeFault(app);
  if (fault) {
    app.journal.undo();
    return { fault };
  }
  app.journal.put(state.positions, bytesToHex(record.id), { pos: app.pos, clock: record.clock });
  app.journal.push(state.clocks, record.clock);
  app.journal.assign(state, { head: record.id });
  return { undo: () => app.journal.undo(), named, cut: app.cut };
}

/** What a record would have to add to these ops: whom to give which key. Nothing is changed. */
export interface AclDemand {
  /** Who is to be given the current key. */
  owed: Uint8Array[];
  /** Whether the key must change instead; then it goes to `holders`. */
  rotationDue: boolean;
  holders: Uint8Array[];
}

/** Tries ops, as the next record of `author` would apply them, and answers what keys they call for. */
export function tryAclOps(
  state: AclState,
  header: SpaceHeader,
  record: { space: Uint8Array; author: Uint8Array; clock: number; ops: readonly AclOp[] },
): { fault: string } | AclDemand {
  const app = begin(state, header, record.space);
  try {
    const sourceId = new Uint8Array(32);
    const fault =
      stateFault(app) ?? countStrangers(app, record.author) ?? opsFault(app, { ...record, id: sourceId }, []);
    if (fault) return { fault };
    const holders = readKeyHolders(state);
    if (holders.size > LIMITS.spaceMembers) return { fault: TOO_MANY };
    return { owed: [...app.owed.values()], rotationDue: app.rotationDue, holders: [...holders.values()] };
  } finally {
    app.journal.undo();
  }
}

const TOO_MANY = `a space has at most ${LIMITS.spaceMembers} members and open invites`;

function begin(state: AclState, header: SpaceHeader, space: Uint8Array): Application {
  const pos = state.clocks.length;
  return { state, journal: createJournal(), header, space, pos, owed: new Map(), rotationDue: false, cut: [] };
}

/** Whether the record is the next link at all. */
function recordFault(app: Application, record: AclRecord): string | undefined {
  const { state, pos, header } = app;
  if (pos === 0) {
    if (record.prev !== null) return "it does not follow the chain's head";
    return rootFault(app, record);
  }
  if (!record.prev || !equalBytes(record.prev, state.head!)) return "it does not follow the chain's head";
  if (!equalBytes(record.space, state.space!)) return "it belongs to another space";
  if (header.kind === "onetoone") return "a one-to-one space takes no record after its root";
  const before = state.clocks[pos - 1]!;
  if (record.clock < before) return "its clock runs backwards";
  if (record.clock > before + MAX_CLOCK_STEP) return "its clock is too far ahead";
  if (record.clock > before && !canManage(permissionOf(state, record.author)))
    return "only the owner and admins move the clock";
  return stateFault(app);
}

/** Counts a record against the bound of those without rights; one of the owner or an admin begins the count anew. */
function countStrangers({ state, journal, pos }: Application, author: Uint8Array): string | undefined {
  const role = permissionOf(state, author);
  if (pos === 0 || (role !== "none" && !canManage(role))) return undefined;
  if (role === "none" && state.strangersRecords >= MAX_STRANGERS_RECORDS)
    return "too many records of accounts without rights came since the owner or an admin last acted";
  journal.assign(state, { strangersRecords: role === "none" ? state.strangersRecords + 1 : 0 });
  return undefined;
}

function stateFault({ state }: Application): string | undefined {
  return state.deletedAt === undefined ? undefined : "the space is deleted";
}

function rootFault(app: Application, record: AclRecord): string | undefined {
  const [root] = record.ops;
  if (root?.op !== "root" || record.ops.length !== 1) return "the first record is a root and nothing else";
  if (!equalBytes(sha256(root.header), record.space)) return "the root carries another space's header";
  if (root.epoch.previous.length > 0) return "no key comes before the first";
  const holders = app.header.kind === "created" ? [app.header.author] : [];
  if (!equalBytes(concatBytes(...root.epoch.sealed.map(({ to }) => to)), concatBytes(...holders)))
    return "the first key is not sealed to the space's author alone";
  return undefined;
}

function opsFault(
  app: Application,
  record: { author: Uint8Array; id: Uint8Array; clock: number; ops: readonly AclOp[] },
  named: Uint8Array[],
): string | undefined {
  if (app.pos === 0) return plantRoot(app, record);
  const source: OpSource = { actor: record.author, sourceId: record.id };
  const repeated = idsTakenTwice(record.ops);
  if (repeated) return repeated;
  for (const op of record.ops) {
    const fault = stateFault(app) ?? opFault(app, op, source, record.clock, named);
    if (fault) return fault;
  }
  return undefined;
}

/** An invite and a request are known by the id of what they stand in, so each stands there once. */
function idsTakenTwice(ops: readonly AclOp[]): string | undefined {
  const count = (kind: AclOp["op"]) => ops.filter((op) => op.op === kind).length;
  return count("invite") > 1 || count("requestJoin") > 1 ? "a record makes one invite or request at most" : undefined;
}

function opFault(
  app: Application,
  op: AclOp,
  source: OpSource,
  clock: number,
  named: Uint8Array[],
): string | undefined {
  switch (op.op) {
    case "root":
      return "only the first record is a root";
    case "sequenced":
      return sequence(app, op.pending, source, clock, named);
    case "alias": {
      if (permissionOf(app.state, source.actor) !== "owner") return "only the owner places records of lost branches";
      return place(app, op, clock, named);
    }
    default:
      return applyOp(app, op, source);
  }
}

/** The root makes the first members: the space's author its owner, or in a one-to-one space both as writers. */
function plantRoot(app: Application, record: { author: Uint8Array; ops: readonly AclOp[] }): string | undefined {
  const { state, journal, header } = app;
  const root = record.ops[0]!;
  if (root.op !== "root") return "the first record is a root and nothing else";
  const first = header.kind === "onetoone" ? header.pair : [header.author];
  if (header.kind !== "onetoone" && !equalBytes(record.author, header.author))
    return "the root is not its space's author's";
  for (const account of first) {
    const permission = header.kind === "onetoone" ? "writer" : "owner";
    const history = [{ pos: 0, permission } as const];
    journal.put(state.members, bytesToHex(account), {
      account,
      status: "active",
      history,
      metadata: undefined,
      joinedBy: [],
    });
  }
  journal.assign(state, { space: app.space, owner: header.kind === "onetoone" ? undefined : header.author });
  beginEpoch(app, root.epoch);
  return undefined;
}

/**
 * The owner gives effect to what somebody else signed: a proposal, or a record of a branch that lost. Its author does the
 * same with its own proposal, and an admin with a request to join, where the network puts records in order: so it keeps its
 * id, and takes effect once.
 */
function sequence(
  app: Application,
  bytes: Uint8Array,
  by: OpSource,
  clock: number,
  named: Uint8Array[],
): string | undefined {
  const pending = sequencedPending(bytes);
  const isOwn = pending?.kind === "acl-proposal" && equalBytes(pending.author, by.actor);
  const role = permissionOf(app.state, by.actor);
  const mayCarry = isOwn || role === "owner" || (pending && isJoinRequest(pending) && canManage(role));
  if (!mayCarry) return "only the owner sequences what others sign";
  if (!pending) return "what is sequenced is neither a record nor a proposal";
  if (!equalBytes(pending.space, app.space)) return "what is sequenced belongs to another space";
  const known = tookEffect(app.state, pending.id);
  if (known) return known;
  const repeated = idsTakenTwice(pending.ops);
  if (repeated) return repeated;
  if (pending.kind === "acl") {
    if (!pending.prev) return "a root is not sequenced";
    const fault = place(app, { id: pending.id, prev: pending.prev, clock: pending.clock }, clock, named);
    if (fault) return fault;
  } else {
    if (!app.state.positions.has(bytesToHex(pending.basis))) return "its author knew another chain";
    app.journal.put(app.state.sequenced, bytesToHex(pending.id), app.pos);
  }
  const source: OpSource = { actor: pending.author, sourceId: pending.id };
  for (const op of pending.ops) {
    const fault = stateFault(app) ?? sequencedOpFault(app, op, source);
    if (fault) return fault;
  }
  return undefined;
}

/** Keys in what is sequenced were made for another state: who sequences it makes new ones. */
function sequencedOpFault(app: Application, op: AclOp, source: OpSource): string | undefined {
  switch (op.op) {
    case "root":
    case "sequenced":
    case "alias":
      return "what is sequenced holds its ops itself";
    case "shareKey":
      return undefined;
    case "readKeyChange":
      if (!canManage(permissionOf(app.state, source.actor))) return "only the owner and admins change the read key";
      app.rotationDue = true;
      return undefined;
    default:
      return applyOp(app, op, source);
  }
}

export function tookEffect(state: AclState, id: Uint8Array): string | undefined {
  const name = bytesToHex(id);
  return state.positions.has(name) || state.sequenced.has(name) ? "it took effect before" : undefined;
}

/** Gives a record of a lost branch its place: after the record that the branch left from. */
function place(
  app: Application,
  record: { id: Uint8Array; prev: Uint8Array; clock: number },
  clock: number,
  named: Uint8Array[],
): string | undefined {
  const known = tookEffect(app.state, record.id);
  if (known) return known;
  const prev = app.state.positions.get(bytesToHex(record.prev));
  if (!prev) return "what it followed has no place yet";
  if (record.clock < prev.clock || record.clock > clock) return "its clock does not fit in";
  const pos = sidePosition(prev.pos, app.pos);
  app.journal.put(app.state.positions, bytesToHex(record.id), { pos, clock: record.clock });
  named.push(record.id);
  return undefined;
}

/** What must hold after a record, whatever it did. */
function outcomeFault(app: Application): string | undefined {
  if (app.rotationDue) return "somebody may no longer read, and the key stays the same";
  if (app.owed.size > 0) return "somebody may read now and is not given the key";
  return readKeyHolders(app.state).size > LIMITS.spaceMembers ? TOO_MANY : undefined;
}
