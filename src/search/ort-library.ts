/**
 * The native library that runs models. From source it lies in its npm package; in the executable build.ts replaces this
 * module by one that carries the library of the target, compressed.
 */
export interface EmbeddedFile {
  /** The name it is to have on the disk, beside the others. */
  readonly name: string;
  /** Readable, zstd-compressed. */
  readonly path: string;
  /** SHA-256 of the content. */
  readonly sha256: string;
}

/** Absent: the package's own files are loaded. Empty: there is no library for this platform. */
export const ortLibrary: readonly EmbeddedFile[] | undefined = undefined;
