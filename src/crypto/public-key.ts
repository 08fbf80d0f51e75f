import { createPublicKey, type KeyObject } from "node:crypto";
import { concatBytes, hexToBytes } from "../base/bytes.ts";

export const PUBLIC_KEY_BYTES = 32;

/**
 * Whether 32 bytes may be accepted as somebody's Ed25519 public key. Refused are: another length; y ≥ p = 2^255 − 19 (RFC
 * 8032 § 5.1.3 step 1: not canonical, so one key would have two names); and the points of small order, under which
 * anybody can make signatures. It does not check whether y is on the curve, because nothing verifies under a key that is
 * not.
 */
export function admitPublicKey(bytes: Uint8Array): boolean {
  return bytes.length === PUBLIC_KEY_BYTES && !isNonCanonical(bytes) && !isSmallOrder(bytes);
}

/**
 * y-coordinates (little-endian, sign bit cleared) of the eight points of small order: y = 0 has order 4, 1 has order 1,
 * −1 has order 2, and the last two have order 8. Either sign bit is refused, even where x = 0 makes it meaningless.
 */
const SMALL_ORDER_Y: readonly Uint8Array[] = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
].map((hex) => hexToBytes(hex)!);

function isSmallOrder(bytes: Uint8Array): boolean {
  return SMALL_ORDER_Y.some((y) => {
    for (let i = 0; i < 31; i++) if (bytes[i] !== y[i]) return false;
    return (bytes[31]! & 0x7f) === y[31];
  });
}

/** y ≥ p means: all ones above the lowest byte, and that byte ≥ 0xed. */
function isNonCanonical(bytes: Uint8Array): boolean {
  if ((bytes[31]! & 0x7f) !== 0x7f || bytes[0]! < 0xed) return false;
  for (let i = 1; i < 31; i++) if (bytes[i] !== 0xff) return false;
  return true;
}

/** RFC 8410 § 4: the SubjectPublicKeyInfo encoding up to the 32 bytes of the key. */
const SPKI_PREFIX = hexToBytes("302a300506032b6570032100")!;
/** Enough for the writers of the largest spaces; an entry takes a few hundred bytes. */
const CACHE_ENTRIES = 4096;
const keyObjects = new Map<string, KeyObject>();

/** The native key of an admissible public key, or undefined. Cached; the least recently used leaves first. */
export function publicKeyObject(bytes: Uint8Array): KeyObject | undefined {
  const name = bytes.toHex();
  const cached = keyObjects.get(name);
  if (cached) {
    keyObjects.delete(name);
    keyObjects.set(name, cached);
    return cached;
  }
  if (!admitPublicKey(bytes)) return undefined;
  const key = createPublicKey({ key: Buffer.from(concatBytes(SPKI_PREFIX, bytes)), format: "der", type: "spki" });
  if (keyObjects.size >= CACHE_ENTRIES) keyObjects.delete(keyObjects.keys().next().value!);
  keyObjects.set(name, key);
  return key;
}
