import type { SpaceId } from "../base/ids.ts";
import type { RecordOp } from "../change/codec/change-body.ts";
import type { DatasetRules } from "../change/codec/dataset-rules.ts";
import type { ObjectEntry } from "../change/graph/object-cache.ts";
import type { WriteTx } from "../change/space-engine.ts";
import type { Json, JsonObject } from "../protocol/json.ts";
import type { Space } from "../space/space.ts";
import { PROFILE_RECORD, PROFILE_RULES, SET_ONCE, SPACES_RULES, TECH_INDEX_TYPE } from "./tech-datasets.ts";

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

type LocalFields = Record<string, Json | undefined>;

/** Typed access to the account's own space. */
export type TechSpace = ReturnType<typeof createTechSpace>;

export function createTechSpace(space: Space, index: ObjectEntry) {
  const { engine } = space;

  const write = (rules: DatasetRules, id: string, ops: RecordOp[]) => engine.write((tx) => writeIn(tx, rules, id, ops));

  const writeIn = (tx: WriteTx, rules: DatasetRules, id: string, ops: RecordOp[], local?: LocalFields) => {
    if (ops.length > 0) tx.append(index, { dataset: rules.name, records: [{ id, upsert: true, ops }] }, rules);
    if (local) tx.setLocal(index, rules.name, id, local);
  };

  /** What a space's row says once and for all stays. */
  const writeSpaceRow = (tx: WriteTx, spaceId: SpaceId, fields: JsonObject, local?: LocalFields) => {
    const row = tx.record(index, SPACES_RULES.name, spaceId) ?? {};
    const open = Object.entries(fields).filter(([field]) => !(SET_ONCE.has(field) && Object.hasOwn(row, field)));
    writeIn(tx, SPACES_RULES, spaceId, setting(Object.fromEntries(open)), local);
  };

  return {
    space,
    index,
    write,
    /** Sets the fields of a record that `plan` gives, seeing it as it is when the write's turn comes; creates it. */
    async set(rules: DatasetRules, id: string, plan: (row: JsonObject | undefined) => JsonObject): Promise<void> {
      if (setting(plan(engine.record(index, rules.name, id))).length > 0)
        await engine.write((tx) => writeIn(tx, rules, id, setting(plan(tx.record(index, rules.name, id)))));
    },
    /** Sets fields of a space's row, making it. `local` ones are this device's. */
    setSpaceRow: (spaceId: SpaceId, fields: JsonObject, local?: LocalFields): Promise<void> =>
      engine.write((tx) => writeSpaceRow(tx, spaceId, fields, local)),
    /** Fails as setting these fields would, and sets nothing. */
    trySpaceRow: (spaceId: SpaceId, fields: JsonObject): Promise<void> =>
      engine.write((tx) => {
        writeSpaceRow(tx, spaceId, fields);
        tx.rollBackWith(undefined);
      }),
    record: (rules: DatasetRules, id: string): JsonObject | undefined => engine.record(index, rules.name, id),
    /** The same as its JSON text, which is the same as long as the record is. */
    recordText: (rules: DatasetRules, id: string): string | undefined => engine.recordText(index, rules.name, id),
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

const setting = (fields: JsonObject): RecordOp[] =>
  Object.keys(fields).length > 0 ? [{ type: "$set", path: "", value: fields }] : [];

/** The index object of a tech space, made on first use. */
export async function techIndex(space: Space): Promise<ObjectEntry> {
  return space.engine.write((tx) => tx.ensureDerived(TECH_INDEX_TYPE, "index"));
}
