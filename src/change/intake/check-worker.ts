/** Entry of a checker: says which of the changes it is given are in canonical form and signed by their authors. */
import { sha256 } from "../../crypto/hash.ts";
import { ChangeFault, decodeChange, isDerivedRoot, isSignedByAuthor } from "../codec/change-codec.ts";
import { type CheckReply, type CheckRequest, DIGEST_BYTES } from "./check-job.ts";

declare const self: Worker;

/** What is not a signed change of ours is left to whoever takes it in, who says why. */
function isGood(bytes: Uint8Array): boolean {
  try {
    const change = decodeChange(bytes);
    return !isDerivedRoot(change) && isSignedByAuthor(change);
  } catch (error) {
    if (error instanceof ChangeFault) return false;
    throw error;
  }
}

self.onmessage = ({ data: { bytes, lengths } }: MessageEvent<CheckRequest>) => {
  const digests: CheckReply = new Uint8Array(lengths.length * DIGEST_BYTES);
  let at = 0;
  lengths.forEach((length, index) => {
    const one = bytes.subarray(at, at + length);
    at += length;
    if (isGood(one)) digests.set(sha256(one), index * DIGEST_BYTES);
  });
  self.postMessage(digests, [digests.buffer]);
};
