import type { SpaceId } from "../../base/ids.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import type { AccountStore } from "../../store/account-store.ts";
import { SPACES_RULES } from "../own-space/tech-datasets.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import { spaceInfoOf } from "./space-info.ts";

/** The rows of the account's spaces: those its devices share in the tech space, and those that this device alone shows. */
export function createSpaceRows({ tech, store }: { tech: TechSpace; store: AccountStore }) {
  /** The row that the account's devices share or, where there is none, the one that this device alone shows. */
  const known = (spaceId: string): JsonObject | undefined => {
    const row = digestOfCid(spaceId) ? tech.spaceRow(spaceId as SpaceId) : undefined;
    const pending = row ? undefined : store.pendingSpace(spaceId);
    return pending === undefined ? row : (JSON.parse(pending) as JsonObject);
  };
  /** The same. Errors: space.not_found. */
  const of = (spaceId: string): JsonObject => {
    const row = known(spaceId);
    if (!row) throw svcError("space.not_found", { spaceId });
    return row;
  };

  const patchPending = (
    spaceId: string,
    set: Record<string, string | number | boolean>,
    unset: readonly string[],
  ): Promise<void> => {
    const row = of(spaceId);
    const settings: JsonObject = { ...(row["settings"] as JsonObject | undefined), ...set };
    for (const key of unset) delete settings[key];
    return store.setPendingSpace(spaceId, JSON.stringify({ ...row, settings }));
  };

  return {
    known,
    of,

    /** Rows by status: active ones by default, `all`, or exactly one status. */
    list(status: string | undefined): SpaceInfo[] {
      const infos: SpaceInfo[] = [];
      const shared = tech.space.engine.records(tech.index, SPACES_RULES.name);
      const pending = store
        .pendingSpaces()
        .map((text) => JSON.parse(text) as JsonObject)
        .filter((row) => !tech.spaceRow(row["id"] as SpaceId));
      for (const row of [...shared, ...pending]) {
        const info = spaceInfoOf(row);
        if (status === "all" || info.status === (status ?? "active")) infos.push(info);
      }
      return infos;
    },

    /** The account's own settings of a space; works on any known row. */
    async patchSettings(
      spaceId: string,
      set: Record<string, string | number | boolean>,
      unset: readonly string[],
    ): Promise<void> {
      of(spaceId);
      if (!tech.spaceRow(spaceId as SpaceId)) return patchPending(spaceId, set, unset);
      const ops = [
        ...Object.entries(set).map(([key, value]) => ({
          type: "$set" as const,
          path: `settings.${key}`,
          value: value as Json,
        })),
        ...unset.map((key) => ({ type: "$unset" as const, path: `settings.${key}` })),
      ];
      await tech.write(SPACES_RULES, spaceId, ops);
    },
  };
}
