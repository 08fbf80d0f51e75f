import type { ObjectId, SpaceId } from "../../base/ids.ts";
import type { RecordOp } from "../../change/codec/change-body.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";
import { ACCOUNT_VALUES_DATASET, ACCOUNT_VALUES_RULES } from "./private-datasets.ts";
import type { TechSpace } from "./tech-space.ts";

/** Property values with scope `account`: private to the account, the same on all its devices. */
export interface AccountValues {
  /** Sets values by dotted path (`<typeId>.<propId>`); null removes one. Durable when it resolves. */
  set(spaceId: SpaceId, objectId: ObjectId, values: Readonly<Record<string, Json>>): Promise<void>;
  /** The values of an object by dotted path. */
  of(objectId: ObjectId): Record<string, Json>;
  /** The objects of a space that have such values. */
  objectsOf(spaceId: SpaceId): ObjectId[];
  /** Called with the objects whose values changed, on whichever device. Answers how to stop. */
  onChanged(listener: (objectId: ObjectId) => void): () => void;
}

export function createAccountValues(tech: TechSpace): AccountValues {
  const { engine, events } = tech.space;
  return {
    async set(spaceId, objectId, values) {
      const ops = Object.entries(values).map(
        ([path, value]): RecordOp =>
          value === null ? { type: "$unset", path: `values.${path}` } : { type: "$set", path: `values.${path}`, value },
      );
      await tech.write(ACCOUNT_VALUES_RULES, objectId, [{ type: "$set", path: "spaceId", value: spaceId }, ...ops]);
    },
    of(objectId) {
      const values = tech.record(ACCOUNT_VALUES_RULES, objectId)?.["values"];
      const flat: Record<string, Json> = {};
      for (const [typeId, properties] of Object.entries(isJsonObject(values) ? values : {})) {
        for (const [property, value] of Object.entries(isJsonObject(properties) ? properties : {}))
          flat[`${typeId}.${property}`] = value;
      }
      return flat;
    },
    objectsOf(spaceId) {
      const rows = engine.records(tech.index, ACCOUNT_VALUES_DATASET);
      return rows.filter((row) => row["spaceId"] === spaceId).map((row) => row["id"] as ObjectId);
    },
    onChanged: (listener) =>
      events.on("committed", (batch) => {
        for (const touched of batch.touched)
          if (touched.dataset === ACCOUNT_VALUES_DATASET) listener(touched.recordId as ObjectId);
      }),
  };
}
