/**
 * A peer that does not keep to the rules: it has the keys of whomever the test says, speaks the LAN link with the
 * service's own modules, and answers whatever the test tells it to. Servers are met at their real sync port.
 */
import { readFileSync } from "node:fs";
import type { TLSSocket } from "node:tls";
import { decodeCbor } from "../../../src/base/dag-cbor.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import { type ChangeHeader, encodeChange, encodeHeader } from "../../../src/change/codec/change-codec.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { deriveAccountSecret, deriveAccountSeed } from "../../../src/crypto/account-keys.ts";
import { sharedSecret } from "../../../src/crypto/box.ts";
import { deriveKey } from "../../../src/crypto/derive.ts";
import { sha256 } from "../../../src/crypto/hash.ts";
import { mnemonicToEntropy } from "../../../src/crypto/mnemonic.ts";
import { genesisOfRoot } from "../../../src/space/genesis.ts";
import type { PulledFrame } from "../../../src/space/port/replica.ts";
import { createDeviceCertificate } from "../../../src/sync/lan/device-certificate.ts";
import { dialPeer } from "../../../src/sync/lan/link-socket.ts";
import { type OpenLink, openPeerLink } from "../../../src/sync/lan/peer-link.ts";
import type { LinkKeys } from "../../../src/sync/lan/space-tokens.ts";
import {
  decodeAclRequest,
  decodeItems,
  decodePullRequest,
  decodeState,
  encodeAclRequest,
  encodeItems,
  encodePullReply,
  encodeSpaceName,
  encodeState,
  encodeVectorPage,
  NOT_HELD,
  type SpaceState,
} from "../../../src/sync/session/messages.ts";
import { SYNC_KINDS } from "../../../src/sync/session/remote-replica.ts";
import type { Device } from "../server/devices.ts";
import { type AclWorld, createAccount, createAclWorld } from "../worlds/acl-world.ts";

/** What a hostile peer says that it has of a space. */
export interface Offer {
  aclLog: readonly Uint8Array[];
  pending?: readonly Uint8Array[];
  /** Fields of the state that it lies about. */
  state?: Partial<SpaceState>;
  /** Frames of changes, one a request; the last is the end. A function makes them up. */
  frames?: readonly (readonly Uint8Array[])[] | ((cursor: number) => PulledFrame);
}

type Answer = (body: Uint8Array) => Promise<Uint8Array> | Uint8Array;

export interface HostilePeer extends AsyncDisposable {
  readonly link: OpenLink;
  readonly socket: TLSSocket;
  /** Requests of the server by kind. */
  readonly asked: Map<string, number>;
  /** Answers that take the place of the ordinary ones. */
  readonly answers: Map<string, Answer>;
  readonly offers: Map<string, Offer>;
  /** The server's ACL log. */
  aclLogOf(spaceId: string): Promise<Uint8Array[]>;
  /** Has the server fetch what is offered now, and answers what it is at then. */
  push(spaceId: string, offer: Offer): Promise<SpaceState>;
}

/** The account behind a phrase, with all its secrets. */
export async function accountOfPhrase(mnemonic: string): Promise<Account> {
  const entropy = await mnemonicToEntropy(mnemonic);
  if (!entropy) throw new Error("no phrase");
  return createAccount(await deriveAccountSeed(entropy, 1));
}

/** Keys by which another device of the account is known. */
export const ownKeys = (account: Account): LinkKeys => ({ own: deriveAccountSecret(account.seed, "p2p"), spaces: [] });

/** Keys by which one member of a space is known to another. */
export const memberKeys = (account: Account, other: Uint8Array, spaceId: SpaceId): LinkKeys => ({
  own: randomBytes(32),
  spaces: [{ spaceId, key: deriveKey(sharedSecret(account.seed, other), "link-pair", spaceId) }],
});

/** The port on which a server takes peers. */
export async function syncPortOf(device: Device): Promise<number> {
  return (await device.server.client.get<{ port: number }>("/v1/debug/p2p")).port;
}

/** Dials a server's sync port. Rejects with the handshake's reason when the server wants no link. */
async function dialServer(port: number, account: Account, keys: LinkKeys): Promise<HostilePeer> {
  const certificate = createDeviceCertificate(randomBytes(32));
  const socket = await dialPeer(certificate, "127.0.0.1", port);
  const asked = new Map<string, number>();
  const answers = new Map<string, Answer>();
  const offers = new Map<string, Offer>();
  const identity = { peerId: certificate.peerId, account: account.signer };
  const link = await openPeerLink(socket, "dialler", identity, () => keys, {
    request: (_link, kind, body) => {
      asked.set(kind, (asked.get(kind) ?? 0) + 1);
      const answer = answers.get(kind) ?? ((bytes: Uint8Array) => answerFrom(offers, kind, bytes));
      return Promise.resolve(answer(body));
    },
    notice: () => Promise.resolve(),
    afford: () => Promise.resolve(),
    spacesChanged: () => {},
    closed: () => {},
  });
  return {
    link,
    socket,
    asked,
    answers,
    offers,
    async aclLogOf(spaceId) {
      const aclLog: Uint8Array[] = [];
      for (;;) {
        const page = decodeItems(await link.request(SYNC_KINDS.acl, encodeAclRequest(spaceId, aclLog.length)));
        if (page.length === 0) return aclLog;
        aclLog.push(...page);
      }
    },
    async push(spaceId, offer) {
      offers.set(spaceId, offer);
      for (;;) {
        const state = decodeState(await link.request(SYNC_KINDS.back, encodeSpaceName(spaceId)));
        // A fetch that was under way already has not seen all of this.
        if (!state.more) return state;
      }
    },
    [Symbol.asyncDispose]: async () => {
      link.close("the test ends");
    },
  };
}

/** As `dialServer`, as often as the server needs until it knows the keys. */
export async function meetServer(port: number, account: Account, keys: LinkKeys): Promise<HostilePeer> {
  for (let left = 200; ; left--) {
    try {
      return await dialServer(port, account, keys);
    } catch (error) {
      if (left === 0) throw error;
      await Bun.sleep(50);
    }
  }
}

/** Every request of a session names its space. */
const spaceOf = (body: Uint8Array): string => (decodeCbor(body) as { space: string }).space;

function answerFrom(offers: ReadonlyMap<string, Offer>, kind: string, body: Uint8Array): Uint8Array {
  const offer = offers.get(spaceOf(body));
  switch (kind) {
    case SYNC_KINDS.state:
    case SYNC_KINDS.back:
      return encodeState(offer ? stateOf(offer) : NOT_HELD);
    case SYNC_KINDS.acl:
      return encodeItems(offer?.aclLog.slice(decodeAclRequest(body).from) ?? []);
    case SYNC_KINDS.pending:
      return encodeItems(offer?.pending ?? []);
    case SYNC_KINDS.vector:
      return encodeVectorPage({ shared: new Uint8Array(0), vector: [], rest: false });
    case SYNC_KINDS.pull:
      return encodePullReply(frameOf(offer, decodePullRequest(body).cursor));
    default:
      return encodeItems([]);
  }
}

const stateOf = ({ aclLog, pending, state }: Offer): SpaceState => ({
  known: true,
  same: false,
  more: false,
  aclHead: sha256(aclLog.at(-1)!),
  aclCount: aclLog.length,
  pending: pending && pending.length > 0 ? randomBytes(32) : new Uint8Array(32),
  content: true,
  lacks: new Uint8Array(32),
  vector: [],
  ...state,
});

function frameOf(offer: Offer | undefined, cursor: number): PulledFrame {
  const frames = offer?.frames ?? [];
  if (typeof frames === "function") return frames(cursor);
  const next = cursor + 1 < frames.length ? cursor + 1 : 0;
  return { changes: frames[cursor] ?? [], next, withheld: 0, needIds: [] };
}

/** The owner's view of a space that a server holds, from the server's own log. */
export async function worldOf(peer: HostilePeer, owner: Account, spaceId: string): Promise<AclWorld> {
  const [root, ...rest] = await peer.aclLogOf(spaceId);
  const genesis = root && genesisOfRoot(root);
  if (!genesis) throw new Error("the server gives no ACL log");
  const world = createAclWorld({ owner, genesis });
  for (const bytes of rest) {
    const reason = world.apply(bytes);
    if (reason) throw new Error(reason);
  }
  return world;
}

/** A change as a member of the space might sign it, with whatever is wrong with it. By default the root of an object. */
export function forgeChange(
  world: AclWorld,
  author: Account,
  over: Partial<ChangeHeader> = {},
  sealed?: Uint8Array,
): { id: Uint8Array; bytes: Uint8Array; header: ChangeHeader } {
  const header: ChangeHeader = {
    kind: "root",
    space: world.state.space!,
    object: null,
    parents: [],
    lamport: world.state.clocks.at(-1)! + 1,
    writer: randomBytes(16),
    seq: 1,
    prev: null,
    author: author.signer.publicKey,
    time: 1_800_000_000_000,
    acl: world.state.head!,
    keyId: new Uint8Array(0),
    ...over,
  };
  return { ...encodeChange(encodeHeader(header), sealed, author.signer), header };
}

/** Resident memory of a server, bytes. */
export const memoryOf = ({ server }: Device): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) * 1024;

/** Lines of a server's log that warn, and hold this. */
export const warningsOf = ({ server }: Device, part = ""): string[] =>
  server
    .stderr()
    .split("\n")
    .filter((line) => /^\d{4}\S+ (WARN|ERROR)/.test(line) && line.includes(part));
