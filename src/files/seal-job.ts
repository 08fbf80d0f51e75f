/** The request to a sealing thread: seal the chunks of a file and return their hashes. */
export interface SealRequest {
  readonly path: string;
  readonly key: Uint8Array;
  readonly hash: Uint8Array;
  readonly size: number;
}

/** The digests, 32 bytes each; or why the file could not be read to its end. */
export type SealReply = { readonly digests: Uint8Array } | { readonly fault: string };
