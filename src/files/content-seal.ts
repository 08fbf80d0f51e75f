import { createCipheriv, createDecipheriv } from "node:crypto";
import { concatBytes, utf8ToBytes, writeUint32, writeUint64 } from "../base/bytes.ts";
import { deriveKey } from "../crypto/derive.ts";

/**
 * Sealing of a file's content (docs/files.md). Each content has its own key, made from the epoch's read key and the
 * content's hash, so equal bytes give equal chunks within a space and epoch, and different ones everywhere else. The
 * nonce is the chunk's place. Under one key every place is sealed with only one plaintext, because the key commits to the
 * whole content and to its chunk size.
 */
export const CHUNK_BYTES = 512 << 10;
const TAG_BYTES = 16;
export const SEALED_CHUNK_BYTES_MAX = CHUNK_BYTES + TAG_BYTES;
const NONCE_BYTES = 12;
const AAD_TAG = utf8ToBytes("svc/file-chunk/v1\0");

/** The position of a chunk: level 0 is the content; each higher level holds the hashes of the level below. */
export interface ChunkPosition {
  readonly level: number;
  readonly index: number;
  /** It is the last one of its level; so a truncated content does not open. */
  readonly last: boolean;
}

export function contentKeyOf(readKey: Uint8Array, spaceId: string, contentHash: Uint8Array): Uint8Array {
  const chunkBytes = new Uint8Array(4);
  writeUint32(chunkBytes, 0, CHUNK_BYTES);
  return deriveKey(readKey, "file-content", spaceId, contentHash, chunkBytes);
}

/** Ciphertext ‖ tag (16 bytes). The same chunk at the same place always gives the same bytes. */
export function sealChunk(
  key: Uint8Array,
  contentHash: Uint8Array,
  position: ChunkPosition,
  plain: Uint8Array,
): Uint8Array {
  const cipher = createCipheriv("aes-256-gcm", key, nonceOf(position));
  cipher.setAAD(aadOf(contentHash, position));
  const sealed = new Uint8Array(plain.length + TAG_BYTES);
  sealed.set(cipher.update(plain));
  cipher.final();
  sealed.set(cipher.getAuthTag(), plain.length);
  return sealed;
}

/** The plaintext, or undefined when these bytes were not sealed for this place of this content. */
export function openChunk(
  key: Uint8Array,
  contentHash: Uint8Array,
  position: ChunkPosition,
  sealed: Uint8Array,
): Uint8Array | undefined {
  const length = sealed.length - TAG_BYTES;
  if (length < 0) return undefined;
  const decipher = createDecipheriv("aes-256-gcm", key, nonceOf(position), { authTagLength: TAG_BYTES });
  decipher.setAAD(aadOf(contentHash, position));
  decipher.setAuthTag(sealed.subarray(length));
  const plain = decipher.update(sealed.subarray(0, length));
  try {
    decipher.final();
  } catch {
    return undefined; // the tag does not match: the only error that `final` can raise here
  }
  return new Uint8Array(plain.buffer, plain.byteOffset, plain.length);
}

function nonceOf({ level, index, last }: ChunkPosition): Uint8Array {
  const nonce = new Uint8Array(NONCE_BYTES);
  nonce[0] = level;
  nonce[1] = last ? 1 : 0;
  writeUint64(nonce, 4, BigInt(index));
  return nonce;
}

function aadOf(contentHash: Uint8Array, position: ChunkPosition): Uint8Array {
  return concatBytes(AAD_TAG, contentHash, nonceOf(position));
}
