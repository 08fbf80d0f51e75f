import type { Log } from "../../base/log.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { LogCursor } from "./log-cursor.ts";
import { placeNote, putLost } from "./log-notes.ts";
import type { NetworkStore } from "./network-store.ts";
import type { SpaceChannel, SpaceChannels } from "./space-channels.ts";
import { type ChannelKeys, deriveChannelKeys } from "./subjects.ts";

interface OldPlacesDeps {
  readonly store: Pick<NetworkStore, "connection" | "holds">;
  readonly log: Log;
  readonly channels: Pick<SpaceChannels, "places">;
}

/** The last message that was read of a log. */
interface Anchor {
  readonly keys: ChannelKeys;
  readonly cursor: LogCursor;
}

/**
 * Notices when the store lost places that were read to their end: whoever comes later needs them, and nobody follows them any
 * more. Streams only grow, so of a stream what was read last is lost first, and it is enough to ask for that: one question a
 * stream, once a connection, however many places there are.
 */
export function createOldPlaces({ store, channels, log }: OldPlacesDeps) {
  const newestOf = (replica: Replica): Iterable<Anchor> => {
    const byStream = new Map<string, Anchor>();
    for (const { keyId, secret } of channels.places(replica)) {
      const { read, acl: cursor } = placeNote(replica, keyId);
      if (!read || !cursor || !secret) continue;
      const keys = deriveChannelKeys(secret);
      if (cursor.seq > (byStream.get(keys.stream)?.cursor.seq ?? 0)) byStream.set(keys.stream, { keys, cursor });
    }
    return byStream.values();
  };

  const lose = async (replica: Replica): Promise<void> => {
    log.warn("sync: the network's store lost an older place of a space; it is filled again from here", {
      spaceId: replica.id,
    });
    await replica.write((write) => putLost(write, replica));
  };

  return {
    /** Whether the old places were looked after on this connection. */
    areLookedAfter: (own: SpaceChannel): boolean => !own.hasOld || own.lookedBackIn === store.connection(),
    /** Looks after them, once a connection. What is lost is noted: then all places are read once more, and filled. */
    async lookAfter(replica: Replica, own: SpaceChannel | undefined): Promise<void> {
      const connection = store.connection();
      if (!own?.hasOld || own.lookedBackIn === connection) return;
      for (const { keys, cursor } of newestOf(replica))
        if (!(await store.holds(keys, "a", cursor))) return lose(replica);
      own.lookedBackIn = connection;
    },
  };
}
