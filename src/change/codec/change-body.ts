import { zstdDecompressSync } from "node:zlib";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";

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
 * A body is JSON text, not dag-cbor: its values are JSON values, and the text keeps them exactly (doubles, lone
 * surrogates) at native speed. One byte before it says whether it is compressed.
 */
const PLAIN = 0;
const ZSTD = 1;
/** The fastest: bodies are small, and a write waits for it. */
const ZSTD_LEVEL = 1;
const COMPRESS_FROM_BYTES = 1024;
const MAX_OPENED_BYTES = 16 << 20;
const MAX_RECORDS = 20_000;
const MAX_OPS = 200_000;
const OP_TYPES = new Set(["$set", "$unset", "$inc", "$addToSet", "$pull"]);

export function encodeBody(body: ChangeBody): Uint8Array {
  const text = Buffer.from(JSON.stringify(body));
  if (text.length >= COMPRESS_FROM_BYTES) {
    const packed = Bun.zstdCompressSync(text, { level: ZSTD_LEVEL });
    if (packed.length < text.length) return Buffer.concat([Uint8Array.of(ZSTD), packed]);
  }
  return Buffer.concat([Uint8Array.of(PLAIN), text]);
}

/** The body, or undefined when the bytes are not one: sizes and counts are capped before anything walks them. */
export function decodeBody(bytes: Uint8Array): ChangeBody | undefined {
  let parsed: unknown;
  try {
    const payload = bytes.subarray(1);
    if (bytes[0] !== PLAIN && bytes[0] !== ZSTD) return undefined;
    const text = bytes[0] === ZSTD ? zstdDecompressSync(payload, { maxOutputLength: MAX_OPENED_BYTES }) : payload;
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch {
    return undefined;
  }
  return isBody(parsed) ? parsed : undefined;
}

function isBody(value: unknown): value is ChangeBody & JsonObject {
  if (!isJsonObject(value)) return false;
  const { dataset, definition, records, traceIds } = value;
  if (typeof dataset !== "string" || !Array.isArray(records) || records.length > MAX_RECORDS) return false;
  if (definition !== undefined && typeof definition !== "string") return false;
  if (traceIds !== undefined && !(Array.isArray(traceIds) && traceIds.every((trace) => typeof trace === "string")))
    return false;
  let ops = 0;
  for (const record of records) {
    if (!isJsonObject(record) || typeof record["id"] !== "string" || !Array.isArray(record["ops"])) return false;
    if (record["upsert"] !== undefined && typeof record["upsert"] !== "boolean") return false;
    if (record["delete"] !== undefined && record["delete"] !== true) return false;
    ops += record["ops"].length;
    if (ops > MAX_OPS) return false;
    for (const op of record["ops"]) {
      if (
        !isJsonObject(op) ||
        typeof op["type"] !== "string" ||
        !OP_TYPES.has(op["type"]) ||
        typeof op["path"] !== "string"
      )
        return false;
    }
  }
  return true;
}
