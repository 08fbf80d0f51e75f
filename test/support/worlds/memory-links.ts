/** Links between devices in one process: what is sent takes its time, may be lost, and comes in any order. */
import type { AccountId, PeerId, SpaceId } from "../../../src/base/ids.ts";
import type { Timers } from "../../../src/base/timers.ts";
import { svcError } from "../../../src/protocol/errors.ts";
import type { LinkManager } from "../../../src/sync/lan/link-manager.ts";
import type { PeerLink } from "../../../src/sync/lan/peer-link.ts";
import type { Rng } from "../rng.ts";

const TIMEOUT_MS = 15_000;

/** How a network treats what is sent. */
interface Weather {
  readonly delayMs: number;
  /** Of requests, replies and notices alike. */
  readonly loss: number;
}

interface MemoryEnd {
  readonly peerId: PeerId;
  readonly accountId: AccountId;
  /** Spaces that this device shows; those that both ends show are shared. */
  spaces(): readonly SpaceId[];
  /** A peer was met, or is gone. */
  connected(link: PeerLink): void;
  disconnected(link: PeerLink): void;
}

type Links = Pick<LinkManager, "links" | "onRequest" | "onNotice">;
type RequestHandler = Parameters<LinkManager["onRequest"]>[1];
type NoticeHandler = Parameters<LinkManager["onNotice"]>[1];

interface Member {
  readonly end: MemoryEnd;
  readonly links: Map<PeerId, PeerLink>;
  readonly requestHandlers: Map<string, RequestHandler>;
  readonly noticeHandlers: Map<string, NoticeHandler>;
}

/** What is under way between two devices: the link as each of them sees it. */
export interface MemoryLinks {
  weather: Weather;
  /** A device is there, and may be connected. Under the name of one that was there before it takes its place. */
  join(end: MemoryEnd): Links;
  /** All its links end. */
  leave(peerId: PeerId): void;
  /** Nothing is done for two that are connected, or of which one is not there. */
  connect(a: PeerId, b: PeerId): void;
  cut(a: PeerId, b: PeerId): void;
  isConnected(a: PeerId, b: PeerId): boolean;
}

export function createMemoryLinks(timers: Timers, rng: Rng): MemoryLinks {
  const members = new Map<PeerId, Member>();
  const network: MemoryLinks = {
    weather: { delayMs: 1, loss: 0 },
    join(end) {
      const member: Member = { end, links: new Map(), requestHandlers: new Map(), noticeHandlers: new Map() };
      members.set(end.peerId, member);
      return {
        links: () => [...member.links.values()],
        onRequest: (kind, handler) => void member.requestHandlers.set(kind, handler),
        onNotice: (kind, handler) => void member.noticeHandlers.set(kind, handler),
      };
    },
    leave(peerId) {
      for (const other of members.get(peerId)?.links.keys() ?? []) network.cut(peerId, other);
      members.delete(peerId);
    },
    connect(a, b) {
      const [one, other] = [members.get(a), members.get(b)];
      if (!one || !other || one.links.has(b)) return;
      const ended = new AbortController();
      const mine = linkTo(other, one, ended);
      const theirs = linkTo(one, other, ended);
      one.links.set(b, mine);
      other.links.set(a, theirs);
      one.end.connected(mine);
      other.end.connected(theirs);
    },
    cut: (a, b) => members.get(a)?.links.get(b)?.close("cut"),
    isConnected: (a, b) => members.get(a)?.links.has(b) ?? false,
  };

  /** Carries something over after a while, unless it is lost or the link has ended. */
  const carry = (ended: AbortSignal, arrive: () => void): void => {
    const { delayMs, loss } = network.weather;
    if (rng.chance(loss)) return;
    timers.after(rng.int(1, delayMs), () => {
      if (!ended.aborted) arrive();
    });
  };

  /** The link of `own` to a peer. */
  function linkTo(peer: Member, own: Member, ended: AbortController): PeerLink {
    const { signal } = ended;
    /** What the peer's handlers are given: its link to us. */
    const reverse = (): PeerLink => peer.links.get(own.end.peerId)!;
    return {
      peerId: peer.end.peerId,
      accountId: peer.end.accountId,
      own: peer.end.accountId === own.end.accountId,
      dialled: own.end.peerId < peer.end.peerId,
      signal,
      sharedSpaces: () => own.end.spaces().filter((spaceId) => peer.end.spaces().includes(spaceId)),
      request(kind, body, options = {}) {
        const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
        const fail = () => reject(svcError("network.unavailable"));
        const cancel = timers.after(options.timeoutMs ?? TIMEOUT_MS, fail);
        signal.addEventListener("abort", fail);
        const done = () => {
          cancel();
          signal.removeEventListener("abort", fail);
        };
        promise.then(done, done);
        if (signal.aborted) fail();
        const bytes = body.slice();
        carry(signal, () => {
          const handler = peer.requestHandlers.get(kind);
          const answer = handler ? handler(reverse(), bytes) : Promise.reject(new Error(`nobody answers ${kind}`));
          answer.then(
            (reply) => carry(signal, () => resolve(reply.slice())),
            () => carry(signal, fail),
          );
        });
        return promise;
      },
      async notify(kind, body) {
        if (signal.aborted) throw svcError("network.unavailable");
        const bytes = body.slice();
        carry(
          signal,
          () =>
            void peer.noticeHandlers
              .get(kind)?.(reverse(), bytes)
              .catch(() => undefined),
        );
      },
      proveGuest: () => new Uint8Array(64),
      isGuestProof: () => false,
      close() {
        if (signal.aborted) return;
        const mine = own.links.get(peer.end.peerId)!;
        const theirs = reverse();
        own.links.delete(peer.end.peerId);
        peer.links.delete(own.end.peerId);
        ended.abort();
        own.end.disconnected(mine);
        peer.end.disconnected(theirs);
      },
    };
  }
  return network;
}
