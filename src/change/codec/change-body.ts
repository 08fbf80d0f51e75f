import { zstdDecompressSync } from "node:zlib";
import { concatBytes } from "../../base/bytes.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

/** One op on one record. An empty path with an object value sets or unsets several fields, whose keys are dotted paths. */
export interface RecordOp {
  type: "$set" | "$unset" | "$inc" | "$addToSet" | "$pull";
  path: string;
  value?: Json;
}

/** What a change does to one record. An empty id is derived from the change's id when the fold meets it. */
export interface RecordChange {
  id: string;
  upsert?: boolean;
  /** The record becomes a tombstone; `ops` is empty then. */
  delete?: boolean;
  ops: RecordOp[];
}

/** The sealed part of a change. */
export interface ChangeBody {
  dataset: string;
  /** The version of the dataset's definition it was written under; absent for built-in datasets. */
  definition?: string;
  records: RecordChange[];
  traceIds?: string[];
}

/**
 * A body is JSON text, not dag-cbor: its values are JSON values, at native speed. One byte before it says whether it is
 * compressed.
 */
const PLAIN = 0;
const PLAIN_TAG = Uint8Array.of(PLAIN);
const ZSTD = 1;
/** The fastest level: bodies are small, and a write waits for it. */
const ZSTD_LEVEL = 1;
const COMPRESS_FROM_BYTES = 1024;
/** Behind the compressed text may follow a frame that zstd skips: its magic number and its length, then nothing of meaning. */
const SKIPPED_MAGIC = 0x184d_2a50;
const SKIPPED_HEAD_BYTES = 8;

/** The bounds of a body, whoever wrote it (CHANGE-3): this device writes none beyond them, and takes in none beyond them. */
const BODY_BOUNDS = {
  openedBytes: LIMITS.openedChangeBytes,
  records: 10_000,
  /** Each field of a multi-field op counts. */
  ops: 50_000,
  /** Arrays and objects inside each other in one value. */
  depth: 128,
  /** Of the names of a dataset and of a definition. */
  nameChars: 512,
  /** Every record keeps the trace ids of the change that wrote it, so what they take together is bounded. */
  tracedChars: 4 << 20,
} as const;

/**
 * What a body makes others store (its text, the trace ids that its records keep, a row for each) is at most so many times what
 * it takes itself, and a little. What says the same a hundred thousand times over is therefore sent with padding: whoever
 * makes others keep much has sent, and been charged for, a fair part of it.
 */
const STORED_A_BYTE = 32;
const STORED_FREE_BYTES = 8 << 10;
const STORED_ROW_BYTES = 256;

const OP_TYPES = new Set(["$set", "$unset", "$inc", "$addToSet", "$pull"]);
/** Thrown to leave the walk of a value at once. */
class TooDeep extends Error {}

/** What a body takes at least, compressed or not, by what it makes others store. */
function bytesAtLeast({ records, traceIds }: ChangeBody, textBytes: number): number {
  const traced = (traceIds ?? []).reduce((sum, { length }) => sum + length, 0);
  const stored = textBytes + records.length * (STORED_ROW_BYTES + traced);
  return Math.ceil((stored - STORED_FREE_BYTES) / STORED_A_BYTE);
}

/** Undefined when the body is larger than one may be. */
export function encodeBody(body: ChangeBody): Uint8Array | undefined {
  const text = Buffer.from(JSON.stringify(body));
  if (text.length > BODY_BOUNDS.openedBytes) return undefined;
  const least = bytesAtLeast(body, text.length);
  if (text.length >= COMPRESS_FROM_BYTES || text.length < least) {
    const packed = Bun.zstdCompressSync(text, { level: ZSTD_LEVEL });
    if (packed.length < least) return Buffer.concat([Uint8Array.of(ZSTD), packed, padding(least - packed.length)]);
    if (packed.length < text.length) return Buffer.concat([Uint8Array.of(ZSTD), packed]);
  }
  return concatBytes(PLAIN_TAG, text);
}

/** A frame that is skipped, of at least so many bytes. */
function padding(bytes: number): Uint8Array {
  const frame = Buffer.alloc(Math.max(SKIPPED_HEAD_BYTES, bytes));
  frame.writeUInt32LE(SKIPPED_MAGIC, 0);
  frame.writeUInt32LE(frame.length - SKIPPED_HEAD_BYTES, 4);
  return frame;
}

/**
 * The body, its values as `normaliseBody` leaves them, and how long its text is; undefined when the bytes are not one within
 * the bounds.
 */
export function decodeBody(bytes: Uint8Array): { body: ChangeBody; openedBytes: number } | undefined {
  const payload = bytes.subarray(1);
  let openedBytes = 0;
  let parsed: unknown;
  try {
    if (bytes[0] !== PLAIN && bytes[0] !== ZSTD) return undefined;
    const text =
      bytes[0] === ZSTD ? zstdDecompressSync(payload, { maxOutputLength: BODY_BOUNDS.openedBytes }) : payload;
    openedBytes = text.length;
    if (openedBytes > BODY_BOUNDS.openedBytes) return undefined;
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch {
    return undefined;
  }
  if (!isBody(parsed) || normaliseBody(parsed) !== undefined) return undefined;
  return payload.length >= bytesAtLeast(parsed, openedBytes) ? { body: parsed, openedBytes } : undefined;
}

/** Its shape; the counts are capped before anything walks the values. */
function isBody(value: unknown): value is ChangeBody & JsonObject {
  if (!isJsonObject(value)) return false;
  const { dataset, definition, records, traceIds } = value;
  if (typeof dataset !== "string" || !Array.isArray(records) || records.length > BODY_BOUNDS.records) return false;
  if (definition !== undefined && typeof definition !== "string") return false;
  if (traceIds !== undefined && !(Array.isArray(traceIds) && traceIds.every((trace) => typeof trace === "string")))
    return false;
  return records.every(isRecord);
}

function isRecord(record: Json): boolean {
  if (!isJsonObject(record) || typeof record["id"] !== "string" || !Array.isArray(record["ops"])) return false;
  if (record["upsert"] !== undefined && typeof record["upsert"] !== "boolean") return false;
  if (record["delete"] !== undefined && record["delete"] !== true) return false;
  return record["ops"].every(
    (op) =>
      isJsonObject(op) && typeof op["type"] === "string" && OP_TYPES.has(op["type"]) && typeof op["path"] === "string",
  );
}

/**
 * Brings the values of a body, in place, into the form that they have once they were stored and read again: no -0, no
 * number beyond the doubles (null), no lone surrogates but in the ids of records, which the fold refuses. Whatever is
 * folded later from the log is then what is folded now. Answers which bound the body passes; it is worth nothing then.
 */
export function normaliseBody(body: ChangeBody): Refusal | undefined {
  const { dataset, definition, records, traceIds } = body;
  for (const name of [dataset, definition])
    if (name !== undefined && (name.length > BODY_BOUNDS.nameChars || !name.isWellFormed()))
      return refusal("body.name", { limitChars: BODY_BOUNDS.nameChars });
  if (records.length > BODY_BOUNDS.records) return refusal("body.records", { limit: BODY_BOUNDS.records });
  if (traceIds) {
    const fault = tracesFault(traceIds, records.length);
    if (fault) return fault;
    body.traceIds = traceIds.map((trace) => trace.toWellFormed());
  }
  try {
    return normaliseOps(records);
  } catch (error) {
    if (error instanceof TooDeep) return refusal("body.depth", { limit: BODY_BOUNDS.depth });
    throw error;
  }
}

function tracesFault(traceIds: readonly string[], records: number): Refusal | undefined {
  if (traceIds.length > LIMITS.traceIds) return refusal("body.traces");
  let chars = 0;
  for (const trace of traceIds) {
    if (trace.length > 2 * LIMITS.traceIdChars) return refusal("body.trace_chars");
    chars += trace.length;
  }
  return chars * records > BODY_BOUNDS.tracedChars ? refusal("body.traced_records") : undefined;
}

function normaliseOps(records: readonly RecordChange[]): Refusal | undefined {
  let ops = 0;
  for (const record of records) {
    ops += record.ops.length;
    if (ops > BODY_BOUNDS.ops) break;
    for (const op of record.ops) {
      if (!op.path.isWellFormed()) op.path = op.path.toWellFormed();
      if (op.value === undefined) continue;
      const value = normalised(op.value, 0);
      if (!Object.is(value, op.value)) op.value = value;
      if (op.path === "" && isJsonObject(value)) ops += Object.keys(value).length;
    }
  }
  return ops > BODY_BOUNDS.ops ? refusal("body.ops", { limit: BODY_BOUNDS.ops }) : undefined;
}

/** The value itself, changed in place where it is an array or an object; what takes the place of a scalar otherwise. */
function normalised(value: Json, depth: number): Json {
  if (typeof value === "string") return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value === "number") return value === 0 ? 0 : Number.isFinite(value) ? value : null;
  if (typeof value !== "object" || value === null) return value;
  if (depth >= BODY_BOUNDS.depth) throw new TooDeep();
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = normalised(value[i]!, depth + 1);
      if (!Object.is(item, value[i])) value[i] = item;
    }
    return value;
  }
  let isNamedWell = true;
  for (const key of Object.keys(value)) {
    const part = normalised(value[key]!, depth + 1);
    if (!Object.is(part, value[key])) setOwn(value, key, part);
    if (!key.isWellFormed()) isNamedWell = false;
  }
  return isNamedWell
    ? value
    : Object.fromEntries(Object.entries(value).map(([key, part]) => [key.toWellFormed(), part]));
}

/** This also works for a field that has the name of the prototype's accessor. */
function setOwn(holder: JsonObject, key: string, value: Json): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}
