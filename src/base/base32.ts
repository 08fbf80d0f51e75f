const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

const valueByCode = new Int8Array(128).fill(-1);
for (let value = 0; value < ALPHABET.length; value++) valueByCode[ALPHABET.charCodeAt(value)] = value;
/** Encodes ten bits at a time: one look-up gives two characters. */
const pairs = Array.from({ length: 1024 }, (_, bits) => ALPHABET[bits >> 5]! + ALPHABET[bits & 31]!);

/** RFC 4648 § 6 base32, lower case, without padding (multibase `b`, without its prefix). */
export function bytesToBase32(bytes: Uint8Array): string {
  let text = "";
  let i = 0;
  for (; i + 5 <= bytes.length; i += 5) {
    const a = bytes[i]!;
    const b = bytes[i + 1]!;
    const c = bytes[i + 2]!;
    const d = bytes[i + 3]!;
    const e = bytes[i + 4]!;
    text +=
      pairs[(a << 2) | (b >> 6)]! +
      pairs[((b & 0x3f) << 4) | (c >> 4)]! +
      pairs[((c & 0x0f) << 6) | (d >> 2)]! +
      pairs[((d & 0x03) << 8) | e]!;
  }
  let buffer = 0;
  let bits = 0;
  for (; i < bytes.length; i++) {
    buffer = ((buffer << 8) | bytes[i]!) & 0xffff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET[(buffer >> bits) & 31];
    }
  }
  return bits > 0 ? text + ALPHABET[(buffer << (5 - bits)) & 31] : text;
}

/** The bytes, or undefined for another alphabet, an impossible length or last bits that are not zero. */
export function base32ToBytes(text: string): Uint8Array | undefined {
  const spare = (text.length * 5) % 8;
  if (spare >= 5) return undefined;
  const bytes = new Uint8Array((text.length * 5) >> 3);
  let buffer = 0;
  let bits = 0;
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const value = valueByCode[text.charCodeAt(i)] ?? -1;
    if (value < 0) return undefined;
    buffer = ((buffer << 5) | value) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[length++] = buffer >> bits;
    }
  }
  return (buffer & ((1 << bits) - 1)) === 0 ? bytes : undefined;
}
