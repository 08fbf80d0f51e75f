/** Messages between the server and the process that turns texts into vectors. */
/** The word that makes the executable this process. */
export const EMBED_CHILD = "__embed";

export type EmbedRequest =
  | {
      readonly kind: "load";
      readonly modelsDir: string;
      readonly model: string;
      /** Where the native library is put; private to this server. */
      readonly nativeDir: string;
      readonly threads: number;
    }
  | { readonly kind: "embed"; readonly texts: readonly string[]; readonly use: "query" | "passage" };

export interface Loaded {
  readonly dimension: number;
  /** The middle of what the model says of anything. */
  readonly center: Float32Array;
}

/** For each text the vectors of its parts. */
export interface Embedded {
  readonly vectors: readonly (readonly Float32Array[])[];
  /** Bytes of memory that the process holds. */
  readonly rssBytes: number;
}
