/** To the worker: changes one behind the other. */
export interface CheckRequest {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly lengths: Uint32Array<ArrayBuffer>;
}

/** From the worker: for each change the SHA-256 of its bytes if it was found good, else zeros. */
export type CheckReply = Uint8Array<ArrayBuffer>;

export const DIGEST_BYTES = 32;
