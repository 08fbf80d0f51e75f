import { bytesToHex, concatBytes, readUint64, writeUint64 } from "../base/bytes.ts";
import type { SpaceStore } from "../store/space-store.ts";
import { type AclRecord, decodeAclUnit, type PendingRecord } from "./record.ts";
import type { AclState } from "./state.ts";

const WAITING = "acl-unit/";
const LOST = "acl-lost/";
const MAX_UNITS = 256;
const MAX_BYTES = 8 << 20;
const TIME_BYTES = 8;

interface HeldUnit {
  unit: PendingRecord;
  /** Unix milliseconds when it came here. */
  receivedMs: number;
}

/**
 * What waits for the owner to put it into the chain: proposals, and records of branches that lost. Durable, bounded,
 * handed on to whoever may reach the owner. Records of lost branches are kept a while longer, for what follows them may
 * come later and decide otherwise. Writes happen inside the commit queue's transaction.
 */
export function createAclUnits(store: SpaceStore) {
  /** Decoded by key; what a key stands for never changes. */
  const cache = new Map<string, PendingRecord | undefined>();

  const read = (key: string, value: Uint8Array): PendingRecord | undefined => {
    if (!cache.has(key)) {
      if (cache.size >= 4 * MAX_UNITS) cache.clear();
      cache.set(key, decodeAclUnit(value.subarray(TIME_BYTES)));
    }
    return cache.get(key);
  };

  const put = (key: string, unit: PendingRecord, nowMs: number): void => {
    const received = new Uint8Array(TIME_BYTES);
    writeUint64(received, 0, BigInt(nowMs));
    store.putMeta(key, concatBytes(received, unit.bytes));
  };

  const drop = (name: string): void => {
    const value = store.meta(WAITING + name);
    if (!value) return;
    store.dropMeta(WAITING + name);
    const unit = read(WAITING + name, value);
    if (unit?.kind !== "acl") return;
    put(LOST + name, unit, Number(readUint64(value, 0)));
    const lost = store.metaUnder(LOST);
    if (lost.length <= MAX_UNITS) return;
    const oldest = lost.reduce((a, b) => (readUint64(a.value, 0) <= readUint64(b.value, 0) ? a : b));
    store.dropMeta(oldest.key);
  };

  return {
    /** In the order of their authors' clocks. */
    list: (): HeldUnit[] =>
      store
        .metaUnder(WAITING)
        .flatMap(({ key, value }) => {
          const unit = read(key, value);
          return unit ? [{ unit, receivedMs: Number(readUint64(value, 0)) }] : [];
        })
        .sort((a, b) => a.unit.time - b.unit.time || Buffer.compare(a.unit.id, b.unit.id)),
    has: (id: Uint8Array): boolean => store.meta(WAITING + bytesToHex(id)) !== undefined,
    /** A record of a lost branch that is still known. */
    lostRecord(id: Uint8Array): AclRecord | undefined {
      for (const key of [WAITING + bytesToHex(id), LOST + bytesToHex(id)]) {
        const value = store.meta(key);
        const unit = value && read(key, value);
        if (unit?.kind === "acl") return unit;
      }
      return undefined;
    },
    /** Records of lost branches that are still known. */
    lost: (): AclRecord[] =>
      [...store.metaUnder(WAITING), ...store.metaUnder(LOST)].flatMap(({ key, value }) => {
        const unit = read(key, value);
        return unit?.kind === "acl" ? [unit] : [];
      }),
    /** False when there is no room: it may be offered again. What was in force here is kept in any case. */
    put(unit: PendingRecord, nowMs: number, wasInForce = false): boolean {
      const key = WAITING + bytesToHex(unit.id);
      if (store.meta(key)) return true;
      const held = store.metaUnder(WAITING);
      const bytes = held.reduce((sum, { value }) => sum + value.length, unit.bytes.length);
      if (!wasInForce && (held.length >= MAX_UNITS || bytes > MAX_BYTES)) return false;
      put(key, unit, nowMs);
      return true;
    },
    drop: (id: Uint8Array) => drop(bytesToHex(id)),
    /** What took effect waits no more. */
    settle(state: AclState): void {
      for (const { key } of store.metaUnder(WAITING)) {
        const name = key.slice(WAITING.length);
        if (state.positions.has(name) || state.sequenced.has(name)) drop(name);
      }
    },
  };
}
