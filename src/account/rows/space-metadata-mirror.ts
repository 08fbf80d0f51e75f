import type { Space } from "../../space/space.ts";
import { SPACE_INDEX_DATASET, SPACE_INDEX_RECORD, SPACE_INDEX_TYPE } from "../../space/space-index.ts";
import type { TechSpace } from "../own-space/tech-space.ts";

/**
 * Keeps the row in the tech space equal to the metadata in the space (SPACE-10), whoever changed that, as long as the space is open.
 */
export function mirrorMetadata(space: Space, tech: TechSpace, onError: (error: unknown) => void): void {
  const mirror = async (): Promise<void> => {
    const index = space.engine.object(space.engine.derivedId(SPACE_INDEX_TYPE, ""));
    const metadata = index && space.engine.record(index, SPACE_INDEX_DATASET, SPACE_INDEX_RECORD);
    const row = tech.spaceRow(space.id);
    if (!metadata || !row) return;
    // Each by itself: what a member wrote that the row has no room for keeps back nothing else.
    for (const field of ["name", "description", "iconCid"]) {
      const value = metadata[field] ?? "";
      if (value !== (row[field] ?? "")) await tech.setSpaceRow(space.id, { [field]: value }).catch(onError);
    }
  };
  space.events.on("committed", (batch) => {
    if (batch.touched.some((touched) => touched.dataset === SPACE_INDEX_DATASET)) mirror().catch(onError);
  });
}
