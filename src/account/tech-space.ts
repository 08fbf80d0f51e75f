import type { SpaceId } from "../base/ids.ts";
import type { RecordOp } from "../change/codec/change-body.ts";
import type { DatasetRules } from "../change/codec/dataset-rules.ts";
import type { ObjectEntry } from "../change/graph/object-cache.ts";
import type { WriteTx } from "../change/space-engine.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { Space } from "../space/space.ts";
import { PROFILE_RECORD, PROFILE_RULES, SPACES_RULES, TECH_INDEX_TYPE } from "./tech-datasets.ts";

/** Status of a space's row (SPACE-2). */
export type SpaceStatus =
  | "active"
  | "joining"
  | "one_to_one_pending"
  | "one_to_one_declined"
  | "invite_pending"
  | "invite_declined"
  | "guest_revoked"
  | "deleted";

export interface Profile {
  name?: string;
  description?: string;
  iconCid?: string;
}

/** Typed access to the account's own space. */
export type TechSpace = ReturnType<typeof createTechSpace>;

export function createTechSpace(space: Space, index: ObjectEntry) {
  const { engine } = space;

  const write = (rules: DatasetRules, id: string, ops: RecordOp[], local?: Record<string, Json | undefined>) =>
    engine.write((tx) => writeIn(tx, rules, id, ops, local));

  const writeIn = (
    tx: WriteTx,
    rules: DatasetRules,
    id: string,
    ops: RecordOp[],
    local?: Record<string, Json | undefined>,
  ) => {
    const appended =
      ops.length > 0 && tx.append(index, { dataset: rules.name, records: [{ id, upsert: true, ops }] }, rules);
    if (local) tx.setLocal(index, rules.name, id, local);
    return appended || undefined;
  };

  return {
    space,
    index,
    /** Sets fields of a record, creating it; `local` ones stay on this device. */
    set: (rules: DatasetRules, id: string, fields: JsonObject, local?: Record<string, Json | undefined>) =>
      write(rules, id, Object.keys(fields).length > 0 ? [{ type: "$set", path: "", value: fields }] : [], local),
    write,
    writeIn,
    record: (rules: DatasetRules, id: string): JsonObject | undefined => engine.record(index, rules.name, id),
    spaceRow: (spaceId: SpaceId): JsonObject | undefined => engine.record(index, SPACES_RULES.name, spaceId),
    /** Absent fields keep their values; empty texts clear. */
    setProfile: async (profile: Profile): Promise<void> => {
      await write(PROFILE_RULES, PROFILE_RECORD, [{ type: "$set", path: "", value: { ...profile } }]);
    },
    profile(): Profile | undefined {
      const row = engine.record(index, PROFILE_RULES.name, PROFILE_RECORD);
      if (!row) return undefined;
      const profile: Profile = {};
      for (const field of ["name", "description", "iconCid"] as const) {
        const value = row[field];
        if (typeof value === "string" && value !== "") profile[field] = value;
      }
      return profile;
    },
  };
}

/** The index object of a tech space, made on first use. */
export async function techIndex(space: Space): Promise<ObjectEntry> {
  return space.engine.write((tx) => tx.ensureDerived(TECH_INDEX_TYPE, "index"));
}
