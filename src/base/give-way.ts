import { FFIType, ptr } from "bun:ffi";
import { setPriority } from "node:os";
import { openLibc } from "./libc.ts";

/** Bytes of the kernel's set of processors: 1,024 of them. */
const SET_BYTES = 128;

/**
 * Lets this process give way to requests: it gets `priority` (`os.constants.priority`), and where there are several
 * processors, one is left to others. Priority alone lets somebody who wakes up wait for the end of a time slice, 3 to 4 ms,
 * once every processor computes. Holds for this thread and those it starts from now on. Elsewhere than on Linux with the GNU
 * libc, priority is all there is.
 */
export function giveWay(priority: number): void {
  setPriority(0, priority);
  leaveOneProcessor();
}

/** sched_setaffinity(2) with the set that it has, without its first processor. */
function leaveOneProcessor(): void {
  const args = [FFIType.i32, FFIType.u64, FFIType.ptr] as const;
  const libc = openLibc({
    sched_getaffinity: { args, returns: FFIType.i32 },
    sched_setaffinity: { args, returns: FFIType.i32 },
  });
  if (!libc) return;
  const allowed = new Uint8Array(SET_BYTES);
  if (libc.sched_getaffinity(0, BigInt(SET_BYTES), ptr(allowed)) < 0) return;
  const first = allowed.findIndex((byte) => byte !== 0);
  if (first < 0) return;
  allowed[first]! &= allowed[first]! - 1;
  if (allowed.some((byte) => byte !== 0)) libc.sched_setaffinity(0, BigInt(SET_BYTES), ptr(allowed));
}
