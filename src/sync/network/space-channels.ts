import type { SpaceId } from "../../base/ids.ts";
import type { Replica } from "../../space/replica.ts";
import type { Channel, ChannelPort } from "./channel.ts";
import { cursorOf, hasMissed } from "./log-notes.ts";
import type { NetworkStore } from "./network-store.ts";

/** A space's channel while it is followed, and what is known of it besides. */
export interface SpaceChannel {
  readonly spaceId: SpaceId;
  /** Aborted when the space has ended, or is read anew: nothing is waited for then. */
  readonly ended: AbortController;
  readonly channel: Channel;
  /** Some of what the log holds of members had no room here, and is missed. */
  leftOut: boolean;
  /** Resolved and made anew whenever the channel's state may have changed. */
  changed: PromiseWithResolvers<void>;
  /** Why the channel failed when it was heard of last; empty while it does not. */
  fault: string;
  /** Changes of others up to this number were here at `othersSinceMs`. */
  othersUpto: number;
  othersSinceMs: number;
  /** Changes a message had lately, to tell how many are missing by the number of messages. */
  perMessage: number;
  /** Wakes the publisher when what others wrote may be published from here. */
  othersTimer: ReturnType<typeof setTimeout> | undefined;
}

interface SpaceChannelsDeps {
  readonly store: Pick<NetworkStore, "openChannel">;
  /** What a space's channel is found and opened by; undefined while it is not known here. */
  secretOf(replica: Replica): Uint8Array | undefined;
  /** What the space lends to its channel. `own` is there before anything is asked of the port. */
  portOf(spaceId: SpaceId, ended: AbortSignal, own: () => SpaceChannel): ChannelPort;
}

/** The channels of the spaces that are followed on the network, one a space. */
export function createSpaceChannels(deps: SpaceChannelsDeps) {
  const channels = new Map<SpaceId, SpaceChannel>();
  /** Of each the copy of its space that is open, or was last. */
  const copies = new Map<SpaceId, Replica>();
  /** Copies that have ended: a space that comes anew has a database of its own, of which their cursors say nothing. */
  const endedCopies = new WeakSet<Replica>();
  let closed = false;

  const open = (replica: Replica, transportSecret: Uint8Array): SpaceChannel => {
    const ended = new AbortController();
    const own: SpaceChannel = {
      spaceId: replica.id,
      ended,
      channel: deps.store.openChannel({
        transportSecret,
        itemsCursor: cursorOf(replica, "items"),
        aclCursor: cursorOf(replica, "acl"),
        port: deps.portOf(replica.id, ended.signal, () => own),
      }),
      leftOut: hasMissed(replica),
      changed: Promise.withResolvers(),
      fault: "",
      othersUpto: 0,
      othersSinceMs: 0,
      perMessage: 1,
      othersTimer: undefined,
    };
    return own;
  };
  /** Nothing waits for it any longer. */
  const end = (own: SpaceChannel): Promise<void> => {
    own.ended.abort();
    own.changed.resolve();
    clearTimeout(own.othersTimer);
    return Promise.resolve(own.channel[Symbol.asyncDispose]());
  };
  const forget = async (spaceId: SpaceId): Promise<void> => {
    const own = channels.get(spaceId);
    channels.delete(spaceId);
    if (own) await end(own);
  };

  return {
    get: (spaceId: SpaceId): SpaceChannel | undefined => channels.get(spaceId),
    /** The space's channel, opened if need be; undefined when it cannot be found yet, or the space is ending. */
    of(replica: Replica): SpaceChannel | undefined {
      const known = channels.get(replica.id);
      if (known && !endedCopies.has(replica)) copies.set(replica.id, replica);
      if (known || closed || endedCopies.has(replica) || replica.closing()) return known;
      const transportSecret = deps.secretOf(replica);
      if (!transportSecret) return undefined;
      const own = open(replica, transportSecret);
      channels.set(replica.id, own);
      copies.set(replica.id, replica);
      return own;
    },
    /** It is opened anew when it is asked for again. */
    forget,
    /** The space ended: the copy that is open now is followed no more. */
    async spaceEnded(spaceId: SpaceId): Promise<void> {
      const copy = copies.get(spaceId);
      if (copy) endedCopies.add(copy);
      copies.delete(spaceId);
      await forget(spaceId);
    },
    async close(): Promise<void> {
      closed = true;
      await Promise.all([...channels.values()].map(end));
    },
  };
}
