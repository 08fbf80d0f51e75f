import { bytesToHex, hexToBytes } from "../../base/bytes.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { FILE_DURABLE, FILE_LIMITED, type FileStateNo } from "../../protocol/file-state.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { FileRef } from "../../store/tables/file-table.ts";

export type FileState = "durable" | "inflight" | "limited";

/** A file as callers see it (FILE-1). */
export interface FileInfo {
  fileId: string;
  objectId: string;
  rootCid?: string;
  size: number;
  inline: boolean;
  durable: boolean;
  cached: boolean;
  name?: string;
  mime?: string;
  variant?: string;
  variantOf?: string;
}

/** Where a file's bytes are: in its row, or a content under a key of an epoch. */
export type FileBytes =
  | { readonly kind: "inline"; readonly bytes: Uint8Array; readonly tag: string }
  | { readonly kind: "content"; readonly rootCid: string; readonly hash: Uint8Array; readonly keyId: Uint8Array };

export const stateName = (state: FileStateNo): FileState =>
  state === FILE_DURABLE ? "durable" : state === FILE_LIMITED ? "limited" : "inflight";

export function toFileInfo(ref: FileRef, row: JsonObject, cached: boolean): FileInfo {
  const text = (field: string): string | undefined => (typeof row[field] === "string" ? row[field] : undefined);
  const optional = {
    rootCid: ref.root ?? undefined,
    name: text("name"),
    mime: text("mime"),
    variant: text("variant"),
    variantOf: text("variantOf"),
  };
  const present = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  return {
    fileId: ref.fileId,
    objectId: ref.owner,
    size: ref.size,
    inline: ref.root === null,
    durable: ref.state === FILE_DURABLE,
    cached,
    ...present,
  };
}

export function bytesOfRow(row: JsonObject): FileBytes {
  if (typeof row["data"] === "string") {
    const bytes = new Uint8Array(Buffer.from(row["data"], "base64"));
    return { kind: "inline", bytes, tag: cidFromDigest(sha256(bytes)) };
  }
  return {
    kind: "content",
    rootCid: row["rootCid"] as string,
    hash: hexToBytes(row["hash"] as string)!,
    keyId: hexToBytes(row["keyId"] as string)!,
  };
}

/** The fields of a new row. */
export function rowOf(
  file: {
    objectId: string;
    size: number;
    name?: string | undefined;
    mime?: string | undefined;
    variant?: string | undefined;
    variantOf?: string | undefined;
  },
  bytes:
    | { readonly data: Uint8Array }
    | { readonly rootCid: string; readonly hash: Uint8Array; readonly keyId: Uint8Array },
): JsonObject {
  const row: JsonObject = { objectId: file.objectId, size: file.size };
  for (const field of ["name", "mime", "variant", "variantOf"] as const) {
    const value = file[field];
    if (value !== undefined) row[field] = value;
  }
  if ("data" in bytes) row["data"] = Buffer.from(bytes.data).toString("base64");
  else Object.assign(row, { rootCid: bytes.rootCid, hash: bytesToHex(bytes.hash), keyId: bytesToHex(bytes.keyId) });
  return row;
}
