import type { TLSSocket } from "node:tls";
import type { AccountId, PeerId, SpaceId } from "../../base/ids.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { type Signer, verify } from "../../crypto/sign.ts";
import { peerIdOfSocket } from "./device-certificate.ts";
import { createFrameReader, FRAGMENT_BYTES, HANDSHAKE_BYTES_MAX } from "./framing.ts";
import {
  connectionBinding,
  createFrameSource,
  guestProofBytes,
  type HandshakeContext,
  HandshakeError,
  type HandshakeIdentity,
  isSharing,
  shakeHands,
} from "./handshake.ts";
import { exporterOf } from "./link-socket.ts";
import { createMessageChannel, type MessageHandlers, SILENCE_LIMITS, type SilenceLimits } from "./message-channel.ts";
import { createRematch } from "./rematch.ts";
import type { LinkKeys, LinkRole, Matches } from "./space-tokens.ts";

/** A connection to a device that proved its device key and its account, and that it shares something with us. */
export interface PeerLink {
  readonly peerId: PeerId;
  readonly accountId: AccountId;
  /** Another device of this account. */
  readonly own: boolean;
  /** Whether we dialled it. */
  readonly dialled: boolean;
  /** Spaces of which both hold a key. Whether the peer may have a space's content is for the space's ACL to say. */
  sharedSpaces(): readonly SpaceId[];
  /** Throws `network.unavailable` when the peer is gone, refuses, or does not answer in time. */
  request(kind: string, body: Uint8Array, options?: { readonly timeoutMs?: number }): Promise<Uint8Array>;
  /** Resolves when it was handed to the network. It says nothing of whether the peer took it. */
  notify(kind: string, body: Uint8Array): Promise<void>;
  /**
   * Proves that this device holds a space's guest key. The proof is good on this connection, for this space, from this side
   * alone.
   */
  proveGuest(guest: Signer, spaceId: SpaceId): Uint8Array;
  /** Whether this is such a proof by the peer. */
  isGuestProof(guestKey: Uint8Array, spaceId: SpaceId, proof: Uint8Array): boolean;
  close(reason: string): void;
  /** Aborted when the link is closed. */
  readonly signal: AbortSignal;
}

export interface LinkEvents {
  request(link: PeerLink, kind: string, body: Uint8Array): Promise<Uint8Array> | undefined;
  notice(link: PeerLink, kind: string, body: Uint8Array): Promise<void> | undefined;
  /** Resolves when the account may have so many more tokens made for its questions which spaces are shared. */
  afford(accountId: AccountId, tokens: number): Promise<void>;
  /**
   * The spaces shared with it changed. The link closes itself when nothing is shared any more and no inbox message waits
   * either.
   */
  spacesChanged(link: PeerLink): void;
  closed(link: PeerLink, reason: string): void;
}

export interface OpenLink extends PeerLink {
  /** When the handshake ended. Monotonic. */
  readonly openedAtMs: number;
  /** Compares keys again after ours changed. */
  matchAgain(): Promise<void>;
}

const HANDSHAKE_DEADLINE_MS = 15_000;
/** Reserved for the link itself. */
const MATCH_KIND = "~match";

/**
 * Makes a link of a connected TLS socket. Rejects with a HandshakeError, which says `self` if the peer shows our own device
 * key; the socket is then closed.
 */
export async function openPeerLink(
  socket: TLSSocket,
  role: LinkRole,
  identity: HandshakeIdentity,
  currentKeys: () => LinkKeys,
  events: LinkEvents,
  silence: SilenceLimits = SILENCE_LIMITS,
): Promise<OpenLink> {
  const reader = createFrameReader(HANDSHAKE_BYTES_MAX);
  const frames = createFrameSource(socket, reader, HANDSHAKE_DEADLINE_MS);
  try {
    const remotePeerId = peerIdOfSocket(socket);
    if (remotePeerId === undefined) throw new HandshakeError("bad-certificate");
    if (remotePeerId === identity.peerId) throw new HandshakeError("self");
    const context: HandshakeContext = { role, exporter: exporterOf(socket), remotePeerId };
    const result = await shakeHands(frames, identity, currentKeys(), context);
    reader.setLimit(FRAGMENT_BYTES);
    const binding = connectionBinding(identity.peerId, context);
    const early = frames.detach();
    return attach({ socket, reader, early, role, binding, remotePeerId, result, currentKeys, events, silence });
  } catch (error) {
    frames.detach();
    socket.on("error", () => {}); // what a destroyed socket still says
    socket.destroy();
    throw error;
  }
}

interface Attachment {
  readonly socket: TLSSocket;
  readonly reader: ReturnType<typeof createFrameReader>;
  readonly early: ReturnType<ReturnType<typeof createFrameSource>["detach"]>;
  readonly role: LinkRole;
  readonly binding: Uint8Array;
  readonly remotePeerId: PeerId;
  readonly result: Awaited<ReturnType<typeof shakeHands>>;
  readonly currentKeys: () => LinkKeys;
  readonly events: LinkEvents;
  readonly silence: SilenceLimits;
}

function attach(at: Attachment): OpenLink {
  const { role, events, result, currentKeys } = at;
  const remoteRole: LinkRole = role === "dialler" ? "listener" : "dialler";
  const ended = new AbortController();
  let spaceIds: readonly SpaceId[] = [...result.spaceIds].sort();
  let deaf = false;

  const setMatches = (next: Matches) => {
    const sorted = [...next.spaceIds].sort();
    if (sorted.join() !== spaceIds.join()) {
      spaceIds = sorted;
      events.spacesChanged(link);
    }
    if (!isSharing({ ...next, own: link.own })) link.close("nothing is shared any more");
  };
  const rematch = createRematch({
    ...{ role, binding: at.binding, currentKeys, matched: setMatches },
    afford: (tokens) => events.afford(result.accountId, tokens),
  });

  const handlers: MessageHandlers = {
    request: (kind, body) => {
      if (kind === MATCH_KIND) return rematch.answer(body);
      return deaf ? undefined : events.request(link, kind, body);
    },
    notice: (kind, body) => (deaf ? undefined : events.notice(link, kind, body)),
    closed: (reason) => {
      deaf = true;
      ended.abort();
      events.closed(link, reason);
    },
  };
  const channel = createMessageChannel(at.socket, at.reader, at.early, handlers, at.silence);
  const link: OpenLink = {
    peerId: at.remotePeerId,
    accountId: result.accountId,
    own: result.own,
    dialled: role === "dialler",
    openedAtMs: performance.now(),
    sharedSpaces: () => spaceIds,
    request: channel.request,
    notify: channel.notify,
    proveGuest: (guest, spaceId) => guest.sign("p2p-guest", guestProofBytes(role, at.binding, spaceId)),
    isGuestProof: (guestKey, spaceId, proof) =>
      admitPublicKey(guestKey) &&
      verify(guestKey, "p2p-guest", guestProofBytes(remoteRole, at.binding, spaceId), proof),
    close: channel.close,
    signal: ended.signal,
    matchAgain: () =>
      rematch
        .ask((body) => channel.request(MATCH_KIND, body))
        .catch((error: unknown) => {
          if (!(error instanceof HandshakeError)) throw error;
          link.close("the peer broke the format of tokens");
        }),
  };
  return link;
}
