import type { Clock } from "../base/clock.ts";
import { versionOf } from "./codec/version.ts";

/** Versions of device-local writes. Each sorts after every version this device has seen and is never stored in a change. */
export function createLocalVersions(clock: Clock): () => string {
  let count = 0;
  return () => {
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(++count) + (BigInt(clock.nowMs()) << 20n));
    return versionOf(Number.MAX_SAFE_INTEGER, stamp);
  };
}
