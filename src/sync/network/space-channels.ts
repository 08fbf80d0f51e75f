import type { SpaceId } from "../../base/ids.ts";
import type { Timers } from "../../base/timers.ts";
import type { Place } from "../../space/port/places.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { Channel, ChannelPort } from "./channel.ts";
import { hasMissed, type PlaceEnd, placeNote } from "./log-notes.ts";
import type { NetworkStore } from "./network-store.ts";

/** A space's channel while it is followed, and what is known of it besides. */
export interface SpaceChannel {
  readonly spaceId: SpaceId;
  /** The epoch whose place it is. */
  readonly keyId: string;
  /** Aborted when the space has ended, has gone on to another place, or is read anew; nothing is waited for then. */
  readonly ended: AbortController;
  readonly channel: Channel;
  /**
   * Where the place ends, known once the record is met that begins the next. For who is out by that record it has no end:
   * where a branch of the log loses that put somebody out, the one that won may stand nowhere else that its keys lead to.
   */
  end: PlaceEnd | undefined;
  /** The log goes on in another place: this one is read to its end, and nothing more is appended to it. */
  isPast: boolean;
  /** There are places before this one. */
  readonly hasOld: boolean;
  /** The connection on which those places were last found to be there still. */
  lookedBackIn: number | undefined;
  /** Changes of members in the log had no room here, and are missed. */
  leftOut: boolean;
  /** Resolved and made anew whenever the channel's state may have changed. */
  changed: PromiseWithResolvers<void>;
  /** Why the channel failed when it last reported; empty while it does not fail. */
  fault: string;
  /** Changes of others up to this number were here at `othersSinceMs`. */
  othersUpto: number;
  othersSinceMs: number;
  /** How many changes a message held lately; the number of missing changes is estimated from the number of messages. */
  perMessage: number;
  /** Cancels the wake-up of the publisher for the time when it may publish changes of others. */
  endOthersTimer: (() => void) | undefined;
}

/** Whoever waits for `changed` looks again, and then waits for the next time. */
export function notifyChanged(own: SpaceChannel): void {
  const { resolve } = own.changed;
  own.changed = Promise.withResolvers();
  resolve();
}

const ROLE_POLL_MS = 300;

/**
 * One round of a place's channel. False when this account is no member any more: until it is one again nothing of the
 * place's content is taken in, and the round does not wait for that.
 */
export async function roundAsMember(replica: Replica, { channel }: SpaceChannel, timers: Timers): Promise<boolean> {
  const round = channel.round().then(() => "done" as const);
  while (replica.role() !== "none")
    if ((await Promise.race([round, timers.sleep(ROLE_POLL_MS)])) === "done") return true;
  round.catch(() => {}); // it ends with the channel
  return false;
}

interface SpaceChannelsDeps {
  readonly store: Pick<NetworkStore, "openChannel">;
  /** The places of a space that are known, the oldest first. */
  placesOf(replica: Replica): Place[];
  /** What the space lends to its channel. `own` is set before anything is asked of the port. */
  portOf(spaceId: SpaceId, ended: AbortSignal, own: () => SpaceChannel): ChannelPort;
}

/** The channels of the spaces that are followed on the network: one a space, at the place that is to be read next. */
export type SpaceChannels = ReturnType<typeof createSpaceChannels>;

export function createSpaceChannels(deps: SpaceChannelsDeps) {
  const channels = new Map<SpaceId, SpaceChannel>();
  /** For each space the copy of it that is open, or was last. */
  const copies = new Map<SpaceId, Replica>();
  /** Copies that have ended. A space that is joined again has a new database, and their cursors say nothing of that. */
  const endedCopies = new WeakSet<Replica>();
  let closed = false;

  /**
   * The place to be at: the oldest that was not read to its end. An account that is no member yet reads no content, and
   * goes as far as the log leads it.
   */
  const toRead = (replica: Replica): Place | undefined => {
    const known = deps.placesOf(replica).filter(({ secret }) => secret !== undefined);
    const unread = replica.role() === "none" ? undefined : known.find((place) => !isRead(replica, place));
    return unread ?? known.at(-1);
  };

  /** For each space the places that were read to their end, by the record that ends them: there may be hundreds. */
  const readBySpace = new WeakMap<Replica, Map<string, string>>();
  const isRead = (replica: Replica, place: Place): boolean => {
    const ending = place.ending;
    if (ending === undefined) return false;
    const known = readBySpace.get(replica) ?? new Map<string, string>();
    readBySpace.set(replica, known);
    if (known.get(place.keyId) === ending) return true;
    const { read, end } = placeNote(replica, place.keyId);
    if (read !== true || end?.record !== ending) return false;
    known.set(place.keyId, ending);
    return true;
  };

  const open = (replica: Replica, { keyId, secret, from, to }: Place): SpaceChannel => {
    const ended = new AbortController();
    const note = placeNote(replica, keyId);
    const own: SpaceChannel = {
      spaceId: replica.id,
      keyId,
      ended,
      channel: deps.store.openChannel({
        transportSecret: secret!,
        itemsCursor: note.items,
        aclCursor: note.acl,
        port: deps.portOf(replica.id, ended.signal, () => own),
      }),
      end: replica.role() === "none" ? undefined : note.end,
      isPast: to !== undefined,
      hasOld: from > 0,
      lookedBackIn: undefined,
      leftOut: hasMissed(replica),
      changed: Promise.withResolvers(),
      fault: "",
      othersUpto: 0,
      othersSinceMs: 0,
      perMessage: 1,
      endOthersTimer: undefined,
    };
    channels.set(replica.id, own);
    copies.set(replica.id, replica);
    return own;
  };
  /** Nothing waits for it any longer. */
  const end = (own: SpaceChannel): Promise<void> => {
    own.ended.abort();
    own.changed.resolve();
    own.endOthersTimer?.();
    return Promise.resolve(own.channel[Symbol.asyncDispose]());
  };
  const forget = async (spaceId: SpaceId): Promise<void> => {
    const own = channels.get(spaceId);
    channels.delete(spaceId);
    if (own) await end(own);
  };

  return {
    places: deps.placesOf,
    get: (spaceId: SpaceId): SpaceChannel | undefined => channels.get(spaceId),
    /**
     * The space's channel at the place to be at, opened if need be; undefined when none can be found yet, or the space is
     * ending.
     */
    async of(replica: Replica): Promise<SpaceChannel | undefined> {
      const known = channels.get(replica.id);
      if (known && !endedCopies.has(replica)) copies.set(replica.id, replica);
      if (closed || endedCopies.has(replica) || replica.closing()) return known;
      const place = toRead(replica);
      if (!place || place.keyId === known?.keyId) return known;
      await forget(replica.id);
      return closed || endedCopies.has(replica) || channels.has(replica.id)
        ? channels.get(replica.id)
        : open(replica, place);
    },
    /** It is opened anew when it is asked for again. */
    forget,
    /** All its places are read again, beginning from what is noted of them. */
    async readAgain(replica: Replica): Promise<void> {
      readBySpace.delete(replica);
      await forget(replica.id);
    },
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
