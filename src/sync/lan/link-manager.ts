import type { TLSSocket } from "node:tls";
import { createAllowance } from "../../base/allowance.ts";
import { bytesToUtf8, utf8ToBytes } from "../../base/bytes.ts";
import type { PeerId, SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createRateLimitedLog } from "../../base/rate-limited-log.ts";
import { systemTimers } from "../../base/timers.ts";
import type { Signer } from "../../crypto/sign.ts";
import { createDeviceCertificate } from "./device-certificate.ts";
import { createDiscovery, type Discovery } from "./discovery.ts";
import { HandshakeError } from "./handshake.ts";
import { dialPeer, type LinkListener, listenForPeers } from "./link-socket.ts";
import type { SilenceLimits } from "./message-channel.ts";
import { createPeerBook, type PeerBook } from "./peer-book.ts";
import { type OpenLink, openPeerLink, type PeerLink } from "./peer-link.ts";
import type { LinkKeys, LinkRole } from "./space-tokens.ts";

/** What the rest of the server lends to the links. */
interface LinkPort {
  /** The keys by which peers recognise what they share; asked for at every connection. */
  keys(): LinkKeys;
  connected(link: PeerLink): void;
  disconnected(link: PeerLink, reason: string): void;
  spacesChanged(link: PeerLink): void;
  /** Another server shows this device's own key. */
  ownKeySeen?(): void;
}

interface OpenedLink {
  readonly link: OpenLink;
  /** Keys have changed since its handshake began: they are to be compared on it. */
  isOutdated(): boolean;
}

/** Answers a request of a peer. If it rejects, the peer gets a failure without a reason. */
type RequestHandler = (link: PeerLink, body: Uint8Array) => Promise<Uint8Array>;
/** Takes a notice of a peer. */
type NoticeHandler = (link: PeerLink, body: Uint8Array) => Promise<void>;

/** `/v1/debug/p2p` (SYNC-1). */
interface LinkDebug {
  readonly peerId: PeerId;
  readonly enabled: boolean;
  readonly listenerStarted: boolean;
  readonly port: number;
  readonly possibility: "possible" | "notpossible" | "restricted";
  readonly state: P2pState;
  readonly peers: readonly {
    readonly peerId: PeerId;
    readonly spaceIds: readonly SpaceId[];
    readonly connected: boolean;
  }[];
}

/** The `p2p` of a sync status. */
type P2pState = "unknown" | "notpossible" | "notconnected" | "connected" | "restricted";

export interface LinkManager extends AsyncDisposable {
  /** Peers connected now. */
  links(): readonly PeerLink[];
  /** Registers who answers requests of a kind (1 to 32 characters, not beginning with `~`). One handler a kind. */
  onRequest(kind: string, handler: RequestHandler): void;
  onNotice(kind: string, handler: NoticeHandler): void;
  /**
   * `port.keys()` says something else now: compares keys with everybody again, and tries those peers with whom nothing was
   * shared.
   */
  spacesChanged(): void;
  state(): P2pState;
  debug(): LinkDebug;
}

export interface LinkManagerOptions {
  readonly deviceSeed: Uint8Array;
  readonly account: Signer;
  readonly port: LinkPort;
  readonly log: Log;
  /** `p2p.port`; 0 for any. */
  readonly listenPort?: number;
  /** Where to listen; all LAN interfaces by default. */
  readonly host?: string;
  /** Addresses of the interfaces to discover on; for tests. */
  readonly discoverOn?: () => readonly string[];
  readonly mdnsPort?: number;
  /** Milliseconds of a clock that never goes back; the system's by default. Decides whom to dial when. */
  readonly nowMs?: () => number;
  /** Shorter than usual in tests that pull a cable. */
  readonly silence?: SilenceLimits;
}

const DIAL_PASS_MS = 500;
const DIALS_AT_ONCE = 4;
/** How close together in time links may be made that both ends dialled without knowing of the other's dialling. */
const AT_ONCE_MS = 5000;
/** Anybody who knows an account's id may bring it an inbox message, so these links are bounded. */
const INBOX_LINKS_MAX = 32;
const LINKS_PER_ACCOUNT = 32;
/** Most links at once; those to devices of this account do not count. */
const LINKS_MAX = 512;
/** Tokens made for an account that asks what is shared: some 2.5 s of a processor, then a twelfth of one. */
const COMPARISONS = { burst: 1 << 20, perSecond: 1 << 15 };
const COMPARE_AGAIN_MS = 5000;
/** Reserved for the link itself. */
const INSTANCE_KIND = "~instance";

/**
 * Starts the LAN link: listens, announces itself, dials whom it sees, keeps one link a peer. When it cannot listen, it
 * says so in its state and its log, and everything else works on.
 */
export async function startLinkManager(options: LinkManagerOptions): Promise<LinkManager> {
  const { port, log } = options;
  const certificate = createDeviceCertificate(options.deviceSeed);
  const identity = { peerId: certificate.peerId, account: options.account };
  const linkByPeer = new Map<PeerId, OpenLink>();
  const requestHandlers = new Map<string, RequestHandler>();
  const noticeHandlers = new Map<string, NoticeHandler>();
  const book: PeerBook = createPeerBook(options.nowMs ?? (() => performance.now()));
  let listener: LinkListener | undefined;
  let discovery: Discovery | undefined;
  let dialling = 0;
  let closing = false;
  let selfSeen = false;
  /** How often `port.keys()` came to say something else. */
  let keyChanges = 0;
  const rateLimited = createRateLimitedLog(log);
  const unfinished = new Set<TLSSocket>();

  /** Says which announcement belongs to a connected peer, so that the peer is not dialled again. */
  const introduce = (link: PeerLink) => {
    if (!discovery) return;
    link.notify(INSTANCE_KIND, utf8ToBytes(discovery.instance)).catch(() => {}); // closed: then it does not matter
  };
  const events = {
    request: (link: PeerLink, kind: string, body: Uint8Array) => {
      const handler = requestHandlers.get(kind);
      return handler && logged(link, kind, handler(link, body));
    },
    notice: (link: PeerLink, kind: string, body: Uint8Array) => {
      if (kind === INSTANCE_KIND) {
        book.reached(bytesToUtf8(body) ?? "", link.peerId);
        return Promise.resolve();
      }
      const handler = noticeHandlers.get(kind);
      return handler && logged(link, kind, handler(link, body));
    },
    afford: createAllowance(systemTimers, COMPARISONS),
    spacesChanged: (link: PeerLink) => {
      if (linkByPeer.get(link.peerId) === link) port.spacesChanged(link);
    },
    closed: (link: PeerLink, reason: string) => {
      if (linkByPeer.get(link.peerId) !== link) return; // was never, or is no longer, the peer's link
      linkByPeer.delete(link.peerId);
      book.lost(link.peerId);
      log.info("p2p: disconnected", { peerId: link.peerId, reason });
      port.disconnected(link, reason);
    },
  };
  const logged = async <T>(link: PeerLink, kind: string, work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const { peerId, accountId } = link;
      // It is nothing new if a peer goes away in the middle.
      if (link.signal.aborted) log.debug("p2p: a peer's message failed here", { peerId, kind, err: error });
      else rateLimited.warn(`${accountId} ${kind}`, "p2p: a peer's message failed here", { peerId, kind, err: error });
      throw error;
    }
  };

  const compare = (link: OpenLink): void => compareKeys(link, log);
  /** Takes a new link, or closes it in favour of the one there is. Both ends decide alike. */
  const admit = ({ link, isOutdated }: OpenedLink): boolean => {
    if (closing) {
      link.close("shutting down");
      return false;
    }
    if (isInboxLink(link) && [...linkByPeer.values()].filter(isInboxLink).length >= INBOX_LINKS_MAX) {
      link.close("too many that share no space");
      return false;
    }
    const existing = linkByPeer.get(link.peerId);
    if (existing && !replaces(link, existing)) {
      link.close("connected already");
      return false;
    }
    if (!existing && isCrowded(link)) {
      link.close("too many links");
      rateLimited.warn(
        `crowded ${link.accountId}`,
        "p2p: a device was turned away: its account, or all, have too many links",
        {
          peerId: link.peerId,
          accountId: link.accountId,
        },
      );
      return false;
    }
    linkByPeer.set(link.peerId, link);
    if (existing) {
      port.disconnected(existing, "replaced");
      existing.close("replaced");
    }
    log.info("p2p: connected", { peerId: link.peerId, spaces: link.sharedSpaces().length, dialled: link.dialled });
    introduce(link);
    port.connected(link);
    if (isOutdated()) compare(link);
    return true;
  };
  const isInboxLink = (link: PeerLink): boolean => !link.own && link.sharedSpaces().length === 0;
  /** Device keys cost nothing, so a peer that shares one key with us could open links without end. */
  const isCrowded = ({ accountId, own }: PeerLink): boolean => {
    const links = [...linkByPeer.values()];
    if (links.filter((link) => link.accountId === accountId).length >= LINKS_PER_ACCOUNT) return true;
    return !own && links.length >= LINKS_MAX;
  };
  const replaces = (link: OpenLink, existing: OpenLink): boolean => replacesLink(link, existing, certificate.peerId);

  const open = async (socket: TLSSocket, role: LinkRole): Promise<OpenedLink> => {
    const before = keyChanges;
    unfinished.add(socket);
    try {
      const link = await openPeerLink(socket, role, identity, () => port.keys(), events, options.silence);
      return { link, isOutdated: () => keyChanges !== before };
    } finally {
      unfinished.delete(socket);
    }
  };
  const noteFailure = (error: unknown, where: string) => {
    const failure = error instanceof HandshakeError ? error.failure : undefined;
    if (failure === "self") {
      port.ownKeySeen?.();
      if (!selfSeen)
        log.error("p2p: another server shows this device's own key: its data root is a copy of this one", {
          address: where,
        });
      selfSeen = true;
    } else if (
      failure === "bad-proof" ||
      failure === "bad-account" ||
      failure === "bad-format" ||
      failure === "bad-certificate"
    ) {
      rateLimited.warn(`${failure} ${where}`, "p2p: a peer was refused", { failure, address: where });
    } else log.debug("p2p: no link", { err: error, address: where });
  };

  const accept = async (socket: TLSSocket): Promise<void> => {
    const from = socket.remoteAddress ?? "";
    try {
      admit(await open(socket, "listener"));
    } catch (error) {
      noteFailure(error, from);
    }
  };
  const dial = async (instance: string): Promise<void> => {
    const target = book.begin(instance);
    if (!target) return;
    dialling++;
    try {
      const socket = await dialPeer(certificate, target.address, target.port);
      const opened = await open(socket, "dialler");
      book.reached(instance, opened.link.peerId);
      admit(opened);
    } catch (error) {
      noteFailure(error, target.address);
      const strange = error instanceof HandshakeError && error.failure !== "closed" && error.failure !== "timeout";
      book.failed(instance, strange ? "strange" : "unreachable");
    } finally {
      dialling--;
    }
    if (!closing) dialPass();
  };
  const dialPass = () => {
    for (const instance of book.due((peerId) => linkByPeer.has(peerId))) {
      if (dialling >= DIALS_AT_ONCE) return;
      void dial(instance);
    }
  };

  try {
    listener = await listenForPeers({
      certificate,
      host: options.host ?? "0.0.0.0",
      port: options.listenPort ?? 0,
      log,
      onSocket: accept,
    });
    discovery = createDiscovery({
      port: listener.port,
      log,
      onSeen: (sighting) => {
        book.seen(sighting, discovery?.instance ?? "");
        dialPass();
      },
      onGone: (instance) => book.gone(instance),
      ...(options.discoverOn ? { addresses: options.discoverOn } : {}),
      ...(options.mdnsPort === undefined ? {} : { mdnsPort: options.mdnsPort }),
    });
  } catch (error) {
    log.warn("p2p: cannot listen on the LAN; p2p.port names the port, p2p.enabled: false turns it off", { err: error });
  }
  const passes = setInterval(dialPass, DIAL_PASS_MS);

  const state = (): P2pState => {
    if (!listener) return "notpossible";
    if (linkByPeer.size > 0) return "connected";
    const found = discovery?.state();
    return found === "restricted" ? "restricted" : found === "no-interface" ? "notpossible" : "notconnected";
  };
  return {
    links: () => [...linkByPeer.values()],
    onRequest: (kind, handler) => register(requestHandlers, kind, handler),
    onNotice: (kind, handler) => register(noticeHandlers, kind, handler),
    spacesChanged: () => {
      keyChanges++;
      for (const link of linkByPeer.values()) compare(link);
      book.retryStrangers();
      discovery?.query();
      dialPass();
    },
    state,
    debug: () => {
      const possibility = discovery?.state();
      return {
        peerId: certificate.peerId,
        enabled: true,
        listenerStarted: listener !== undefined,
        port: listener?.port ?? 0,
        possibility:
          possibility === "working" ? "possible" : possibility === "restricted" ? "restricted" : "notpossible",
        state: state(),
        peers: [
          ...[...linkByPeer.values()].map((link) => ({
            peerId: link.peerId,
            spaceIds: link.sharedSpaces(),
            connected: true,
          })),
          ...book
            .knownPeers()
            .filter((peerId) => !linkByPeer.has(peerId))
            .map((peerId) => ({ peerId, spaceIds: [], connected: false })),
        ],
      };
    },
    [Symbol.asyncDispose]: async () => {
      closing = true;
      clearInterval(passes);
      await discovery?.[Symbol.asyncDispose]();
      for (const socket of unfinished) socket.destroy();
      for (const link of [...linkByPeer.values()]) link.close("shutting down");
      await listener?.[Symbol.asyncDispose]();
    },
  };
}

function register<Handler>(handlers: Map<string, Handler>, kind: string, handler: Handler): void {
  if (kind.startsWith("~") || handlers.has(kind)) throw new RangeError(`the kind ${kind} is taken`);
  handlers.set(kind, handler);
}

/** A peer that has no time for it is asked again: a space that is not recognised would stay so for as long as the link stands. */
function compareKeys(link: OpenLink, log: Log): void {
  link.matchAgain().catch((error: unknown) => {
    log.debug("p2p: comparing spaces failed", { peerId: link.peerId, err: error });
    const timer = setTimeout(() => {
      if (!link.signal.aborted) compareKeys(link, log);
    }, COMPARE_AGAIN_MS);
    timer.unref();
  });
}

/**
 * When two links to one peer were made at once, the one dialled by the lower peer id stays. Otherwise the newer one
 * stays: either the peer has lost the other, or two servers run with one key, a data root and its copy, and take turns.
 */
function replacesLink(link: OpenLink, existing: OpenLink, ownId: PeerId): boolean {
  return (
    link.dialled === existing.dialled ||
    link.openedAtMs - existing.openedAtMs > AT_ONCE_MS ||
    link.dialled === ownId < link.peerId
  );
}
