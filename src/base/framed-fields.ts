import { concatBytes, utf8ToBytes, writeUint32 } from "./bytes.ts";

/**
 * Concatenates the fields, each preceded by its length in four bytes (big-endian), so that no two lists of fields give
 * the same bytes.
 */
export function frameFields(fields: readonly (string | Uint8Array)[]): Uint8Array {
  const framed: Uint8Array[] = [];
  for (const field of fields) {
    const bytes = typeof field === "string" ? utf8ToBytes(field) : field;
    const length = new Uint8Array(4);
    writeUint32(length, 0, bytes.length);
    framed.push(length, bytes);
  }
  return concatBytes(...framed);
}
