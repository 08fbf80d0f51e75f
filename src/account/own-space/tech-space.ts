import type { SpaceId } from "../../base/ids.ts";
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { Space } from "../../space/space.ts";
import { type SpaceMove, statusAfter } from "./space-status.ts";
import { PROFILE_RECORD, PROFILE_RULES, SET_ONCE, SPACES_RULES, TECH_INDEX_TYPE } from "./tech-datasets.ts";

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

  const moveIn = (tx: WriteTx, spaceId: SpaceId, move: SpaceMove, fields: JsonObject, local?: LocalFields): boolean => {
    const status = statusAfter(move, tx.record(index, SPACES_RULES.name, spaceId));
    if (status !== undefined) writeSpaceRow(tx, spaceId, { status, ...fields }, local);
    return status !== undefined;
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
    /**
     * Moves the status of a space's row, and sets fields beside it. False, and nothing is set, where the row as it is when the
     * write's turn comes does not allow the move: the space has ended meanwhile, or another device has answered.
     */
    moveSpace: (spaceId: SpaceId, move: SpaceMove, fields: JsonObject = {}, local?: LocalFields): Promise<boolean> =>
      engine.write((tx) => moveIn(tx, spaceId, move, fields, local)),
    /** Fails as this move would, and sets nothing. */
    tryMove: (spaceId: SpaceId, move: SpaceMove, fields: JsonObject): Promise<void> =>
      engine.write((tx) => {
        moveIn(tx, spaceId, move, fields);
        tx.rollBackWith(undefined);
      }),
    /** Sets fields of a space's row but its status, making it. `local` ones are this device's. */
    setSpaceRow: (spaceId: SpaceId, fields: JsonObject, local?: LocalFields): Promise<void> =>
      engine.write((tx) => writeSpaceRow(tx, spaceId, fields, local)),
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
