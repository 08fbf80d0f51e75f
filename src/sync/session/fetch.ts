import { bytesToHex, bytesToUtf8, concatBytes, equalBytes } from "../../base/bytes.ts";
import { changeIdOf } from "../../change/change-stub.ts";
import type { Space } from "../../space/space.ts";
import { hasUnits, sequenceUnits, takeAclRecords, takeAclUnits, unitsDigest } from "../acl-exchange.ts";
import { type Taken, takeIn } from "../intake.ts";
import { PATIENCE_ROUNDS } from "../patience.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import {
  decodeItems,
  decodePullReply,
  decodeState,
  encodeAclRequest,
  encodePullRequest,
  encodeSpaceName,
  encodeStateRequest,
  encodeWants,
  type PullRequest,
  SessionFault,
  type SpaceState,
} from "./messages.ts";
import { byWriter, claimedBeyond, suspects, vectorOf, type WriterState, writerKey } from "./vector.ts";

/** The kinds of a session's requests. */
export const SYNC_KINDS = {
  state: "sync.state",
  pull: "sync.pull",
  wants: "sync.wants",
  acl: "sync.acl",
  units: "sync.units",
  back: "sync.back",
  guest: "sync.guest",
  same: "sync.same",
} as const;

/** A replica that answers requests, over whatever connects the two. */
export interface RemoteReplica {
  request(kind: string, body: Uint8Array, options?: { readonly timeoutMs?: number }): Promise<Uint8Array>;
}

/** What the remote is at: exactly what we were at when we asked, or what it says. */
export async function askState(remote: RemoteReplica, space: Space): Promise<SpaceState> {
  const { digest, vector } = vectorOf(space.engine.store);
  const request = encodeStateRequest({
    space: space.id,
    aclHead: space.acl.head().id,
    units: unitsDigest(space),
    digest,
  });
  const state = decodeState(await remote.request(SYNC_KINDS.state, request));
  return state.same ? { ...state, vector } : state;
}

const ACL_PAGES = 64;

/** Gets the records of rights that are not here, and what waits for the owner there. Answers what was wrong with them. */
export async function fetchAcl(remote: RemoteReplica, space: Space, state: SpaceState): Promise<string | undefined> {
  let fault: string | undefined;
  if (!space.acl.at(state.aclHead)) {
    const ours = space.acl.records().length;
    // Behind our own end first; from the start when the two have parted before it.
    fault = state.aclCount > ours ? await takeAclRecords(space, await aclFrom(remote, space.id, ours)) : "gap";
    if (fault === "gap" || !space.acl.at(state.aclHead))
      fault = await takeAclRecords(space, await aclFrom(remote, space.id, 0));
  }
  if (hasUnits(state.units) && !equalBytes(state.units, unitsDigest(space))) {
    const units = decodeItems(await remote.request(SYNC_KINDS.units, encodeSpaceName(space.id)));
    await takeAclUnits(space, units);
  } else await sequenceUnits(space);
  return fault;
}

/** Records of a space's chain of rights from a position to its end, as the remote has them. */
export async function aclFrom(remote: RemoteReplica, spaceId: string, from: number): Promise<Uint8Array[]> {
  const chain: Uint8Array[] = [];
  for (let page = 0; page < ACL_PAGES; page++) {
    const request = encodeAclRequest(spaceId, from + chain.length);
    const records = decodeItems(await remote.request(SYNC_KINDS.acl, request));
    if (records.length === 0) break;
    if (records.length > SYNC_BOUNDS.aclRecords) throw new SessionFault("too many records of rights in one message");
    chain.push(...records);
  }
  return chain;
}

export interface Fetched {
  fresh: number;
  changed: number;
  foreignOwn: boolean;
  /** The remote claims changes that it neither gave nor that are held back here, or bodies are missing. */
  missing: boolean;
  refused: number;
  /** Why the first of those was refused that will never count, or have no room. */
  reason: string | undefined;
  /** Not everything was asked for: the deadline came first. */
  cut: boolean;
}

/**
 * Gets all that the remote has and we lack, frame by frame, each durable before the next is asked for. `advanced` is told
 * whenever something came.
 */
export async function fetchMissing(
  remote: RemoteReplica,
  space: Space,
  theirs: readonly WriterState[],
  options: { readonly deadlineMs?: number | undefined; readonly onTaken?: (taken: Taken) => void } = {},
): Promise<Fetched> {
  const { deadlineMs = Number.POSITIVE_INFINITY, onTaken } = options;
  const { store } = space.engine;
  const result: Fetched = {
    fresh: 0,
    changed: 0,
    foreignOwn: false,
    missing: false,
    refused: 0,
    reason: undefined,
    cut: false,
  };
  let explained = 0;
  let idle = 0;
  let junk = 0;
  const enter = (taken: Taken) => {
    result.fresh += taken.fresh;
    result.changed += taken.changed;
    result.refused += taken.refused;
    result.reason ??= taken.reason;
    junk += taken.quarantined + taken.refused + taken.strange;
    if (taken.fresh + taken.changed + taken.parked > 0) idle = 0;
    result.foreignOwn ||= taken.foreignOwn;
    explained += taken.parked + taken.quarantined;
    onTaken?.(taken);
  };
  const held = [...store.parked.ids(SYNC_BOUNDS.held / 2), ...store.parked.quarantinedIds(SYNC_BOUNDS.held / 2)];
  let request: PullRequest = {
    space: space.id,
    vector: vectorOf(store).vector,
    cursor: 0,
    chains: suspects(store, theirs).map((state) => chainOf(space, state)),
    held,
  };
  for (;;) {
    const reply = decodePullReply(await remote.request(SYNC_KINDS.pull, encodePullRequest(request)));
    if (reply.needIds.length > 0) {
      if (request.chains.length > 0 && reply.needIds.every((key) => hasChain(request, key)))
        throw new SessionFault("the peer asks for ids that it was given");
      request = { ...request, chains: [...request.chains, ...chainsAsked(space, request, reply.needIds)] };
      continue;
    }
    explained += reply.withheld;
    idle++;
    if (reply.changes.length > 0) enter(await takeIn(space, reply.changes));
    if (junk > SYNC_BOUNDS.junk) throw new SessionFault(`the peer sends changes that cannot be kept: ${result.reason}`);
    if (reply.next === 0) break;
    if (reply.next <= request.cursor) throw new SessionFault("the peer's frames do not go forward");
    request = { ...request, cursor: reply.next };
    if (performance.now() > deadlineMs || idle >= SYNC_BOUNDS.idleFrames) {
      result.cut = true;
      break;
    }
  }
  if (!result.cut) await fetchWanted(remote, space, enter);
  const isLacking = store.unopened.waitingBodies(PATIENCE_ROUNDS) > 0;
  result.missing = result.cut || result.refused > 0 || isLacking || claimedBeyond(store, theirs) > explained;
  return result;
}

/** Asks by name for the parents that parked changes wait for, and for missing bodies. */
async function fetchWanted(remote: RemoteReplica, space: Space, enter: (taken: Taken) => void): Promise<void> {
  const { parked, unopened, changes } = space.engine.store;
  const asked = new Set<string>();
  /** Answers whether any of them was given. What stands behind the last that was did not fit: it is asked for again. */
  const ask = async (ids: readonly Uint8Array[]): Promise<boolean> => {
    let left = ids.filter((id) => !asked.has(bytesToHex(id)));
    let isGiven = false;
    while (left.length > 0) {
      const items = decodeItems(await remote.request(SYNC_KINDS.wants, encodeWants(space.id, left)));
      const given = new Set(items.map((bytes) => bytesToHex(changeIdOf(bytes))));
      const end = left.findLastIndex((id) => given.has(bytesToHex(id))) + 1;
      for (const id of end > 0 ? left.slice(0, end) : left) asked.add(bytesToHex(id));
      if (end === 0) break;
      isGiven = true;
      enter(await takeIn(space, items));
      left = left.slice(end);
    }
    return isGiven;
  };

  while (await ask(parked.wanted("change", SYNC_BOUNDS.wants)));
  for (const objectId of awaitedTypes(space)) {
    const object = space.engine.object(objectId);
    if (object) await ask(changes.stubsOf(object.no, SYNC_BOUNDS.wants));
  }
  const places = askedTo.get(remote) ?? new Map<string, Uint8Array>();
  askedTo.set(remote, places);
  for (let page = 0; page < SYNC_BOUNDS.bodyPages; page++) {
    const bodies = unopened.missingBodies(SYNC_BOUNDS.wants, places.get(space.id));
    await ask(bodies);
    if (bodies.length < SYNC_BOUNDS.wants) return void places.delete(space.id);
    places.set(space.id, bodies.at(-1)!);
  }
}

/** Where the next session with a peer goes on asking for bodies: more may be missing than one session asks for. */
const askedTo = new WeakMap<RemoteReplica, Map<string, Uint8Array>>();

/** Types by whose definitions changes wait: of one that was deleted nobody missed the body. */
function awaitedTypes({ engine }: Space): Set<string> {
  const { parked, unopened } = engine.store;
  const names = [
    ...parked.wanted("definition", SYNC_BOUNDS.wants),
    ...unopened.wanted("definition", SYNC_BOUNDS.wants),
  ].map((what) => bytesToUtf8(what) ?? "");
  return new Set(names.map((name) => name.slice(0, name.indexOf("/"))));
}

function chainOf(space: Space, { author, writer }: Pick<WriterState, "author" | "writer">) {
  const { changes, sync } = space.engine.store;
  const row = changes.writer(author, writer);
  return { author, writer, ids: row ? sync.idsOfWriter(row.no, SYNC_BOUNDS.chainIds).map(({ id }) => id) : [] };
}

const hasChain = (request: PullRequest, key: Uint8Array): boolean =>
  request.chains.some(({ author, writer }) => equalBytes(concatBytes(author, writer), key));

function chainsAsked(space: Space, request: PullRequest, keys: readonly Uint8Array[]) {
  const known = byWriter(request.vector);
  return keys.flatMap((key) => {
    const state = known.get(writerKey(key.subarray(0, 32), key.subarray(32)));
    return state && !hasChain(request, key) ? [chainOf(space, state)] : [];
  });
}
