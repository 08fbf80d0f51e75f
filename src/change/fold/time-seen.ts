import { readUint64, writeUint64 } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceStore } from "../../store/space-store.ts";

const KEY = "time.seen";
/** However far the clock moved since it was looked at last, no more than this has passed for sure. */
const SEEN_AT_ONCE_MS = 24 * 60 * 60 * 1000;

/**
 * Time by which what is kept for a while grows old: Unix milliseconds when it begins, but a clock that is set ahead moves it
 * by a day at most, and one that is set back not at all. Whoever drops anything by age looks at it daily.
 */
export interface TimeSeen {
  nowMs(): number;
  /** Keeps what has passed by now. Within a write. */
  pass(): void;
}

export function createTimeSeen(store: Pick<SpaceStore, "meta" | "putMeta">, clock: Clock): TimeSeen {
  const read = (wallMs: number): number => {
    const kept = store.meta(KEY);
    if (!kept) return wallMs;
    const [seenMs, lookedAtMs] = [Number(readUint64(kept, 0)), Number(readUint64(kept, 8))];
    return seenMs + Math.min(SEEN_AT_ONCE_MS, Math.max(0, wallMs - lookedAtMs));
  };
  return {
    nowMs: () => read(clock.nowMs()),
    pass() {
      const wallMs = clock.nowMs();
      const kept = new Uint8Array(16);
      writeUint64(kept, 0, BigInt(read(wallMs)));
      writeUint64(kept, 8, BigInt(wallMs));
      store.putMeta(KEY, kept);
    },
  };
}
