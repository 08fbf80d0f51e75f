/**
 * Canonical DAG-CBOR (RFC 8949 § 4.2 as restricted by the IPLD DAG-CBOR spec) for what changes and ACL records hold:
 * null, booleans, safe integers, text, bytes, links (tag 42), arrays and maps. No floats: bodies carry their JSON as
 * bytes. One encoding exists for a value, so "re-encodes identically" is the whole check of canonical form.
 */
import { MalformedError } from "./malformed.ts";

/** A link to a DAG-CBOR block by its sha2-256 digest. */
export class Link {
  readonly digest: Uint8Array;
  constructor(digest: Uint8Array) {
    this.digest = digest;
  }
}

export type CborValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | Link
  | CborValue[]
  | { [key: string]: CborValue };

const MAX_DEPTH = 16;
/** CIDv1, dag-cbor, sha2-256, 32 bytes; preceded by the 0x00 that tag 42 demands. */
const LINK_PREFIX = Uint8Array.of(0x00, 0x01, 0x71, 0x12, 0x20);
/** Texts up to this many characters are read one character at a time. */
const SHORT_TEXT = 32;
/** An encoder that is used again keeps this much room. */
const ROOM_KEPT = 64 << 10;
const text = new TextEncoder();
const strictText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const plainOf = (bytes: Buffer<ArrayBuffer>): Uint8Array =>
  new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);

class Encoder {
  private bytes = Buffer.allocUnsafe(1024);
  /** The same memory: of a Buffer, a copy is a Buffer as well, which takes four times as long. */
  private plain = plainOf(this.bytes);
  private length = 0;

  /** Begins anew in the room that there is, unless what was written last took very much. */
  restart(): void {
    if (this.bytes.length > ROOM_KEPT) this.use(Buffer.allocUnsafe(1024));
    this.length = 0;
  }

  private use(room: Buffer<ArrayBuffer>): void {
    this.bytes = room;
    this.plain = plainOf(room);
  }

  reserve(count: number): number {
    const at = this.length;
    if (at + count > this.bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, at + count));
      grown.set(this.bytes.subarray(0, at));
      this.use(grown);
    }
    this.length = at + count;
    return at;
  }

  head(major: number, value: number): void {
    const type = major << 5;
    if (value < 24) {
      const at = this.reserve(1);
      this.bytes[at] = type | value;
    } else if (value < 0x100) {
      const at = this.reserve(2);
      this.bytes[at] = type | 24;
      this.bytes[at + 1] = value;
    } else if (value < 0x10000) {
      const at = this.reserve(3);
      this.bytes[at] = type | 25;
      this.bytes.writeUInt16BE(value, at + 1);
    } else if (value < 0x100000000) {
      const at = this.reserve(5);
      this.bytes[at] = type | 26;
      this.bytes.writeUInt32BE(value, at + 1);
    } else {
      const at = this.reserve(9);
      this.bytes[at] = type | 27;
      this.bytes.writeBigUInt64BE(BigInt(value), at + 1);
    }
  }

  private byte(value: number): void {
    const at = this.reserve(1);
    this.bytes[at] = value;
  }

  private text(value: string): void {
    if (value.length > SHORT_TEXT || !this.shortAscii(value)) {
      const bytes = text.encode(value);
      this.head(3, bytes.length);
      this.raw(bytes);
    }
  }

  /** Nearly all texts are short field names: their characters are their bytes. Answers whether this one is so. */
  private shortAscii(value: string): boolean {
    const begun = this.length;
    this.head(3, value.length);
    const at = this.reserve(value.length);
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) {
        this.length = begun;
        return false;
      }
      this.bytes[at + i] = code;
    }
    return true;
  }

  raw(data: Uint8Array): void {
    const at = this.reserve(data.length);
    this.bytes.set(data, at);
  }

  value(value: CborValue): void {
    if (value === null) this.byte(0xf6);
    else if (value === false) this.byte(0xf4);
    else if (value === true) this.byte(0xf5);
    else if (typeof value === "number") {
      if (!Number.isSafeInteger(value)) throw new RangeError("dag-cbor: only safe integers");
      if (value >= 0) this.head(0, value);
      else this.head(1, -1 - value);
    } else if (typeof value === "string") this.text(value);
    else if (value instanceof Uint8Array) {
      this.head(2, value.length);
      this.raw(value);
    } else if (value instanceof Link) {
      this.head(6, 42);
      this.head(2, LINK_PREFIX.length + 32);
      this.raw(LINK_PREFIX);
      this.raw(value.digest);
    } else if (Array.isArray(value)) {
      this.head(4, value.length);
      for (const item of value) this.value(item);
    } else {
      const keys = Object.keys(value).sort(compareKeys);
      this.head(5, keys.length);
      for (const key of keys) {
        this.value(key);
        this.value(value[key]!);
      }
    }
  }

  take(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** What was written, in memory of its own: the encoder may be used again. */
  copy(): Uint8Array {
    return this.plain.slice(0, this.length);
  }

  /** Whether exactly these bytes were written. */
  wrote(bytes: Uint8Array): boolean {
    return this.length === bytes.length && this.bytes.compare(bytes, 0, bytes.length, 0, this.length) === 0;
  }
}

/** Where a value is written that is only compared. */
const compared = new Encoder();
/** Where is written what is short and encoded for every change: to make an encoder takes longer than to write that. */
const brief = new Encoder();

/** DAG-CBOR map order: shorter keys first, then bytewise (keys here are ASCII). */
function compareKeys(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/** Encodes a value in its one canonical form. Throws RangeError on what the format does not hold (floats). */
export function encodeCbor(value: CborValue): Uint8Array {
  const encoder = new Encoder();
  encoder.value(value);
  return encoder.take();
}

/** A list whose items are made while they are encoded. */
export class LazyList {
  readonly length: number;
  readonly items: Iterable<CborValue>;
  constructor(length: number, items: Iterable<CborValue>) {
    this.length = length;
    this.items = items;
  }
}

/** This many items of a list are encoded in one step. */
const STEP_ITEMS = 32;

/** Encodes a map of long lists, a few items per step. The result is the same as that of `encodeCbor`. */
export function* encodingLists(map: Readonly<Record<string, CborValue | LazyList>>): Generator<void, Uint8Array> {
  const encoder = new Encoder();
  const keys = Object.keys(map).sort(compareKeys);
  encoder.head(5, keys.length);
  for (const key of keys) {
    encoder.value(key);
    const field = map[key]!;
    if (!(field instanceof LazyList)) {
      encoder.value(field);
      continue;
    }
    encoder.head(4, field.length);
    let count = 0;
    for (const item of field.items) {
      if (count++ % STEP_ITEMS === 0) yield;
      encoder.value(item);
    }
  }
  return encoder.take();
}

const encodedKeys = new Map<string, Uint8Array>();

function encodedKey(key: string): Uint8Array {
  let bytes = encodedKeys.get(key);
  if (!bytes) {
    bytes = new Uint8Array(encodeCbor(key));
    encodedKeys.set(key, bytes);
  }
  return bytes;
}

/**
 * Encodes a map with fixed keys, given in canonical order, so that what is encoded for every change is not sorted every
 * time.
 */
export function encodeOrderedMap(keys: readonly string[], values: readonly CborValue[]): Uint8Array {
  brief.restart();
  brief.head(5, keys.length);
  for (let i = 0; i < keys.length; i++) {
    brief.raw(encodedKey(keys[i]!));
    brief.value(values[i]!);
  }
  return brief.copy();
}

/** The bytes that precede a byte string of this length. */
export function byteStringHead(length: number): Uint8Array {
  brief.restart();
  brief.head(2, length);
  return brief.copy();
}

class Reader {
  readonly bytes: Buffer;
  at = 0;
  /** How many more values may follow. */
  private left: number;

  constructor(bytes: Uint8Array, maxValues: number) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.left = maxValues;
  }

  private need(count: number): void {
    if (this.at + count > this.bytes.length) throw new MalformedError("truncated");
  }

  private argument(info: number): number {
    if (info < 24) return info;
    if (info === 24) {
      this.need(1);
      return this.bytes[this.at++]!;
    }
    if (info === 25) {
      this.need(2);
      this.at += 2;
      return this.bytes.readUInt16BE(this.at - 2);
    }
    if (info === 26) {
      this.need(4);
      this.at += 4;
      return this.bytes.readUInt32BE(this.at - 4);
    }
    if (info === 27) {
      this.need(8);
      this.at += 8;
      const value = Number(this.bytes.readBigUInt64BE(this.at - 8));
      if (!Number.isSafeInteger(value)) throw new MalformedError("integer_too_large");
      return value;
    }
    throw new MalformedError("indefinite_length");
  }

  take(count: number): Buffer {
    this.need(count);
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  /** Nearly all texts are short field names. ASCII text is the same in Latin-1, which is read in place. */
  private text(count: number): string {
    this.need(count);
    const start = this.at;
    this.at += count;
    if (count <= SHORT_TEXT && isAscii(this.bytes, start, this.at))
      return this.bytes.toString("latin1", start, this.at);
    return utf8(this.bytes.subarray(start, this.at));
  }

  value(depth: number): CborValue {
    if (depth > MAX_DEPTH) throw new MalformedError("too_deep");
    if (--this.left < 0) throw new MalformedError("too_many_values");
    this.need(1);
    const initial = this.bytes[this.at++]!;
    const major = initial >> 5;
    const info = initial & 31;
    if (major === 7) {
      if (info === 20) return false;
      if (info === 21) return true;
      if (info === 22) return null;
      throw new MalformedError("simple_value");
    }
    const argument = this.argument(info);
    switch (major) {
      case 0:
        return argument;
      case 1:
        return -1 - argument;
      case 2:
        return this.take(argument);
      case 3:
        return this.text(argument);
      case 4: {
        this.need(argument);
        const items: CborValue[] = [];
        for (let i = 0; i < argument; i++) items.push(this.value(depth + 1));
        return items;
      }
      case 5: {
        this.need(argument * 2);
        const map: { [key: string]: CborValue } = Object.create(null);
        for (let i = 0; i < argument; i++) {
          const key = this.value(depth + 1);
          if (typeof key !== "string") throw new MalformedError("map_key");
          map[key] = this.value(depth + 1);
        }
        return map;
      }
      default: {
        if (argument !== 42) throw new MalformedError("tag");
        const link = this.value(depth + 1);
        if (!(link instanceof Uint8Array) || link.length !== 37 || !isLinkPrefix(link)) {
          throw new MalformedError("link");
        }
        return new Link(link.subarray(5));
      }
    }
  }
}

function isAscii(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (bytes[at]! > 0x7f) return false;
  return true;
}

function isLinkPrefix(link: Uint8Array): boolean {
  for (let at = 0; at < LINK_PREFIX.length; at++) if (link[at] !== LINK_PREFIX[at]) return false;
  return true;
}

function utf8(bytes: Uint8Array): string {
  try {
    return strictText.decode(bytes);
  } catch (cause) {
    throw new MalformedError("not_utf8", { cause });
  }
}

/**
 * Decodes exactly one canonical value. Throws RangeError on anything else (bad UTF-8, trailing bytes, other encodings),
 * and on more values than `maxValues` before it makes them: an empty value takes one byte in the input and a hundred in
 * memory.
 */
export function decodeCbor(bytes: Uint8Array, maxValues?: number): CborValue {
  const value = decodeCanonicalCbor(bytes, maxValues);
  compared.restart();
  compared.value(value);
  if (!compared.wrote(bytes)) throw new MalformedError("not_canonical");
  return value;
}

/** Does the same for bytes that are known to be canonical. */
export function decodeCanonicalCbor(bytes: Uint8Array, maxValues = Number.POSITIVE_INFINITY): CborValue {
  const reader = new Reader(bytes, maxValues);
  const value = reader.value(0);
  if (reader.at !== bytes.length) throw new MalformedError("trailing_bytes");
  return value;
}
