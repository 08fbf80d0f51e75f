/** Messages between the server and the process that turns texts into vectors. */
/** The command-line argument that makes the executable run as this process. */
export const EMBED_CHILD = "__embed";

export type EmbedRequest =
  | {
      readonly kind: "load";
      readonly modelsDir: string;
      readonly model: string;
      /** The directory for the native library; it is private to this server. */
      readonly nativeDir: string;
      readonly threads: number;
    }
  | { readonly kind: "embed"; readonly texts: readonly string[]; readonly use: "query" | "passage" };

export interface Loaded {
  readonly dimension: number;
  /** The mean of the model's vectors for unrelated texts. */
  readonly center: Float32Array;
}

/** For each text, the vectors of its parts. */
export interface Embedded {
  readonly vectors: readonly (readonly Float32Array[])[];
  /** Bytes of memory that the process holds. */
  readonly rssBytes: number;
}
