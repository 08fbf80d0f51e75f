import { readUint32, utf8ToBytes, writeUint32 } from "../../base/bytes.ts";
import { open, seal } from "../../crypto/seal.ts";

/**
 * One message of a log: several items, framed and sealed together, so that what queued up behind one round trip costs
 * one message. Layout before sealing: version (1 byte), then for each item its length (4 bytes, big-endian) and bytes.
 * The outer seal is AES-256-GCM with the subject as additional data, so that a message counts nowhere else.
 */

const VERSION = 1;
export const MESSAGE_ITEMS_MAX = 1024;
/** Bytes of items above which a message takes no further one. A single item may be larger. */
export const MESSAGE_TARGET_BYTES = 256 << 10;
/** What sealing and the message's headers add, generously. */
export const MESSAGE_OVERHEAD_BYTES = 4096;

export function sealLogMessage(sealKey: Uint8Array, subject: string, items: readonly Uint8Array[]): Uint8Array {
  if (items.length === 0 || items.length > MESSAGE_ITEMS_MAX)
    throw new RangeError(`a message of ${items.length} items`);
  let length = 1;
  for (const item of items) length += 4 + item.length;
  const plain = new Uint8Array(length);
  plain[0] = VERSION;
  let at = 1;
  for (const item of items) {
    writeUint32(plain, at, item.length);
    plain.set(item, at + 4);
    at += 4 + item.length;
  }
  return seal(sealKey, plain, utf8ToBytes(subject));
}

/** The items, or undefined for junk: not sealed under this key for this subject, or malformed inside. */
export function openLogMessage(sealKey: Uint8Array, subject: string, message: Uint8Array): Uint8Array[] | undefined {
  const plain = open(sealKey, message, utf8ToBytes(subject));
  if (!plain || plain[0] !== VERSION) return undefined;
  const items: Uint8Array[] = [];
  let at = 1;
  while (at < plain.length) {
    if (plain.length - at < 4 || items.length === MESSAGE_ITEMS_MAX) return undefined;
    const end = at + 4 + readUint32(plain, at);
    if (end > plain.length) return undefined;
    items.push(plain.subarray(at + 4, end));
    at = end;
  }
  return items.length === 0 ? undefined : items;
}
