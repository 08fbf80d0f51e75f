import { bytesToHex, concatBytes, readUint64, writeUint64 } from "../base/bytes.ts";
import type { SpaceStore } from "../store/space-store.ts";
import { type AclUnit, decodeAclUnit } from "./acl-record.ts";
import type { AclState } from "./acl-state.ts";

const PREFIX = "acl-unit/";
const MAX_UNITS = 256;
const MAX_BYTES = 8 << 20;
const TIME_BYTES = 8;

interface HeldUnit {
  unit: AclUnit;
  /** Unix milliseconds when it came here. */
  receivedMs: number;
}

/**
 * What waits for the owner to put it into the chain: proposals, and records of branches that lost. Durable, bounded,
 * handed on to whoever may reach the owner. Writes happen inside the commit queue's transaction.
 */
export function createAclUnits(store: SpaceStore) {
  const list = (): HeldUnit[] =>
    store.metaUnder(PREFIX).flatMap(({ value }) => {
      const unit = decodeAclUnit(value.subarray(TIME_BYTES));
      return unit ? [{ unit, receivedMs: Number(readUint64(value, 0)) }] : [];
    });
  return {
    /** In the order of their authors' clocks. */
    list: () => list().sort((a, b) => a.unit.time - b.unit.time || Buffer.compare(a.unit.id, b.unit.id)),
    has: (id: Uint8Array): boolean => store.meta(PREFIX + bytesToHex(id)) !== undefined,
    /** False when there is no room: it may be offered again. What was in force here is kept in any case. */
    put(unit: AclUnit, nowMs: number, wasInForce = false): boolean {
      if (store.meta(PREFIX + bytesToHex(unit.id))) return true;
      const held = store.metaUnder(PREFIX);
      const bytes = held.reduce((sum, { value }) => sum + value.length, unit.bytes.length);
      if (!wasInForce && (held.length >= MAX_UNITS || bytes > MAX_BYTES)) return false;
      const received = new Uint8Array(TIME_BYTES);
      writeUint64(received, 0, BigInt(nowMs));
      store.putMeta(PREFIX + bytesToHex(unit.id), concatBytes(received, unit.bytes));
      return true;
    },
    drop: (id: Uint8Array) => store.dropMeta(PREFIX + bytesToHex(id)),
    /** Forgets what took effect. */
    settle(state: AclState): void {
      for (const { key } of store.metaUnder(PREFIX)) {
        const name = key.slice(PREFIX.length);
        if (state.positions.has(name) || state.sequenced.has(name)) store.dropMeta(key);
      }
    },
  };
}
