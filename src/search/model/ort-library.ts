/**
 * The native library that runs models. When the program runs from source, the library is in its npm package; for the executable,
 * build.ts replaces this module by one that holds the library of the target, compressed.
 */
export interface BuiltInFile {
  /** The file's name on the disk, beside the others. */
  readonly name: string;
  /** The path from which the zstd-compressed file is read. */
  readonly path: string;
  /** SHA-256 of the content. */
  readonly sha256: string;
}

/** Absent: the package's own files are loaded. Empty: there is no library for this platform. */
export const ortLibrary: readonly BuiltInFile[] | undefined = undefined;
