import type { SpaceId } from "../base/ids.ts";

/** Who keeps spaces open. A space that something live holds is not closed to save file handles. */
export interface SpaceHolds {
  /** `holds` is asked whenever a space might be closed. */
  add(holds: (spaceId: SpaceId) => boolean): void;
  isHeld(spaceId: SpaceId): boolean;
}

export function createSpaceHolds(): SpaceHolds {
  const holders: ((spaceId: SpaceId) => boolean)[] = [];
  return {
    add: (holds) => void holders.push(holds),
    isHeld: (spaceId) => holders.some((holds) => holds(spaceId)),
  };
}
