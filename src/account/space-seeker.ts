import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { SpacePlace } from "../space/port/places.ts";

/** How often a space that was not found is looked for again while nothing is heard of it. */
const SEEK_AGAIN_MS = 2_000;

interface SpaceSeekerDeps {
  /** Whether the space should be here and nothing of it is. */
  isAwaited(spaceId: SpaceId): boolean;
  /** Where to look; undefined while this device has not been told. */
  placeOf(spaceId: SpaceId): SpacePlace | undefined;
  /** Asks to be let in, where that is due. */
  ask(spaceId: SpaceId): Promise<void>;
  /** The space's ACL log, if anybody who is reached has it. */
  findAclLog(place: SpacePlace): Promise<Uint8Array[] | undefined>;
  /** Begins the space with that log. Answers whether it is here now. */
  begin(spaceId: SpaceId, records: Uint8Array[]): Promise<boolean>;
  /** A look has found nothing. */
  missed(spaceId: SpaceId, place: SpacePlace): void;
  /** The space is here, or nobody waits for it any more. */
  ended(spaceId: SpaceId): Promise<void>;
  readonly log: Log;
}

/** Looks for spaces that this account is to be in and of which nothing is here yet (ACL-17). */
export function createSpaceSeeker(deps: SpaceSeekerDeps) {
  let closed = false;
  const seeking = new Map<SpaceId, Promise<void>>();
  /** For each space that is looked for: ends the rest before the next look. */
  const rests = new Map<SpaceId, () => void>();

  const look = async (spaceId: SpaceId): Promise<void> => {
    while (!closed && deps.isAwaited(spaceId)) {
      const place = deps.placeOf(spaceId);
      if (!place) return; // comes with the account's own space, and is heard of
      const news = Promise.withResolvers<void>();
      rests.set(spaceId, news.resolve);
      await deps.ask(spaceId);
      const records = await deps.findAclLog(place);
      if (closed || !deps.isAwaited(spaceId)) break;
      if (records && (await deps.begin(spaceId, records))) break;
      deps.missed(spaceId, place);
      await Promise.race([news.promise, Bun.sleep(SEEK_AGAIN_MS)]);
    }
    if (!closed) await deps.ended(spaceId);
  };

  return {
    /** Asks everybody who is reached for the log, until it is here or nobody waits for it any more. Never rejects. */
    seek(spaceId: SpaceId): Promise<void> {
      const known = seeking.get(spaceId);
      if (known) return known;
      const running = look(spaceId)
        .catch((error: unknown) => {
          if (!closed) deps.log.warn("joining: looking for a space failed", { err: error, spaceId });
        })
        .finally(() => {
          seeking.delete(spaceId);
          rests.delete(spaceId);
        });
      seeking.set(spaceId, running);
      return running;
    },
    /** Something was heard of the space: it is worth another look now. */
    heard: (spaceId: SpaceId): void => rests.get(spaceId)?.(),
    close(): void {
      closed = true;
      for (const end of rests.values()) end();
    },
  };
}
