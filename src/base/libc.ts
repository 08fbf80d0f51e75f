import { dlopen, type FFIFunction } from "bun:ffi";

/** Functions of the GNU C library; undefined where there is none: elsewhere than on Linux, or with another libc. */
export function openLibc<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  if (process.platform !== "linux") return undefined;
  try {
    return dlopen("libc.so.6", functions).symbols;
  } catch {
    return undefined;
  }
}
