/**
 * Where sqlite-vec's native library is. When the program runs from source, it is in its platform's npm package; for the
 * executable, build.ts replaces this module by one that embeds the library of the target only.
 */
import { createRequire } from "node:module";

/** A readable path (not necessarily a loadable one), or null where no library exists (musl, other platforms). */
export const sqliteVecLibrary: string | null = fromPackage();

function fromPackage(): string | null {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const suffix = { win32: "dll", darwin: "dylib" }[process.platform as string] ?? "so";
  try {
    return createRequire(import.meta.url).resolve(`sqlite-vec-${os}-${process.arch}/vec0.${suffix}`);
  } catch {
    return null;
  }
}
