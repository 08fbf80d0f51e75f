const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

const valueByCode = new Int8Array(128).fill(-1);
for (let value = 0; value < ALPHABET.length; value++) valueByCode[ALPHABET.charCodeAt(value)] = value;
const codes = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));
/**
 * Where the letters of most texts are put together: a text that is added to piece by piece is joined when it is read, at three times
 * the cost.
 */
const scratch = Buffer.allocUnsafeSlow(256);

/** RFC 4648 § 6 base32, lower case, without padding (multibase `b`, without its prefix). */
export function bytesToBase32(bytes: Uint8Array): string {
  const length = Math.ceil((bytes.length * 8) / 5);
  const letters = length <= scratch.length ? scratch : Buffer.allocUnsafe(length);
  let at = 0;
  let buffer = 0;
  let bits = 0;
  for (let i = 0; i < bytes.length; i++) {
    buffer = ((buffer << 8) | bytes[i]!) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      letters[at++] = codes[(buffer >> bits) & 31]!;
    }
  }
  if (bits > 0) letters[at++] = codes[(buffer << (5 - bits)) & 31]!;
  return letters.toString("latin1", 0, at);
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
