import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { SpacePlace } from "../../space/port/places.ts";

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

/** A space that is being looked for. */
interface Search {
  ended: Promise<void>;
  /** Ends the rest before the next look. */
  wake(): void;
}

/** Looks for spaces that this account is to be in and of which nothing is here yet (ACL-17). */
export function createSpaceSeeker(deps: SpaceSeekerDeps) {
  const searches = new Map<SpaceId, Search>();

  const run = async (spaceId: SpaceId, search: Search): Promise<void> => {
    const isCurrent = () => searches.get(spaceId) === search;
    while (isCurrent() && deps.isAwaited(spaceId)) {
      const place = deps.placeOf(spaceId);
      if (!place) return; // comes with the account's own space, and is heard of
      const news = Promise.withResolvers<void>();
      search.wake = news.resolve;
      await deps.ask(spaceId);
      const records = await deps.findAclLog(place);
      if (!isCurrent() || !deps.isAwaited(spaceId)) break;
      if (records && (await deps.begin(spaceId, records))) break;
      deps.missed(spaceId, place);
      await Promise.race([news.promise, Bun.sleep(SEEK_AGAIN_MS)]);
    }
    if (isCurrent()) await deps.ended(spaceId);
  };

  /** The look that is under way is let go of: what it finds does not count any more. */
  const letGo = (spaceId: SpaceId): void => {
    searches.get(spaceId)?.wake();
    searches.delete(spaceId);
  };

  return {
    /** Asks everybody who is reached for the log, until it is here or nobody waits for it any more. Never rejects. */
    seek(spaceId: SpaceId): Promise<void> {
      const known = searches.get(spaceId);
      if (known) return known.ended;
      const search: Search = { ended: Promise.resolve(), wake: () => undefined };
      searches.set(spaceId, search);
      search.ended = run(spaceId, search)
        .catch((error: unknown) => {
          if (searches.get(spaceId) === search)
            deps.log.warn("joining: looking for a space failed", { err: error, spaceId });
        })
        .finally(() => {
          if (searches.get(spaceId) === search) searches.delete(spaceId);
        });
      return search.ended;
    },
    /** Something was heard of the space: it is worth another look now. */
    heard: (spaceId: SpaceId): void => searches.get(spaceId)?.wake(),
    letGo,
    close(): void {
      for (const spaceId of [...searches.keys()]) letGo(spaceId);
    },
  };
}
