import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { ortLibrary } from "./ort-library.ts";

/** Where the bundled onnxruntime-node looks for its binding; build.ts writes the same name into it. */
const BINDING = Symbol.for("svc.ort-binding");

/**
 * Puts the native library into `directory` (made 0700), all files beside each other, and says where the binding is. A file
 * is used only if its bytes are what was built in: a truncated library kills the process, a planted one runs as us. Throws
 * where there is no library.
 */
export function prepareOrtBinding(directory: string): void {
  const files = ortLibrary;
  if (!files) return;
  const binding = files.find(({ name }) => name.endsWith(".node"));
  if (!binding) throw new Error(`there is no library that runs models for ${process.platform}-${process.arch}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  for (const file of files) {
    const place = join(directory, file.name);
    if (digestOf(place) !== file.sha256) writeWhole(place, Bun.zstdDecompressSync(readFileSync(file.path)));
  }
  (globalThis as Record<symbol, unknown>)[BINDING] = join(directory, binding.name);
}

function digestOf(path: string): string | undefined {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    return undefined; // it is not there, or not readable: it is written anew
  }
}

/** A crash leaves a `.tmp` file, which nothing loads. */
function writeWhole(path: string, bytes: Uint8Array): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const file = openSync(temporary, "w", 0o500);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
