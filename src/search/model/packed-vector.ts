import type { PackedVector } from "../../store/search/vector-table.ts";

/**
 * Turns a vector into the bytes that are stored: values scaled so that the largest becomes 127, which does not change the cosine,
 * and one bit per value that says whether it is above `center`, the mean of the model's vectors for unrelated texts.
 */
export function packVector(vector: Float32Array, center: Float32Array | undefined): PackedVector {
  const { length } = vector;
  let largest = 0;
  for (const value of vector) largest = Math.max(largest, Math.abs(value));
  const scale = largest === 0 ? 0 : 127 / largest;
  const bytes = new Int8Array(length);
  const bits = new Uint8Array(Math.ceil(length / 8));
  for (let i = 0; i < length; i++) {
    bytes[i] = Math.round(vector[i]! * scale);
    if (vector[i]! > (center?.[i] ?? 0)) bits[i >> 3]! |= 1 << (i & 7);
  }
  return { bytes, bits };
}
