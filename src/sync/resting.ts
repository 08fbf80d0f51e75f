import { concatBytes, utf8ToBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { sha256 } from "../crypto/hash.ts";
import type { Replica } from "../space/port/replica.ts";
import type { ProgressBook } from "./progress.ts";
import type { Transport } from "./transport.ts";

const DOMAIN = utf8ToBytes("svc/sync-mark/v1\0");

/** What a replica is at, in 32 bytes. Two replicas with the same mark have nothing to exchange. */
function markOf(replica: Replica): Uint8Array {
  return sha256(concatBytes(DOMAIN, replica.acl.head(), replica.acl.pendingDigest(), replica.vector().digest));
}

/**
 * Which spaces were found synced and have not changed since (SYNC-5). A regular round need not open them while everybody who is
 * reached is at the same mark. Kept in memory; any change to a space ends its rest.
 */
export type Resting = ReturnType<typeof createResting>;

export function createResting(deps: { readonly book: ProgressBook; readonly clock: Clock }) {
  const marks = new Map<SpaceId, Uint8Array>();

  return {
    /** A round has found the space synced. A space with pending records does not rest: they are looked at every round. */
    begin(replica: Replica): void {
      if (!replica.acl.hasPending()) marks.set(replica.id, markOf(replica));
    },
    end: (spaceId: SpaceId): void => void marks.delete(spaceId),
    mark: (spaceId: SpaceId): Uint8Array | undefined => marks.get(spaceId),

    /** Those of these spaces for which a round would do nothing. Opens no space to find out. */
    async among(spaceIds: readonly SpaceId[], transports: readonly Transport[]): Promise<ReadonlySet<SpaceId>> {
      const asked = new Map(
        spaceIds.filter((id) => deps.book.of(id).roundEnded).map((id) => [id, marks.get(id)] as const),
      );
      const answers = await Promise.all(transports.map((transport) => transport.resting(asked)));
      const resting = [...asked].filter(
        ([id, mark]) => marks.get(id) === mark && answers.every((each) => each.has(id)),
      );
      const now = deps.clock.nowMs();
      for (const [spaceId, mark] of resting) {
        const progress = deps.book.of(spaceId);
        progress.lastRoundEndedMs = now;
        const names = transports.flatMap((transport) => transport.names(spaceId));
        if (mark && names.length > 0) progress.lastSyncedMs = now;
      }
      return new Set(resting.map(([id]) => id));
    },
  };
}
