import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { inSlices } from "../../base/slices.ts";
import { type AclRecord, decodeAclRecord, saysFirst } from "../record/record.ts";
import { decodeSpaceHeader, type SpaceHeader } from "../record/space-header.ts";
import { applyAclRecord } from "../reducer/reducer.ts";
import { type AclState, emptyAcl } from "../reducer/state.ts";
import { baseOf, chooseBranch } from "./fork.ts";

/** What an ACL log says that this device does not keep. */
export interface OfferedAcl {
  readonly header: SpaceHeader;
  readonly state: AclState;
}

/** Most branches of one log that are looked into. Each costs a replay of what came before it. */
const BRANCHES_MAX = 256;
/**
 * Most records of other accounts that are kept in case an owner's record follows: anybody who ever knew the log's place
 * can have put any number there.
 */
const LOST_MAX = 1024;

/**
 * Judges an ACL log of a space that somebody offers, from its root on. Resolves to undefined when its root is not that
 * space's. Where the log forks, it takes the branch that every member takes (`chooseBranch`). It skips a record that
 * follows none of the records before it, because anybody may have put it there.
 */
export function judgeOfferedAcl(spaceId: SpaceId, records: readonly Uint8Array[]): Promise<OfferedAcl | undefined> {
  return inSlices(judging(spaceId, records));
}

/** One record per step: each costs a signature. */
function* judging(spaceId: SpaceId, offered: readonly Uint8Array[]): Generator<void, OfferedAcl | undefined> {
  const [root] = offered;
  const header = root && headerOfRoot(spaceId, root);
  if (!header) return undefined;
  let state = emptyAcl();
  let records: AclRecord[] = [];
  /** Records of lost branches by id: a later record may follow them and change the decision. */
  const lost = new Map<string, AclRecord>();
  /** Every owner there ever was: a branch in which none of them took part is never chosen. */
  const owners = new Set<string>();
  let branches = 0;

  /** Handles a branch that ends with this record. */
  function* takeBranch(last: AclRecord): Generator<void> {
    const branch = [last];
    let prev = last.prev;
    while (prev && lost.has(bytesToHex(prev))) {
      branch.unshift(lost.get(bytesToHex(prev))!);
      prev = branch[0]!.prev;
    }
    const from = prev;
    const at = from ? records.findIndex(({ id }) => equalBytes(id, from)) : -1;
    if (at < 0) return;
    if (!branch.some(({ author }) => owners.has(bytesToHex(author)))) {
      if (lost.size < LOST_MAX) lost.set(bytesToHex(last.id), last); // an owner's record may follow it
      return;
    }
    if (branches++ >= BRANCHES_MAX) return;
    const [base, candidate] = [emptyAcl(), emptyAcl()];
    for (const record of records.slice(0, at + 1)) {
      yield;
      for (const one of [base, candidate]) applyAclRecord(one, record, header!);
    }
    const firstFault = branch.findIndex((record) => "fault" in applyAclRecord(candidate, record, header!));
    const theirs = firstFault < 0 ? branch : branch.slice(0, firstFault);
    if (theirs.length === 0) return;
    const ours = records.slice(at + 1);
    const wins = chooseBranch(baseOf(base), ours, theirs) === "theirs";
    for (const record of wins ? ours : theirs) lost.set(bytesToHex(record.id), record);
    if (!wins) return;
    for (const { id } of theirs) lost.delete(bytesToHex(id));
    records = [...records.slice(0, at + 1), ...theirs];
    state = candidate;
  }

  for (const bytes of offered) {
    yield;
    const record = decodeAclRecord(bytes);
    if (!record || state.positions.has(bytesToHex(record.id))) continue;
    const isNext = state.head ? record.prev && equalBytes(record.prev, state.head) : !record.prev;
    if (!isNext) yield* takeBranch(record);
    else if (!("fault" in applyAclRecord(state, record, header))) records.push(record);
    if (state.owner) owners.add(bytesToHex(state.owner));
  }
  return state.head ? { header, state } : undefined;
}

/** The header that the first record of an ACL log carries, if the record is that space's root. */
function headerOfRoot(spaceId: SpaceId, bytes: Uint8Array): SpaceHeader | undefined {
  // A place on the network may hold a long log: of all that cannot be its root no signature is verified.
  const record = saysFirst(bytes) ? decodeAclRecord(bytes) : undefined;
  const root = record?.ops[0];
  if (!record || root?.op !== "root") return undefined;
  const encoded = decodeSpaceHeader(root.header);
  if (encoded?.spaceId !== spaceId) return undefined;
  return "fault" in applyAclRecord(emptyAcl(), record, encoded.header) ? undefined : encoded.header;
}

/** Whether the first record of an ACL log is the root of that space; checks its header, signature and ops. */
export const isRootOf = (spaceId: SpaceId, bytes: Uint8Array): boolean => headerOfRoot(spaceId, bytes) !== undefined;
