import type { LiveSnapshot } from "./live-request.ts";
import type { SnapshotAsked } from "./live-window.ts";
import type { WatchedWindow } from "./watched-collection.ts";

/** The last snapshot is kept for later subscribers of the same window, if its texts together are no longer than this. */
const KEPT_SNAPSHOT_CHARS = 256 << 10;

export type Snapshots = ReturnType<typeof createSnapshots>;

/** Makes snapshots of windows, and keeps the last one. */
export function createSnapshots() {
  let kept: { watched: WatchedWindow; stamp: number; snapshot: LiveSnapshot } | undefined;
  return {
    /** Undefined as `LiveWindow.snapshot` is. */
    of(watched: WatchedWindow, asked: SnapshotAsked): LiveSnapshot | undefined {
      const { window } = watched;
      const same =
        kept?.watched === watched &&
        kept.stamp === window.stamp &&
        (kept.snapshot.total !== undefined) === asked.includeTotal;
      if (kept && same) return kept.snapshot;
      const snapshot = window.snapshot(asked);
      if (!snapshot) return undefined;
      let chars = 0;
      for (const text of snapshot.records) chars += text.length;
      kept = chars <= KEPT_SNAPSHOT_CHARS ? { watched, stamp: window.stamp, snapshot } : undefined;
      return snapshot;
    },
    forget(watched: WatchedWindow): void {
      if (kept?.watched === watched) kept = undefined;
    },
  };
}
