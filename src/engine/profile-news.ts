import { SPACES_RULES } from "../account/tech-datasets.ts";
import type { Profile, TechSpace } from "../account/tech-space.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { SvcError } from "../protocol/errors.ts";
import type { SpaceInfo } from "../protocol/space.ts";

/** Kept in the store of the account's space: the spaces whose members are still to be told, as a JSON list. */
const UNTOLD = "profile.untold";
const RETRY_MS = 30_000;

/**
 * What one says of oneself, told to the members of every space that one is in or asks to join. Which are still to be told
 * is durable before the profile changes, so that neither a crash nor a network that fails leaves some with the old one.
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
  const { engine } = tech.space;
  const stored = engine.store.meta(UNTOLD);
  const untold = new Set<SpaceId>(stored ? (JSON.parse(Buffer.from(stored).toString()) as SpaceId[]) : []);
  /** Counts the profiles, so that telling an older one settles nothing. */
  let generation = 0;
  /** How many are on their way: what is told meanwhile may still be the one before. */
  let changing = 0;
  let telling: Promise<void> | undefined;
  let more = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const save = (): Promise<void> =>
    engine.write(() => {
      if (untold.size === 0) engine.store.dropMeta(UNTOLD);
      else engine.store.putMeta(UNTOLD, Buffer.from(JSON.stringify([...untold])));
    });

  /** Whether the members know by now, or there are none to tell. */
  const tellOne = async (spaceId: SpaceId): Promise<boolean> => {
    const { status } = spaces.info(spaceId);
    if (status === "joining") return false; // told when it is active
    if (status === "active") await (await spaces.open(spaceId)).members.profileChanged();
    return true;
  };

  const tellAll = async (): Promise<void> => {
    const before = untold.size;
    let failed = false;
    for (const spaceId of untold) {
      if (closed) return;
      const told = generation;
      try {
        if ((await tellOne(spaceId)) && told === generation && changing === 0) untold.delete(spaceId);
      } catch (error) {
        failed = true;
        if (!(error instanceof SvcError && error.code.startsWith("space.")))
          log.warn("the members of a space were not told of the profile; it is tried again", { err: error, spaceId });
      }
    }
    if (untold.size !== before) await save();
    clearTimeout(timer);
    if (failed && !closed) timer = setTimeout(tell, RETRY_MS);
  };

  /** One after the other; what comes meanwhile is done after it. */
  const tell = (): void => {
    more = telling !== undefined;
    if (closed || more || untold.size === 0) return;
    telling = tellAll()
      .catch((error: unknown) => log.error("telling the profile failed", { err: error }))
      .finally(() => {
        telling = undefined;
        if (more) tell();
      });
  };

  const stop = engine.onCommit(({ touched }) => {
    const moved = touched.some(
      ({ dataset, recordId }) => dataset === SPACES_RULES.name && untold.has(recordId as SpaceId),
    );
    if (moved) tell();
  });

  return {
    /** Changes the profile; its members hear of it in the background. */
    async change(profile: Profile): Promise<void> {
      changing++;
      try {
        for (const { id, status } of spaces.list("all"))
          if (status === "active" || status === "joining") untold.add(id as SpaceId);
        await save();
        await tech.setProfile(profile);
      } finally {
        changing--;
        generation++;
      }
      tell();
    },
    /** Goes on with what an earlier run began. */
    start: tell,
    async close(): Promise<void> {
      closed = true;
      stop();
      clearTimeout(timer);
      await telling;
    },
  };
}

export type ProfileNews = ReturnType<typeof createProfileNews>;
