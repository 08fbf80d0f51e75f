import { dlopen, type FFIFunction } from "bun:ffi";

/** Opens functions of the GNU C library; returns undefined where there is none (not Linux, or another libc). */
export function openLibc<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  if (process.platform !== "linux") return undefined;
  try {
    return dlopen("libc.so.6", functions).symbols;
  } catch {
    return undefined;
  }
}
