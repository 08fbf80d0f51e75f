import { compareBytes } from "../../base/bytes.ts";

/** A position in the total order of an object's changes: by lamport, then by id bytewise. Consistent with causality. */
export interface OrderKey {
  lamport: number;
  change: Uint8Array;
}

export function compareOrder(a: OrderKey, b: OrderKey): number {
  return a.lamport - b.lamport || compareBytes(a.change, b.change);
}
