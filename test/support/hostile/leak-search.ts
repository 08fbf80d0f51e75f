/**
 * Looks for secrets in bytes that others can see, in every form in which a program might let them slip: as they are, in
 * hex, base64 and base64url at each place they can have in a group, UTF-16 of both byte orders, and all of that once
 * more in whatever inflates (zlib, raw deflate, gzip, zstd).
 */
import {
  deflateRawSync,
  deflateSync,
  gzipSync,
  inflateRawSync,
  inflateSync,
  zstdCompressSync,
  zstdDecompressSync,
} from "node:zlib";

export type Secrets = Record<string, string | Uint8Array>;

const bytesOf = (secret: string | Uint8Array): Buffer =>
  typeof secret === "string" ? Buffer.from(secret, "utf8") : Buffer.from(secret);

/** The text of whole groups that the secret fills when `shift` bytes stand before it, whatever those are. */
function base64Core(secret: Buffer, shift: 0 | 1 | 2, encoding: "base64" | "base64url"): Buffer {
  const text = Buffer.concat([Buffer.alloc(shift), secret])
    .toString(encoding)
    .replaceAll("=", "");
  const end = Math.floor(((shift + secret.length) * 8) / 6);
  return Buffer.from(text.slice(Math.ceil((shift * 8) / 6), end));
}

/** Encodings that are looked for in plain bytes, by name. */
function encodingsOf(secret: string | Uint8Array): [string, Buffer][] {
  const raw = bytesOf(secret);
  const hex = raw.toString("hex");
  const wide = Buffer.from(typeof secret === "string" ? secret : raw.toString("latin1"), "utf16le");
  const forms: [string, Buffer][] = [
    ["raw", raw],
    ["hex", Buffer.from(hex)],
    ["upper-case hex", Buffer.from(hex.toUpperCase())],
    ["UTF-16LE", wide],
    ["UTF-16BE", Buffer.from(wide).swap16()],
  ];
  for (const encoding of ["base64", "base64url"] as const)
    for (const shift of [0, 1, 2] as const)
      forms.push([`${encoding} at offset ${shift}`, base64Core(raw, shift, encoding)]);
  return forms;
}

const PACKERS: readonly [string, (bytes: Buffer) => Buffer][] = [
  ["zlib", deflateSync],
  ["raw deflate", deflateRawSync],
  ["gzip", gzipSync],
  ["zstd", zstdCompressSync],
];

/** Every form in which the search finds a secret, as it would stand in a message: for control captures. */
function plantsOf(secret: string | Uint8Array): [string, Buffer][] {
  const forms = encodingsOf(secret);
  // Something to deflate around it, so that it does not merely stand there stored.
  const filler = Buffer.from("and more of the like, and more of the like, and more of the like; ");
  const packed = PACKERS.flatMap(([name, pack]) =>
    forms.map(([form, bytes]): [string, Buffer] => [
      `${form} in ${name}`,
      pack(Buffer.concat([filler, bytes, filler, bytes])),
    ]),
  );
  return [...forms, ...packed];
}

const MAX_INFLATED_BYTES = 4 << 20;
const LEAST_INFLATED_BYTES = 8;
const LINE_END = Buffer.from("\r\n");

function unpacked(unpack: (bytes: Buffer, options: object) => Buffer, bytes: Buffer): Buffer[] {
  try {
    // The end is not where the bytes end: what follows belongs to the next message.
    const text = unpack(bytes, { maxOutputLength: MAX_INFLATED_BYTES, finishFlush: 2 });
    return text.length < LEAST_INFLATED_BYTES ? [] : [text];
  } catch {
    return []; // not packed, which is what nearly every place is
  }
}

/**
 * Everything that inflates: wherever a header of zlib, gzip or zstd may stand, and raw deflate, which has none, at the
 * beginning and behind every line end, which is where a message's payload begins in NATS.
 */
function inflatedIn(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  const window = (at: number): Buffer => bytes.subarray(at, at + (1 << 20));
  for (let at = 0; at + 2 < bytes.length; at++) {
    const first = bytes[at]!;
    const second = bytes[at + 1]!;
    if ((first & 0x0f) === 8 && first >> 4 <= 7 && ((first << 8) | second) % 31 === 0 && (second & 0x20) === 0)
      found.push(...unpacked(inflateSync, window(at)));
    else if (first === 0x1f && second === 0x8b) found.push(...gzipMember(window(at)));
    else if (first === 0x28 && second === 0xb5 && bytes[at + 2] === 0x2f) found.push(...zstdFrame(window(at)));
  }
  found.push(...unpacked(inflateRawSync, window(0)));
  for (let at = bytes.indexOf(LINE_END); at >= 0; at = bytes.indexOf(LINE_END, at + 2))
    found.push(...unpacked(inflateRawSync, window(at + 2)));
  return found;
}

/** RFC 1952 § 2.3: behind the header stands raw deflate. A gzip decoder refuses what follows the member. */
function gzipMember(bytes: Buffer): Buffer[] {
  const flags = bytes[3] ?? 0;
  let at = 10;
  if (flags & 4 && at + 2 <= bytes.length) at += 2 + bytes.readUInt16LE(at);
  for (const named of [8, 16]) if (flags & named) at = bytes.indexOf(0, at) + 1;
  if (flags & 2) at += 2;
  return unpacked(inflateRawSync, bytes.subarray(at));
}

/** A zstd decoder refuses what follows the frame, so the frame's own end is looked for. */
function zstdFrame(bytes: Buffer): Buffer[] {
  const end = zstdFrameEnd(bytes);
  return end === undefined ? [] : unpacked(zstdDecompressSync, bytes.subarray(0, end));
}

/** RFC 8878 § 3.1.1: header, then blocks that say their sizes, then perhaps a checksum. */
function zstdFrameEnd(bytes: Buffer): number | undefined {
  const descriptor = bytes[4];
  if (descriptor === undefined) return undefined;
  const single = (descriptor >> 5) & 1;
  const contentSize = [single, 2, 4, 8][descriptor >> 6]!;
  let at = 5 + (1 - single) + [0, 1, 2, 4][descriptor & 3]! + contentSize;
  for (;;) {
    if (at + 3 > bytes.length) return undefined;
    const block = bytes.readUIntLE(at, 3);
    const type = (block >> 1) & 3;
    if (type === 3) return undefined;
    at += 3 + (type === 1 ? 1 : block >> 3);
    if (block & 1) return Math.min(bytes.length, at + ((descriptor >> 2) & 1 ? 4 : 0));
  }
}

/** What is looked into: the bytes themselves, and what inflates in them. Costs seconds for some megabytes. */
export function openCaptures(captures: readonly Uint8Array[]): Buffer[] {
  const plain = captures.map((capture) => Buffer.from(capture.buffer, capture.byteOffset, capture.byteLength));
  return [...plain, ...plain.flatMap(inflatedIn)];
}

/** `name (form)` of each secret that stands in opened captures. */
export function leaksIn(opened: readonly Buffer[], secrets: Secrets): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) =>
    encodingsOf(secret)
      .filter(([, bytes]) => opened.some((capture) => capture.includes(bytes)))
      .map(([form]) => `${name} (${form})`),
  );
}

/**
 * Plants every form of each secret, one at a time, into a capture that holds none, and answers those that the search
 * then misses. `around` is what the planted bytes stand between.
 */
export function missedPlants(secrets: Secrets, around: Uint8Array): string[] {
  const missed: string[] = [];
  for (const [name, secret] of Object.entries(secrets))
    for (const [form, bytes] of plantsOf(secret)) {
      const planted = Buffer.concat([around, LINE_END, bytes, LINE_END, around]);
      if (leaksIn(openCaptures([planted]), { [name]: secret }).length === 0) missed.push(`${name} (${form})`);
    }
  return missed;
}
