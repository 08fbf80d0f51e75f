/**
 * Bytes and their text forms. Every decoder is strict: it accepts only what its encoder would have written, so one value
 * has one text, and returns `undefined` for anything else. Results are plain `Uint8Array`s that own their memory.
 */

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Encodes a text as UTF-8. Lone surrogates become U+FFFD, so check `isWellFormed()` first where texts must round-trip.
 */
export function utf8ToBytes(text: string): Uint8Array {
  return textEncoder.encode(text);
}

/** The text, or undefined when the bytes are not UTF-8. A leading byte order mark is kept. */
export function bytesToUtf8(bytes: Uint8Array): string | undefined {
  try {
    return textDecoder.decode(bytes);
  } catch {
    return undefined;
  }
}

export function bytesToHex(bytes: Uint8Array): string {
  return bytes.toHex();
}

/** Decodes lower-case hex only. */
export function hexToBytes(text: string): Uint8Array | undefined {
  return text.length % 2 === 0 && /^[0-9a-f]*$/.test(text) ? Uint8Array.fromHex(text) : undefined;
}

/** RFC 4648 § 4, padded. */
export function bytesToBase64(bytes: Uint8Array): string {
  return bytes.toBase64();
}

export function base64ToBytes(text: string): Uint8Array | undefined {
  return decodeBase64(text, "base64", false);
}

/** RFC 4648 § 5, without padding: what tokens and links carry. */
export function bytesToBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

export function base64UrlToBytes(text: string): Uint8Array | undefined {
  return decodeBase64(text, "base64url", true);
}

function decodeBase64(text: string, alphabet: "base64" | "base64url", omitPadding: boolean): Uint8Array | undefined {
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.fromBase64(text, { alphabet });
  } catch {
    return undefined;
  }
  // The native decoder also accepts white space, padding of either kind and non-zero spare bits; we accept only our own
  // spelling.
  return bytes.toBase64({ alphabet, omitPadding }) === text ? bytes : undefined;
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** Not constant-time: compare nothing secret with it. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

/** Compares by unsigned bytes; a prefix comes first. Returns -1, 0 or 1. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

/** Big-endian 32-bit unsigned integer at `offset`; the caller has checked that four bytes are there. */
export function readUint32(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset]! << 24) | (bytes[offset + 1]! << 16) | (bytes[offset + 2]! << 8) | bytes[offset + 3]!) >>> 0;
}

/** Writes a big-endian 32-bit unsigned integer at `offset`. */
export function writeUint32(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 24;
  bytes[offset + 1] = value >>> 16;
  bytes[offset + 2] = value >>> 8;
  bytes[offset + 3] = value;
}

/** Big-endian 64-bit unsigned integer at `offset`; the caller has checked that eight bytes are there. */
export function readUint64(bytes: Uint8Array, offset: number): bigint {
  return (BigInt(readUint32(bytes, offset)) << 32n) | BigInt(readUint32(bytes, offset + 4));
}

/** Writes a big-endian 64-bit unsigned integer at `offset`. */
export function writeUint64(bytes: Uint8Array, offset: number, value: bigint): void {
  writeUint32(bytes, offset, Number((value >> 32n) & 0xffff_ffffn));
  writeUint32(bytes, offset + 4, Number(value & 0xffff_ffffn));
}

/**
 * Frees bytes that nobody else holds, at once, where they fill their buffer. Left to the garbage collector, up to 100 MB of
 * a stream would pile up between collections.
 */
export function freeBytes(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength) buffer.transfer(0);
}
