const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** The cost of base58 grows with the square of the length, so it is only for ids and keys: longer input is refused. */
const MAX_BYTES = 256;
const MAX_CHARS = 352;

const valueByCode = new Int8Array(128).fill(-1);
for (let value = 0; value < ALPHABET.length; value++) valueByCode[ALPHABET.charCodeAt(value)] = value;

/**
 * Encodes at most 256 bytes in base58 (Bitcoin alphabet); throws RangeError on more. Every leading zero byte becomes a
 * `1`.
 */
export function bytesToBase58(bytes: Uint8Array): string {
  if (bytes.length > MAX_BYTES) throw new RangeError(`base58 takes at most ${MAX_BYTES} bytes, got ${bytes.length}`);
  let zeros = 0;
  while (zeros < bytes.length && bytes[zeros] === 0) zeros++;
  const digits = new Uint8Array(MAX_CHARS); // little-endian base-58 digits
  let length = 0;
  for (let i = zeros; i < bytes.length; i++) {
    let carry = bytes[i]!;
    for (let d = 0; d < length; d++) {
      carry += digits[d]! << 8;
      digits[d] = carry % 58;
      carry = (carry / 58) | 0;
    }
    while (carry > 0) {
      digits[length++] = carry % 58;
      carry = (carry / 58) | 0;
    }
  }
  let text = "1".repeat(zeros);
  while (length > 0) text += ALPHABET[digits[--length]!];
  return text;
}

/** The bytes, or undefined for a character outside the alphabet or more than 256 bytes. */
export function base58ToBytes(text: string): Uint8Array | undefined {
  if (text.length > MAX_CHARS) return undefined;
  let zeros = 0;
  while (zeros < text.length && text[zeros] === "1") zeros++;
  const digits = new Uint8Array(MAX_CHARS); // little-endian bytes
  let length = 0;
  for (let i = zeros; i < text.length; i++) {
    const value = valueByCode[text.charCodeAt(i)] ?? -1;
    if (value < 0) return undefined;
    let carry: number = value;
    for (let d = 0; d < length; d++) {
      carry += digits[d]! * 58;
      digits[d] = carry & 0xff;
      carry >>= 8;
    }
    while (carry > 0) {
      digits[length++] = carry & 0xff;
      carry >>= 8;
    }
  }
  if (zeros + length > MAX_BYTES) return undefined;
  const bytes = new Uint8Array(zeros + length);
  for (let d = 0; d < length; d++) bytes[zeros + d] = digits[length - 1 - d]!;
  return bytes;
}
