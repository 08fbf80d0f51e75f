import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeLibraryDirectory, putLibrary } from "../../base/native-library.ts";
import { ortLibrary } from "./ort-library.ts";

/** Where the built-in onnxruntime-node looks for its binding; build.ts writes the same name into it. */
const BINDING = Symbol.for("svc.ort-binding");

/**
 * Writes the native library into `directory` (made 0700), all files beside each other, and registers where the binding is. A file
 * is used only if its bytes are those that were built in. Throws where there is no library.
 */
export function prepareOrtBinding(directory: string): void {
  const files = ortLibrary;
  if (!files) return;
  const binding = files.find(({ name }) => name.endsWith(".node"));
  if (!binding) throw new Error(`there is no library that runs models for ${process.platform}-${process.arch}`);
  makeLibraryDirectory(directory);
  for (const file of files) {
    const target = join(directory, file.name);
    const isThere = () => digestOf(target) === file.sha256;
    if (!isThere()) putLibrary(target, Bun.zstdDecompressSync(readFileSync(file.path)), isThere);
  }
  (globalThis as Record<symbol, unknown>)[BINDING] = join(directory, binding.name);
}

function digestOf(path: string): string | undefined {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    return undefined; // the file is missing or not readable, so it is written anew
  }
}
