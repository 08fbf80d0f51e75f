import { SPACES_RULES } from "../account/own-space/tech-datasets.ts";
import type { Profile, TechSpace } from "../account/own-space/tech-space.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { SvcError } from "../protocol/errors.ts";
import type { SpaceInfo } from "../protocol/space.ts";

/** The key, in the store of the account's space, of the spaces whose members are still to be notified, as a JSON list. */
const UNNOTIFIED = "profile.unnotified";
const RETRY_MS = 30_000;

/**
 * Notifies the members of every space that this account is in, or asks to join, of its profile (SYNC-14). The list of spaces that are still
 * to be notified is durable before the profile changes, so that neither a crash nor a failing network leaves some with the old
 * profile.
 */
export function createProfileNews(deps: {
  tech: TechSpace;
  spaces: {
    list(status: "all"): SpaceInfo[];
    info(spaceId: string): SpaceInfo;
    open(spaceId: string): Promise<{ members: { profileChanged(): Promise<void> } }>;
  };
  log: Log;
}) {
  const { tech, spaces, log } = deps;
  const { engine, events } = tech.space;
  const stored = engine.note(UNNOTIFIED);
  const unnotified = new Set<SpaceId>(stored ? (JSON.parse(Buffer.from(stored).toString()) as SpaceId[]) : []);
  /** Counts the changes of the profile, so that a space to which an older profile was sent is not marked as notified. */
  let generation = 0;
  /** How many changes of the profile are under way: what is sent meanwhile may still be the former profile. */
  let changing = 0;
  let notifying: Promise<void> | undefined;
  let more = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;

  const save = (): Promise<void> =>
    engine.write((tx) => {
      if (unnotified.size === 0) tx.dropNote(UNNOTIFIED);
      else tx.putNote(UNNOTIFIED, Buffer.from(JSON.stringify([...unnotified])));
    });

  /** Whether the members have the profile now, or there are none to notify. */
  const notifyOne = async (spaceId: SpaceId): Promise<boolean> => {
    const { status } = spaces.info(spaceId);
    if (status === "joining") return false; // notified when it is active
    if (status === "active") await (await spaces.open(spaceId)).members.profileChanged();
    return true;
  };

  const notifyAll = async (): Promise<void> => {
    const before = unnotified.size;
    let failed = false;
    for (const spaceId of unnotified) {
      if (stopped) return;
      const sent = generation;
      try {
        if ((await notifyOne(spaceId)) && sent === generation && changing === 0) unnotified.delete(spaceId);
      } catch (error) {
        failed = true;
        if (!(error instanceof SvcError && error.code.startsWith("space.")))
          log.warn("the members of a space were not notified of the profile; it is tried again", {
            err: error,
            spaceId,
          });
      }
    }
    if (unnotified.size !== before) await save();
    clearTimeout(timer);
    if (failed && !stopped) timer = setTimeout(notify, RETRY_MS);
  };

  /** Notifies one space after the other; a change that comes meanwhile is sent afterwards. */
  const notify = (): void => {
    more = notifying !== undefined;
    if (stopped || more || unnotified.size === 0) return;
    notifying = notifyAll()
      .catch((error: unknown) => log.error("notifying others of the profile failed", { err: error }))
      .finally(() => {
        notifying = undefined;
        if (more) notify();
      });
  };

  const unfollow = events.on("committed", ({ touched }) => {
    const isAwaited = touched.some(
      ({ dataset, recordId }) => dataset === SPACES_RULES.name && unnotified.has(recordId as SpaceId),
    );
    if (isAwaited) notify();
  });

  return {
    name: "profile",
    /** Changes the profile; members are notified in the background. */
    async change(profile: Profile): Promise<void> {
      changing++;
      try {
        for (const { id, status } of spaces.list("all"))
          if (status === "active" || status === "joining") unnotified.add(id as SpaceId);
        await save();
        await tech.setProfile(profile);
      } finally {
        changing--;
        generation++;
      }
      notify();
    },
    /** Continues what an earlier run began. */
    start: notify,
    async stop(): Promise<void> {
      stopped = true;
      unfollow();
      clearTimeout(timer);
      await notifying;
    },
  };
}

export type ProfileNews = ReturnType<typeof createProfileNews>;
