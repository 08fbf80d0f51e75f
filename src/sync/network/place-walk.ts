import type { SpaceId } from "../../base/ids.ts";
import { createKeyedSemaphore } from "../../base/keyed-semaphore.ts";
import type { Timers } from "../../base/timers.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { AclPublisher } from "./acl-publisher.ts";
import { forgetPlaces, hasLost, notedPlaces, notePlace } from "./log-notes.ts";
import { roundAsMember, type SpaceChannel, type SpaceChannels } from "./space-channels.ts";

/** Beside one for each place: when a branch of the log loses, or a place is filled again, some are visited twice. */
const STEPS_BEYOND = 32;

interface PlaceWalkDeps {
  readonly timers: Timers;
  readonly channels: SpaceChannels;
  readonly acl: Pick<AclPublisher, "read" | "publish">;
  /** Notes when old places were lost by the store. */
  lookAfterOld(replica: Replica, own: SpaceChannel | undefined): Promise<void>;
  /** Tells those who stand at places of branches that lost. */
  reportLost(replica: Replica): Promise<void>;
}

/**
 * Leads a space from the place where it was read last to the present one (ACL-7). Each place is read to the record that begins the
 * next: what stands behind that, in either log, counts for nobody. Whoever has a record that a place lacks puts it there, so
 * that those who come later find their way.
 */
export function createPlaceWalk(deps: PlaceWalkDeps) {
  const { channels, acl } = deps;
  const walks = createKeyedSemaphore<SpaceId>();

  /** The store lost something, or a branch of the log lost with its places: all is read once more. */
  const beginAnew = async (replica: Replica): Promise<void> => {
    const places = channels.places(replica);
    const isDropped = notedPlaces(replica).some((keyId) => !places.some((place) => place.keyId === keyId));
    if (!isDropped && !hasLost(replica)) return;
    await replica.write((write) => forgetPlaces(write, replica));
    await channels.readAgain(replica);
  };

  /** One place: the channel when it is the present one, `on` when another is to be visited. */
  const step = async (replica: Replica): Promise<SpaceChannel | "on" | undefined> => {
    const own = await channels.of(replica);
    if (!own) return undefined;
    await acl.read(own);
    if (replica.role() === "none") return (await channels.of(replica)) === own ? own : "on";
    await acl.publish(replica, own);
    await deps.reportLost(replica);
    const place = channels.places(replica).find(({ keyId }) => keyId === own.keyId);
    if (!place) return "on";
    const ending = place.ending;
    if (ending === undefined) {
      if (own.isPast || own.end) await goOn(replica, own);
      return own;
    }
    own.isPast = true;
    if (own.end?.record !== ending) {
      // It was met before it was known to be the one: it is looked for once more.
      await channels.forget(replica.id);
      await replica.write((write) => notePlace(write, replica, own.keyId, { acl: undefined, end: undefined }));
      return "on";
    }
    if (!(await roundAsMember(replica, own, deps.timers))) return own;
    await leave(replica, own, own.end.seq);
    return "on";
  };

  /** The record that ended the place lost with its branch: it is read on, and filled. */
  const goOn = async (replica: Replica, own: SpaceChannel): Promise<void> => {
    own.isPast = false;
    own.end = undefined;
    await replica.write((write) => notePlace(write, replica, own.keyId, { end: undefined }));
  };

  /** What came behind the end does not count as kept there, whoever wrote it: it is put into the place that follows. */
  const leave = async (replica: Replica, own: SpaceChannel, endSeq: number): Promise<void> => {
    const late = await own.channel.itemsBehind(endSeq);
    await replica.write((write) => {
      write.unpublished(late);
      notePlace(write, replica, own.keyId, { read: true });
    });
  };

  const walk = async (replica: Replica): Promise<SpaceChannel | undefined> => {
    await deps.lookAfterOld(replica, channels.get(replica.id));
    await beginAnew(replica);
    for (let steps = 0; steps < channels.places(replica).length + STEPS_BEYOND; steps++) {
      const at = await step(replica);
      if (at !== "on") return at;
    }
    return undefined;
  };

  return {
    /** The channel of the present place, read to the tail of its ACL log; undefined when no way leads there. */
    toPresent: (replica: Replica): Promise<SpaceChannel | undefined> => walks.run(replica.id, () => walk(replica)),
  };
}
