import { bytesToHex, concatBytes, equalBytes } from "../../base/bytes.ts";
import { createRateLimit, type RateLimit } from "../../base/rate-limit.ts";
import { type Refusal, refusalText } from "../../protocol/refusals.ts";
import { changeIdOf, type Pull, type Replica, type Taken, type WriterChain } from "../../space/port/replica.ts";
import { byWriter, type TheirVector, type WriterState, writerKey } from "../../space/port/version-vector.ts";
import { SYNC_BOUNDS } from "./bounds.ts";
import { decodeItems, decodePullReply, encodePullRequest, encodeWants, SessionFault } from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";
import { vectorsToAsk } from "./vector-parts.ts";

export interface Fetched {
  readonly fresh: number;
  readonly changed: number;
  readonly foreignOwn: boolean;
  /** The remote claims changes that it did not give and that are not held back here, or bodies are missing. */
  readonly missing: boolean;
  readonly refused: number;
  /** How many of those were refused because the space's quota had no room. */
  readonly crowded: number;
  /** Why the first change was refused that will never count, or that had no room. */
  readonly refusal: Refusal | undefined;
  /** Not everything was asked for: the deadline came first. */
  readonly brokenOff: boolean;
}

interface FetchOptions {
  /** Whether to break off; the next session fetches what is then missing. */
  readonly isOver?: () => boolean;
  /** Called whenever something came. */
  readonly onTaken?: (taken: Taken) => void;
}

/**
 * How many more frames of refused changes each space takes. Peers may leave out the changes that they are told are held
 * here; one that sends them all the same is not asked for ever. A frame that brings anything else is not counted.
 */
const junkFrames = new WeakMap<Replica, RateLimit>();
function spendJunkFrame(replica: Replica): boolean {
  const limit =
    junkFrames.get(replica) ??
    createRateLimit({ nowMs: () => performance.now() }, { burst: SYNC_BOUNDS.junkFrames, perSecond: 1 / 60 });
  junkFrames.set(replica, limit);
  return limit.take("") === 0;
}

/** What a session has brought so far. */
function createTally(replica: Replica, onTaken: (taken: Taken) => void) {
  const sums = {
    fresh: 0,
    changed: 0,
    refused: 0,
    crowded: 0,
    foreignOwn: false,
    refusal: undefined as Refusal | undefined,
  };
  /** Frames in a row that brought nothing; changes that cannot be kept; changes that are known without being stored. */
  let idle = 0;
  let junk = 0;
  let isTired = false;
  let explained = 0;
  return {
    sums,
    enter(taken: Taken): void {
      sums.fresh += taken.fresh;
      sums.changed += taken.changed;
      sums.refused += taken.refused;
      sums.crowded += taken.crowded;
      sums.refusal ??= taken.refusal;
      sums.foreignOwn ||= taken.foreignOwn;
      junk += taken.quarantined + taken.refused + taken.strange;
      if (isNews(taken)) idle = 0;
      else if (taken.quarantined > 0 && !spendJunkFrame(replica)) isTired = true;
      explained += taken.parked + taken.quarantined;
      onTaken(taken);
    },
    /** A frame came; so many changes were left out of it because they are held here. */
    frame(withheld: number): void {
      idle++;
      explained += withheld;
    },
    begin(): void {
      idle = 0;
    },
    isIdle: (): boolean => idle >= SYNC_BOUNDS.idleFrames,
    checkJunk(): void {
      if (!isTired && junk <= SYNC_BOUNDS.junk) return;
      const why = sums.refusal ? `: ${refusalText(sums.refusal)}` : "";
      throw new SessionFault(`the peer sends changes that cannot be kept${why}`);
    },
    explained: (): number => explained,
  };
}
type Tally = ReturnType<typeof createTally>;

const isNews = ({ fresh, changed, parked }: Taken): boolean => fresh + changed + parked > 0;

/**
 * Gets all that the remote has and we lack. While one frame is taken in, the next is on its way; each is durable before the
 * one after the next is asked for.
 */
export async function fetchMissing(
  remote: RemoteReplica,
  replica: Replica,
  theirs: TheirVector,
  options: FetchOptions = {},
): Promise<Fetched> {
  const { isOver = () => false, onTaken = () => {} } = options;
  const tally = createTally(replica, onTaken);
  const held = replica.held(SYNC_BOUNDS.held);
  const doubtful = new Set<WriterState>(replica.suspects(theirs));
  let brokenOff = false;
  for (const asked of vectorsToAsk(replica.vector(), theirs)) {
    if (brokenOff) break;
    const chains = chainsOf(
      replica,
      asked.vector.filter((state) => doubtful.has(state)),
    );
    brokenOff = await pullLacking({ remote, replica, tally, isOver }, { ...asked, cursor: 0, chains, held });
  }
  if (!brokenOff) await fetchWanted(remote, replica, tally);
  const { sums } = tally;
  const missing =
    brokenOff || replica.misses(sums) || replica.lacksBodies() || replica.claimedBeyond(theirs) > tally.explained();
  return { ...sums, missing, brokenOff: brokenOff };
}

interface Pulling {
  readonly remote: RemoteReplica;
  readonly replica: Replica;
  readonly tally: Tally;
  readonly isOver: () => boolean;
}

/** Gets what the remote has beyond a vector. Answers whether it was cut short. */
async function pullLacking({ remote, replica, tally, isOver }: Pulling, first: Pull): Promise<boolean> {
  let request = first;
  const ask = (): Promise<Uint8Array> =>
    remote.request(SYNC_KINDS.pull, encodePullRequest({ space: replica.id, ...request }));
  let chainAsks = 0;
  tally.begin();
  for (let asked = ask(); ; ) {
    const reply = decodePullReply(await asked);
    if (reply.needIds.length > 0) {
      const isAgain = request.chains.length > 0 && reply.needIds.every((key) => hasChain(request, key));
      if (isAgain || ++chainAsks > SYNC_BOUNDS.chainAsks)
        throw new SessionFault("the peer asks for ids that it was given");
      request = { ...request, chains: [...request.chains, ...chainsAsked(replica, request, reply.needIds)] };
      asked = ask();
      continue;
    }
    tally.frame(reply.withheld);
    const isLast = reply.next === 0;
    if (!isLast && reply.next <= request.cursor) throw new SessionFault("the peer's frames do not go forward");
    if (!isLast) {
      request = { ...request, cursor: reply.next };
      // The next frame is on its way while this one is taken in.
      asked = ask();
      asked.catch(() => {}); // its failure shows when it is awaited
    }
    if (reply.changes.length > 0) tally.enter(await replica.take(reply.changes));
    tally.checkJunk();
    if (isLast) return false;
    if (isOver() || tally.isIdle()) return true;
  }
}

const NOTHING = new Uint8Array(0);
/** Which id a remote was asked for last, by space. */
const lastAsked = new WeakMap<RemoteReplica, Map<string, Uint8Array>>();

/**
 * Asks by name for the parents that parked changes wait for, and for missing bodies. The next session begins with what does
 * not fit into this one.
 */
async function fetchWanted(remote: RemoteReplica, replica: Replica, tally: Tally): Promise<void> {
  const last = lastAsked.get(remote) ?? new Map<string, Uint8Array>();
  lastAsked.set(remote, last);
  const asked = new Set<string>();
  /**
   * Answers whether these requests brought anything. Ids after the last change that was given did not fit, and are asked
   * for again.
   */
  const ask = async (ids: readonly Uint8Array[]): Promise<boolean> => {
    let isAnyNews = false;
    for (let left = ids; left.length > 0; ) {
      const items = decodeItems(await remote.request(SYNC_KINDS.wants, encodeWants(replica.id, left)));
      const given = new Set(items.map((bytes) => bytesToHex(changeIdOf(bytes))));
      const end = left.findLastIndex((id) => given.has(bytesToHex(id))) + 1;
      if (end === 0) break;
      const taken = await replica.take(items);
      tally.enter(taken);
      tally.checkJunk();
      if (isNews(taken)) isAnyNews = true;
      left = left.slice(end);
    }
    return isAnyNews;
  };

  for (let idle = 0; idle < SYNC_BOUNDS.idleWants; ) {
    const wants = nextWants(replica, last.get(replica.id) ?? NOTHING, asked);
    if (wants.length === 0) break;
    for (const id of wants) asked.add(bytesToHex(id));
    last.set(replica.id, new Uint8Array(wants.at(-1)!));
    if (!(await ask(wants))) idle++;
  }
  for (const stubs of replica.awaitedStubs(SYNC_BOUNDS.wants)) await ask(stubs);
}

/** The next wanted ids after one, going round once; ids that were asked for already are left out. */
function nextWants(replica: Replica, behind: Uint8Array, asked: ReadonlySet<string>): Uint8Array[] {
  const wants: Uint8Array[] = [];
  let round = 0;
  for (let at = behind; round < 2; ) {
    const page = replica.wanted(at, SYNC_BOUNDS.wants);
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

/** What is here of these writers, as much of each as fits. */
const chainsOf = (replica: Replica, writers: readonly Pick<WriterState, "author" | "writer">[]): WriterChain[] =>
  replica.chainsOf(writers, Math.max(1, Math.floor(SYNC_BOUNDS.chainIds / Math.max(1, writers.length))));

const hasChain = (request: Pull, key: Uint8Array): boolean =>
  request.chains.some(({ author, writer }) => equalBytes(concatBytes(author, writer), key));

function chainsAsked(replica: Replica, request: Pull, keys: readonly Uint8Array[]): WriterChain[] {
  const known = byWriter(request.vector);
  const asked = keys.flatMap((key) => {
    const state = known.get(writerKey(key.subarray(0, 32), key.subarray(32)));
    return state && !hasChain(request, key) ? [state] : [];
  });
  return chainsOf(replica, asked);
}
