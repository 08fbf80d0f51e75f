import { FFIType, ptr } from "bun:ffi";
import { setPriority } from "node:os";
import { openLibc } from "./libc.ts";

/** Bytes of the kernel's processor set, which has room for 1,024 processors. */
const SET_BYTES = 128;

/**
 * Lets this process give way to requests: it gets `priority` (`os.constants.priority`), and where there are several
 * processors it leaves one to others. Priority alone is not enough: when every processor is busy, a process that wakes up
 * waits for the end of a time slice, 3 to 4 ms. Applies to this thread and to those it starts from now on. On anything
 * but Linux with the GNU libc, only the priority is set.
 */
export function giveWay(priority: number): void {
  setPriority(0, priority);
  leaveOneProcessor();
}

/** Calls sched_setaffinity(2) with the current set without its first processor. */
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
