import { base64UrlToBytes, bytesToBase64Url } from "../../base/bytes.ts";
import { refusedPart } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";

/** Where a page of the history ended: everything after it sorts before this change. */
export interface HistoryCursor {
  lamport: number;
  id: Uint8Array;
}

const ID_BYTES = 32;
const POSITION_BYTES = 8 + ID_BYTES;

export function encodeCursor({ lamport, id }: HistoryCursor): string {
  const bytes = Buffer.alloc(POSITION_BYTES);
  bytes.writeBigUInt64BE(BigInt(lamport));
  bytes.set(id, 8);
  return bytesToBase64Url(bytes);
}

/** Errors: request.invalid_field. */
export function decodeCursor(text: string): HistoryCursor {
  const bytes = base64UrlToBytes(text);
  const lamport = bytes?.length === POSITION_BYTES ? Number(Buffer.from(bytes).readBigUInt64BE()) : Number.NaN;
  if (!bytes || !Number.isSafeInteger(lamport)) {
    const why = refusal("cursor.none");
    throw refusedPart("request.invalid_field", { field: "cursor" }, why, "colon", refusal("cursor.whence"));
  }
  return { lamport, id: bytes.slice(8) };
}
