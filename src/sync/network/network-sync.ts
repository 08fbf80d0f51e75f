import type { SpaceId } from "../../base/ids.ts";
import { createRateLimitedLog } from "../../base/rate-limited-log.ts";
import type { Replica } from "../../space/replica.ts";
import { NETWORK_PEER } from "../progress.ts";
import type { Transport } from "../transport.ts";
import { createAclPublisher } from "./acl-publisher.ts";
import { findAcl } from "./find-acl.ts";
import { hasMissed, isToBeReadAgain, readFromStart } from "./log-notes.ts";
import type { NetworkStore } from "./network-store.ts";
import { hasOutgoing } from "./outgoing-changes.ts";
import { createSpaceChannels, type SpaceChannel } from "./space-channels.ts";
import { createSpacePort, type SpacePortDeps } from "./space-port.ts";

const ASK_LEADER_MS = 5 * 60_000;
const FLUSH_WAIT_MS = 20_000;
const FLUSH_STEP_MS = 250;

export interface NetworkSyncDeps extends Omit<SpacePortDeps, "rateLimited"> {
  readonly store: NetworkStore;
  /** What a space's channel is found and opened by; undefined while it is not known here. */
  secretOf(replica: Replica): Uint8Array | undefined;
  /** Secret of the invite by which this account joins the space, if it does. */
  inviteSeedOf(spaceId: SpaceId): Uint8Array | undefined;
}

/** Rounds with the network: each space is a channel that is followed and, for what it lacks, filled from here. */
export function createNetworkSync(deps: NetworkSyncDeps): Transport {
  const { store, book, clock, log } = deps;
  const portDeps: SpacePortDeps = { ...deps, rateLimited: createRateLimitedLog(log) };
  const channels = createSpaceChannels({
    store,
    secretOf: deps.secretOf,
    portOf: (spaceId, ended, own) => createSpacePort(portDeps, spaceId, ended, own),
  });
  const acl = createAclPublisher({ log, channelOf: channels.of, inviteSeedOf: deps.inviteSeedOf });
  let closed = false;
  const isOnline = (): boolean => store.state().phase === "online";

  /** Waits until what this device wrote has come back from the network, or does not go there. */
  const flush = async (replica: Replica, own: SpaceChannel): Promise<void> => {
    const deadline = performance.now() + FLUSH_WAIT_MS;
    while (!own.ended.signal.aborted && performance.now() < deadline && hasOutgoing(replica)) {
      const { phase } = own.channel.state();
      if (phase === "failing" || phase === "offline") return;
      own.channel.wake();
      await Promise.race([own.changed.promise, Bun.sleep(FLUSH_STEP_MS)]);
    }
  };

  const roundOver = async (replica: Replica, own: SpaceChannel): Promise<void> => {
    const progress = book.peer(replica.id, NETWORK_PEER);
    await acl.read(own);
    if (replica.acl.hasPending()) await acl.publishProposals(replica);
    if (replica.role() === "none") return;
    await own.channel.round();
    await acl.publish(replica, own.channel);
    await flush(replica, own);
    const { phase, atTail } = own.channel.state();
    if (phase === "failing" || phase === "offline") return; // its own state says why
    own.leftOut = hasMissed(replica);
    progress.missing = !atTail || own.leftOut;
    progress.lastError = "";
    progress.lastSyncAtMs = clock.nowMs();
    await replica.age();
  };

  const round = async (replica: Replica): Promise<void> => {
    if (isToBeReadAgain(replica)) {
      await channels.forget(replica.id);
      await readFromStart(replica);
    }
    const own = channels.of(replica);
    if (!own || !isOnline()) return;
    try {
      await roundOver(replica, own);
    } catch (error) {
      if (closed || own.ended.signal.aborted || !isOnline() || replica.closing()) return;
      book.peer(replica.id, NETWORK_PEER).lastError = error instanceof Error ? error.message : String(error);
      log.warn("sync: a round with the network failed", { err: error, spaceId: replica.id });
    }
  };

  /**
   * A live channel hears of what is appended, and of a store that is not what it was; its leader is asked all the same
   * when it was not for a while.
   */
  const rests = async (spaceId: SpaceId): Promise<boolean> => {
    const channel = channels.get(spaceId)?.channel;
    if (channel?.state().phase !== "live") return false;
    const { checkedAtMs } = channel.state();
    if (checkedAtMs === undefined || clock.nowMs() - checkedAtMs > ASK_LEADER_MS) {
      try {
        await channel.round();
      } catch {
        return false; // a full round says what is wrong
      }
    }
    const { phase, atTail, pending } = channel.state();
    if (phase !== "live" || !atTail || pending > 0) return false;
    book.peer(spaceId, NETWORK_PEER).lastSyncAtMs = channel.state().checkedAtMs;
    return true;
  };

  return {
    names: (spaceId) => {
      const phase = isOnline() ? channels.get(spaceId)?.channel.state().phase : undefined;
      return phase === undefined || phase === "offline" ? [] : [NETWORK_PEER];
    },
    fault: (spaceId) => {
      const state = store.state();
      if (state.phase === "refused") return state.reason ?? "the network refuses this account";
      const channel = isOnline() ? channels.get(spaceId)?.channel.state() : undefined;
      return channel?.phase === "failing" ? (channel.error?.message ?? "the network fails") : undefined;
    },
    round,
    async resting(marks) {
      if (!isOnline()) return new Set(marks.keys());
      const found = new Set<SpaceId>();
      for (const [spaceId, mark] of marks) if (mark && (await rests(spaceId))) found.add(spaceId);
      return found;
    },
    appendAcl: acl.append,
    findAclLog: async ({ transportSecret }) => (isOnline() ? findAcl(store, transportSecret, () => closed) : undefined),
    changed: (replica) => channels.get(replica.id)?.channel.wake(),
    forget: channels.spaceEnded,
    async close() {
      closed = true;
      await channels.close();
      await store[Symbol.asyncDispose]();
    },
  };
}
