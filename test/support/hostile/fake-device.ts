/**
 * Another device of an account on the LAN that speaks the protocol by the code's own link, and does with it what the test
 * says. Left alone it is honest: it fetches what the real device has, keeps it in memory and gives it back.
 */
import { bytesToHex } from "../../../src/base/bytes.ts";
import { silentLog } from "../../../src/base/log.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { type Change, decodeChange, isDerivedRoot } from "../../../src/change/codec/change-codec.ts";
import { changeIdOf } from "../../../src/change/codec/change-stub.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { deriveAccountSecret } from "../../../src/crypto/account-keys.ts";
import { byWriter, type WriterState, writerKey } from "../../../src/space/port/version-vector.ts";
import { type LinkManager, startLinkManager } from "../../../src/sync/lan/link-manager.ts";
import type { PeerLink } from "../../../src/sync/lan/peer-link.ts";
import { aclFrom } from "../../../src/sync/session/acl-fetch.ts";
import {
  decodeAclRequest,
  decodePullReply,
  decodePullRequest,
  decodeSpaceName,
  decodeState,
  decodeStateRequest,
  decodeWants,
  encodeItems,
  encodePullReply,
  encodePullRequest,
  encodeState,
  encodeStateRequest,
  NOT_HELD,
  type SpaceState,
} from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";

export interface FakeDevice extends AsyncDisposable {
  /** Changes that it has of the space, by the hex of their ids. */
  readonly held: Map<string, Uint8Array>;
  /** What is to be different from now on. */
  behave(lies: Lies): void;
  /** How often it was asked for its state since `behave`. */
  asked(): number;
  /** Fetches what the real device has. */
  fetch(): Promise<void>;
}

export interface Lies {
  /** What it says of its state instead of the truth. */
  state?(truth: SpaceState, request: { readonly aclHead: Uint8Array; readonly pending: Uint8Array }): SpaceState;
  /** Never answers. */
  silent?: boolean;
  /** Whether it takes in nothing more. */
  lazy?: boolean;
  /** Whether it gives nothing, whatever it is asked for. */
  mean?: boolean;
}

const NOTHING = new Uint8Array(32);

export async function startFakeDevice(account: Account, spaceId: string): Promise<FakeDevice> {
  const held = new Map<string, Uint8Array>();
  let lies: Lies = {};
  let asked = 0;
  let aclHead: Uint8Array = NOTHING;
  let aclLog: Uint8Array[] = [];
  let pending: Uint8Array = NOTHING;
  const manager: LinkManager = await startLinkManager({
    deviceSeed: randomBytes(32),
    account: account.signer,
    log: silentLog,
    port: {
      keys: () => ({ own: deriveAccountSecret(account.seed, "p2p"), spaces: [] }),
      connected: () => {},
      disconnected: () => {},
      spacesChanged: () => {},
    },
  });

  const fetchFrom = async (link: PeerLink): Promise<void> => {
    const request = encodeStateRequest({ space: spaceId, aclHead: NOTHING, pending: NOTHING, digest: NOTHING });
    const theirs = decodeState(await link.request(SYNC_KINDS.state, request));
    ({ aclHead, pending } = theirs);
    aclLog = await aclFrom(link, spaceId, 0);
    const vector = vectorOf(held.values());
    for (let cursor = 0; ; ) {
      const body = encodePullRequest({ space: spaceId, vector, cursor, chains: [], held: [] });
      const reply = decodePullReply(await link.request(SYNC_KINDS.pull, body));
      for (const bytes of reply.changes) held.set(bytesToHex(changeIdOf(bytes)), bytes);
      if (reply.next === 0) return;
      cursor = reply.next;
    }
  };
  const truth = (): SpaceState => ({
    known: true,
    same: false,
    more: false,
    aclHead,
    aclCount: aclLog.length,
    pending,
    content: true,
    lacks: new Uint8Array(32),
    vector: vectorOf(held.values()),
  });
  const never = (): Promise<Uint8Array> => new Promise(() => {});

  manager.onRequest(SYNC_KINDS.state, async (_link, body) => {
    const request = decodeStateRequest(body);
    if (request.space !== spaceId) return encodeState(NOT_HELD);
    asked++;
    if (lies.silent) return never();
    return encodeState(lies.state?.(truth(), request) ?? truth());
  });
  manager.onRequest(SYNC_KINDS.back, async (link, body) => {
    if (decodeSpaceName(body) !== spaceId) return encodeState(NOT_HELD);
    if (lies.silent) return never();
    if (!lies.lazy) await fetchFrom(link);
    return encodeState(lies.state?.(truth(), truth()) ?? truth());
  });
  manager.onRequest(SYNC_KINDS.pull, async (_link, body) => {
    if (lies.silent) return never();
    const theirs = byWriter(decodePullRequest(body).vector);
    const changes = [...held.values()].filter((bytes) => {
      const change = decodeChange(bytes);
      if (isDerivedRoot(change)) return true;
      const { author, writer, seq } = change.header;
      return seq > (theirs.get(writerKey(author, writer))?.seq ?? 0);
    });
    return encodePullReply({ changes: lies.mean ? [] : changes, next: 0, withheld: 0, needIds: [] });
  });
  manager.onRequest(SYNC_KINDS.wants, async (_link, body) => {
    if (lies.silent) return never();
    const found = decodeWants(body).ids.flatMap((id) => held.get(bytesToHex(id)) ?? []);
    return encodeItems(lies.mean ? [] : found);
  });
  manager.onRequest(SYNC_KINDS.acl, async (_link, body) => {
    if (lies.silent) return never();
    return encodeItems(lies.mean ? [] : aclLog.slice(decodeAclRequest(body).from));
  });
  manager.onRequest(SYNC_KINDS.pending, async () => (lies.silent ? never() : encodeItems([])));
  manager.onNotice("sync.changed", async () => {});

  return {
    held,
    behave: (next) => {
      lies = next;
      asked = 0;
    },
    asked: () => asked,
    fetch: async () => {
      for (const link of manager.links()) if (link.own) await fetchFrom(link);
    },
    [Symbol.asyncDispose]: () => manager[Symbol.asyncDispose](),
  };
}

/** What a replica with these changes has, writer by writer; none of them forked. */
export function vectorOf(held: Iterable<Uint8Array>): WriterState[] {
  const newest = new Map<string, Change>();
  for (const bytes of held) {
    const change = decodeChange(bytes);
    if (isDerivedRoot(change)) continue;
    const { author, writer, seq } = change.header;
    const key = writerKey(author, writer);
    if (seq > (newest.get(key)?.header.seq ?? 0)) newest.set(key, change);
  }
  return [...newest.values()]
    .map(({ id, header: { author, writer, seq } }): WriterState => {
      const copies = { author: new Uint8Array(author), writer: new Uint8Array(writer) };
      return { ...copies, seq, count: seq, last: new Uint8Array(id), forks: new Uint8Array(0) };
    })
    .sort((a, b) => Buffer.compare(a.author, b.author) || Buffer.compare(a.writer, b.writer));
}
