import type { ObjectId, SpaceId } from "../../base/ids.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { READ_FRONTIERS_DATASET, READ_FRONTIERS_RULES } from "./private-datasets.ts";
import type { TechSpace } from "./tech-space.ts";

/** The writer and seq of the change with which something came. */
export interface ChangeOrigin {
  writer: string;
  seq: number;
}

/** How far this account has read, over all its devices. */
export interface ReadFrontiers {
  /** Whether the account has read what came with this change. */
  covers(objectId: ObjectId, origin: ChangeOrigin): boolean;
  /**
   * Marks as read what came with these changes, and everything before them of the same writers. Durable when it resolves.
   */
  advance(spaceId: SpaceId, objectId: ObjectId, origins: readonly ChangeOrigin[]): Promise<void>;
  /** Called with the objects whose frontier changed, on whichever device. Answers how to stop. */
  onChanged(listener: (objectId: ObjectId) => void): () => void;
}

export function createReadFrontiers(tech: TechSpace): ReadFrontiers {
  const writersOf = (objectId: ObjectId): JsonObject =>
    (tech.record(READ_FRONTIERS_RULES, objectId)?.["writers"] ?? {}) as JsonObject;
  return {
    covers(objectId, origin) {
      const seq = writersOf(objectId)[origin.writer];
      return typeof seq === "number" && seq >= origin.seq;
    },
    async advance(spaceId, objectId, origins) {
      await tech.set(READ_FRONTIERS_RULES, objectId, (row) => {
        const known = (row?.["writers"] ?? {}) as JsonObject;
        const fields: JsonObject = {};
        for (const { writer, seq } of origins) {
          const before = Math.max(
            (known[writer] as number | undefined) ?? 0,
            (fields[`writers.${writer}`] as number | undefined) ?? 0,
          );
          if (seq > before) fields[`writers.${writer}`] = seq;
        }
        return Object.keys(known).length === 0 && Object.keys(fields).length > 0 ? { spaceId, ...fields } : fields;
      });
    },
    onChanged: (listener) =>
      tech.space.events.on("committed", (batch) => {
        for (const touched of batch.touched)
          if (touched.dataset === READ_FRONTIERS_DATASET) listener(touched.recordId as ObjectId);
      }),
  };
}
