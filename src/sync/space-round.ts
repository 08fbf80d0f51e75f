import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Replica } from "../space/port/replica.ts";
import type { ProgressBook } from "./progress.ts";
import type { Resting } from "./resting.ts";
import { markSynced } from "./status.ts";
import type { StatusWatch } from "./status-watch.ts";
import type { Transport } from "./transport.ts";

interface SpaceRoundDeps {
  readonly book: ProgressBook;
  readonly resting: Resting;
  readonly statuses: StatusWatch;
  readonly transports: readonly Transport[];
  readonly clock: Clock;
  isHere(spaceId: SpaceId): boolean;
  openHeld(spaceId: SpaceId): Promise<Replica>;
  /** Keeps a space open while `work` runs. */
  hold<T>(spaceId: SpaceId, work: () => Promise<T>): Promise<T>;
}

/** One round for one space, on every transport; what is found then is entered into the progress. */
export function createSpaceRound(deps: SpaceRoundDeps): (spaceId: SpaceId) => Promise<void> {
  const { book, resting, statuses, transports, clock, isHere } = deps;

  const round = async (spaceId: SpaceId): Promise<void> => {
    if (!isHere(spaceId)) return; // ended meanwhile, or a peer shares what is only being looked for
    const replica = await deps.openHeld(spaceId);
    try {
      await Promise.all(transports.map((transport) => transport.round(replica)));
    } catch (error) {
      if (!replica.closing()) throw error;
    }
    if (replica.closing()) {
      // It ended during its own round: nothing is known of it any more.
      if (!isHere(spaceId)) book.forget(spaceId);
      return;
    }
    if (!isHere(spaceId)) return; // ended by what the round brought, or by somebody here
    await replica.acl.sequencePending(); // nobody has noticed yet what came before a crash
    await note(replica);
    statuses.notify(spaceId);
  };

  const note = async (replica: Replica): Promise<void> => {
    const progress = book.of(replica.id);
    progress.roundEnded = true;
    progress.lastRoundEndedMs = clock.nowMs();
    resting.end(replica.id);
    if (statuses.of(replica).state !== "synced") return;
    progress.lastSyncedMs = clock.nowMs();
    await markSynced(replica, progress.lastSyncedMs);
    // What was written since then is not part of what was found synced.
    if (statuses.of(replica).state === "synced") resting.begin(replica);
  };

  return (spaceId) => deps.hold(spaceId, () => round(spaceId));
}
