import { bytesToHex, bytesToUtf8, concatBytes, equalBytes } from "../../base/bytes.ts";
import { changeIdOf } from "../../change/codec/change-stub.ts";
import type { Space } from "../../space/space.ts";
import { pendingDigest } from "../acl-exchange.ts";
import { type Taken, takeIn } from "../intake.ts";
import { PATIENCE_ROUNDS } from "../patience.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import {
  decodeItems,
  decodePullReply,
  decodeState,
  decodeVectorPage,
  encodePullRequest,
  encodeStateRequest,
  encodeVectorRequest,
  encodeWants,
  type PullRequest,
  SessionFault,
  type SpaceState,
} from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";
import {
  byWriter,
  claimedBeyond,
  rangesThatDiffer,
  sameState,
  suspects,
  type VectorPart,
  vectorOf,
  type WriterState,
  writerKey,
} from "./vector.ts";

/** What the remote is at: exactly what we were at when we asked, or what it says. */
export async function askState(remote: RemoteReplica, space: Space): Promise<SpaceState> {
  const { digest, vector } = vectorOf(space);
  const request = encodeStateRequest({
    space: space.id,
    aclHead: space.acl.head().id,
    units: pendingDigest(space),
    digest,
  });
  const state = await wholeState(remote, space, await remote.request(SYNC_KINDS.state, request));
  return state.same ? { ...state, vector } : state;
}

/**
 * A state with the whole of its vector, which may take several messages. Where the two have the same of a writer it is
 * not kept twice; of what differs so much is kept, and the rest is for the next session.
 */
export async function wholeState(remote: RemoteReplica, space: Space, reply: Uint8Array): Promise<SpaceState> {
  const { rest: goesOn = false, ...state } = decodeState(reply);
  if (!goesOn) return state;
  const mine = new Map(vectorOf(space).vector.map((own) => [own.key, own]));
  let different = 0;
  const sharing = (other: WriterState): WriterState => {
    const own = mine.get(writerKey(other.author, other.writer));
    if (own && sameState(own, other)) return own;
    different++;
    return other;
  };
  const vector = state.vector.map(sharing);
  for (let rest: boolean = goesOn; rest; ) {
    const last = vector.at(-1);
    if (!last) throw new SessionFault("a vector that goes on begins with nothing");
    if (different >= SYNC_BOUNDS.writersInAll) return { ...state, vector, isPart: true };
    const after = concatBytes(last.author, last.writer);
    const page = decodeVectorPage(await remote.request(SYNC_KINDS.vector, encodeVectorRequest(space.id, after)));
    const next = page.vector[0];
    if (page.rest && !next) throw new SessionFault("the peer's vector does not end");
    if (next && Buffer.compare(concatBytes(next.author, next.writer), after) <= 0)
      throw new SessionFault("the peer's vector does not go forward");
    for (const other of page.vector) vector.push(sharing(other));
    rest = page.rest;
  }
  return { ...state, vector };
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
 * Gets all that the remote has and we lack, frame by frame, each durable before the one after the next is asked for.
 * `onTaken` is told whenever something came.
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
  const doubtful = new Set<WriterState>(suspects(space, theirs));
  /** What the remote has of a range of writers. */
  const pullRange = async ({ range, vector }: VectorPart): Promise<void> => {
    const chains = chainsOf(
      space,
      vector.filter((state) => doubtful.has(state)),
    );
    let request: PullRequest = { space: space.id, vector, range, cursor: 0, chains, held };
    const ask = (): Promise<Uint8Array> => remote.request(SYNC_KINDS.pull, encodePullRequest(request));
    let chainAsks = 0;
    for (let asked = ask(); ; ) {
      const reply = decodePullReply(await asked);
      if (reply.needIds.length > 0) {
        const isAgain = request.chains.length > 0 && reply.needIds.every((key) => hasChain(request, key));
        if (isAgain || ++chainAsks > SYNC_BOUNDS.chainAsks)
          throw new SessionFault("the peer asks for ids that it was given");
        request = { ...request, chains: [...request.chains, ...chainsAsked(space, request, reply.needIds)] };
        asked = ask();
        continue;
      }
      explained += reply.withheld;
      idle++;
      const isLast = reply.next === 0;
      if (!isLast && reply.next <= request.cursor) throw new SessionFault("the peer's frames do not go forward");
      if (!isLast) {
        request = { ...request, cursor: reply.next };
        // The next frame is on its way while this one is taken in.
        asked = ask();
        asked.catch(() => {}); // told when it is waited for
      }
      if (reply.changes.length > 0) enter(await takeIn(space, reply.changes));
      if (junk > SYNC_BOUNDS.junk)
        throw new SessionFault(`the peer sends changes that cannot be kept: ${result.reason}`);
      if (isLast) return;
      if (performance.now() > deadlineMs || idle >= SYNC_BOUNDS.idleFrames) {
        result.cut = true;
        return;
      }
    }
  };
  for (const part of rangesThatDiffer(vectorOf(space).vector, theirs)) {
    idle = 0;
    if (!result.cut) await pullRange(part);
  }
  if (!result.cut) await fetchWanted(remote, space, enter);
  const isLacking = store.unopened.waitingBodies(PATIENCE_ROUNDS) > 0;
  result.missing = result.cut || result.refused > 0 || isLacking || claimedBeyond(space, theirs) > explained;
  return result;
}

const NOTHING = new Uint8Array(0);
/** Which id a remote was asked for last, by space. */
const lastAsked = new WeakMap<RemoteReplica, Map<string, Uint8Array>>();

/**
 * Asks by name for the parents that parked changes wait for, and for missing bodies. What does not fit into one session is
 * begun with in the next.
 */
async function fetchWanted(remote: RemoteReplica, space: Space, enter: (taken: Taken) => void): Promise<void> {
  const last = lastAsked.get(remote) ?? new Map<string, Uint8Array>();
  lastAsked.set(remote, last);
  const asked = new Set<string>();
  /** Answers whether they brought anything. What stands behind the last that was given did not fit: it is asked for again. */
  const ask = async (ids: readonly Uint8Array[]): Promise<boolean> => {
    let isNews = false;
    for (let left = ids; left.length > 0; ) {
      const items = decodeItems(await remote.request(SYNC_KINDS.wants, encodeWants(space.id, left)));
      const given = new Set(items.map((bytes) => bytesToHex(changeIdOf(bytes))));
      const end = left.findLastIndex((id) => given.has(bytesToHex(id))) + 1;
      if (end === 0) break;
      const taken = await takeIn(space, items);
      enter(taken);
      if (taken.fresh + taken.changed + taken.parked > 0) isNews = true;
      left = left.slice(end);
    }
    return isNews;
  };

  for (let idle = 0; idle < SYNC_BOUNDS.idleWants; ) {
    const wants = nextWants(space, last.get(space.id) ?? NOTHING, asked);
    if (wants.length === 0) break;
    for (const id of wants) asked.add(bytesToHex(id));
    last.set(space.id, new Uint8Array(wants.at(-1)!));
    if (!(await ask(wants))) idle++;
  }
  for (const objectId of awaitedTypes(space)) {
    const object = space.engine.object(objectId);
    if (object) await ask(space.engine.store.changes.stubsOf(object.no, SYNC_BOUNDS.wants));
  }
}

/** Types by whose definitions changes wait: of one that was deleted nobody missed the body. */
function awaitedTypes({ engine }: Space): Set<string> {
  const { parked, unopened } = engine.store;
  const names = [
    ...parked.wanted("definition", SYNC_BOUNDS.wants),
    ...unopened.wanted("definition", SYNC_BOUNDS.wants),
  ].map((what) => bytesToUtf8(what) ?? "");
  return new Set(names.map((name) => name.slice(0, name.indexOf("/"))));
}

/** The next ids behind one that are wanted, round and round, but for those asked for already. */
function nextWants(space: Space, behind: Uint8Array, asked: ReadonlySet<string>): Uint8Array[] {
  const wants: Uint8Array[] = [];
  let round = 0;
  for (let at = behind; round < 2; ) {
    const page = wantedBehind(space, at);
    for (const id of page) {
      if (round === 1 && Buffer.compare(id, behind) > 0) return wants;
      if (!asked.has(bytesToHex(id))) wants.push(id);
      if (wants.length === SYNC_BOUNDS.wants) return wants;
    }
    const isEnd = page.length < SYNC_BOUNDS.wants;
    at = isEnd ? NOTHING : page.at(-1)!;
    if (isEnd) round++;
  }
  return wants;
}

/** Parents that parked changes wait for and changes without their bodies, in the order of their ids. */
function wantedBehind({ engine }: Space, after: Uint8Array): Uint8Array[] {
  const { parked, unopened } = engine.store;
  const limit = SYNC_BOUNDS.wants;
  return [...parked.wantedChanges(after, limit), ...unopened.missingBodies(limit, after)]
    .sort((a, b) => Buffer.compare(a, b))
    .slice(0, limit);
}

/** What is here of these writers, newest first, as much of each as fits. */
function chainsOf(space: Space, writers: readonly Pick<WriterState, "author" | "writer">[]) {
  const { changes, sync } = space.engine.store;
  const limit = Math.max(1, Math.floor(SYNC_BOUNDS.chainIds / Math.max(1, writers.length)));
  return writers.map(({ author, writer }) => {
    const row = changes.writer(author, writer);
    return { author, writer, ids: row ? sync.idsOfWriter(row.no, limit).map(({ id }) => id) : [] };
  });
}

const hasChain = (request: PullRequest, key: Uint8Array): boolean =>
  request.chains.some(({ author, writer }) => equalBytes(concatBytes(author, writer), key));

function chainsAsked(space: Space, request: PullRequest, keys: readonly Uint8Array[]) {
  const known = byWriter(request.vector);
  const asked = keys.flatMap((key) => {
    const state = known.get(writerKey(key.subarray(0, 32), key.subarray(32)));
    return state && !hasChain(request, key) ? [state] : [];
  });
  return chainsOf(space, asked);
}
