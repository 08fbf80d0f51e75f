/** What a hostile encoder does to good bytes: to their structure, so that they still decode as far as possible, and to themselves. */
import { type CborValue, decodeCbor, encodeCbor, Link } from "../../../src/base/dag-cbor.ts";
import type { Rng } from "../rng.ts";

export function bytesFrom(rng: Rng, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = rng.int(0, 255);
  return bytes;
}

const NUMBERS = [0, -1, 1, 23, 24, 255, 256, 65_536, 2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53 - 1, -(2 ** 53 - 1)];
const TEXTS = ["", "a", "__proto__", "constructor", "root", "derived", "\u0000", "\ufffd", "é", "x".repeat(300)];
const LENGTHS = [0, 1, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 300];

export function anyCbor(rng: Rng, depth = 0): CborValue {
  switch (rng.int(0, depth > 3 ? 6 : 8)) {
    case 0:
      return null;
    case 1:
      return rng.chance(0.5);
    case 2:
      return rng.pick(NUMBERS);
    case 3:
      return rng.pick(TEXTS);
    case 4:
      return bytesFrom(rng, rng.pick(LENGTHS));
    case 5:
      return new Link(bytesFrom(rng, 32));
    case 6:
      return rng.int(0, 2 ** 40);
    case 7:
      return Array.from({ length: rng.int(0, 4) }, () => anyCbor(rng, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: rng.int(0, 4) }, () => [rng.pick(TEXTS.slice(1)), anyCbor(rng, depth + 1)]),
      );
  }
}

/** One thing in a value is another: its type, its size, a field more, less or twice, or something deep in it. */
export function mutateCbor(rng: Rng, value: CborValue): CborValue {
  if (rng.chance(0.12)) return anyCbor(rng);
  if (value instanceof Link) return new Link(bytesFrom(rng, 32));
  if (value instanceof Uint8Array) return rng.chance(0.5) ? mutateBytes(rng, value) : bytesFrom(rng, rng.pick(LENGTHS));
  if (Array.isArray(value)) {
    if (value.length === 0) return [anyCbor(rng)];
    const at = rng.int(0, value.length - 1);
    switch (rng.int(0, 3)) {
      case 0:
        return value.toSpliced(at, 1);
      case 1:
        return value.toSpliced(at, 0, value[at]!);
      case 2:
        return Array.from({ length: rng.int(1, 200) }, () => value[at]!);
      default:
        return value.with(at, mutateCbor(rng, value[at]!));
    }
  }
  if (value !== null && typeof value === "object") {
    const keys = Object.keys(value);
    const key = keys.length > 0 ? rng.pick(keys) : "a";
    const { [key]: field = null, ...rest } = value;
    switch (rng.int(0, 5)) {
      case 0:
        return rest;
      case 1:
        return { ...value, [rng.pick(TEXTS.slice(1))]: anyCbor(rng) };
      default:
        return { ...rest, [key]: mutateCbor(rng, field) };
    }
  }
  if (typeof value === "number") return rng.chance(0.5) ? rng.pick(NUMBERS) : value + rng.int(-2, 2);
  return anyCbor(rng);
}

/** One thing in bytes is another. */
export function mutateBytes(rng: Rng, bytes: Uint8Array): Uint8Array {
  if (bytes.length === 0) return bytesFrom(rng, rng.int(0, 4));
  const at = rng.int(0, bytes.length - 1);
  const copy = new Uint8Array(bytes); // of a Buffer, `slice` would be a view
  switch (rng.int(0, 6)) {
    case 0:
      copy[at]! ^= 1 << rng.int(0, 7);
      return copy;
    case 1:
      copy[at] = rng.pick([0, 0x18, 0x1b, 0x3b, 0x5f, 0x7f, 0x9f, 0xbf, 0xd8, 0xf6, 0xfb, 0xff]);
      return copy;
    case 2:
      return copy.subarray(0, at);
    case 3:
      return Buffer.concat([copy, bytesFrom(rng, rng.int(1, 8))]);
    case 4:
      return Buffer.concat([copy.subarray(0, at), bytesFrom(rng, rng.int(1, 4)), copy.subarray(at)]);
    case 5:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + rng.int(1, 8)))]);
    default:
      // A head that promises far more than there is.
      return Buffer.concat([
        copy.subarray(0, at),
        Uint8Array.of(rng.pick([0x5b, 0x7b, 0x9b, 0xbb])),
        bytesFrom(rng, 8),
      ]);
  }
}

/** Good bytes are spoilt many times over, and read once. */
const valuesByBytes = new WeakMap<Uint8Array, CborValue>();

/** What good bytes say; it is shared, so it is not to be changed. */
export function contentOf(good: Uint8Array): CborValue {
  let value = valuesByBytes.get(good);
  if (value === undefined) {
    value = decodeCbor(good);
    valuesByBytes.set(good, value);
  }
  return value;
}

/** Bytes of CBOR with one to three things changed, some of them in the bytes themselves. */
export function mutateEncoded(rng: Rng, bytes: Uint8Array): Uint8Array {
  if (rng.chance(0.3)) return mutateBytes(rng, bytes);
  let value = contentOf(bytes);
  for (let left = rng.int(1, 3); left > 0; left--) value = mutateCbor(rng, value);
  try {
    const encoded = encodeCbor(value).slice();
    return rng.chance(0.1) ? mutateBytes(rng, encoded) : encoded;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // a number that has no encoding
    return mutateBytes(rng, bytes);
  }
}
