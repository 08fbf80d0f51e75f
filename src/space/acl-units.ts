import { bytesToHex } from "../base/bytes.ts";
import type { SpaceStore } from "../store/space-store.ts";
import { type AclUnit, decodeAclUnit } from "./acl-record.ts";
import type { AclState } from "./acl-state.ts";

const PREFIX = "acl-unit/";
const MAX_UNITS = 256;
const MAX_BYTES = 8 << 20;

/**
 * What waits for the owner to put it into the chain: proposals, and records of branches that lost. Durable, bounded,
 * handed on to whoever may reach the owner. Writes happen inside the commit queue's transaction.
 */
export type AclUnits = ReturnType<typeof createAclUnits>;

export function createAclUnits(store: SpaceStore) {
  const list = (): AclUnit[] => store.metaUnder(PREFIX).flatMap(({ value }) => decodeAclUnit(value) ?? []);
  return {
    /** In the order of their authors' clocks. */
    list: () => list().sort((a, b) => a.time - b.time || Buffer.compare(a.id, b.id)),
    has: (id: Uint8Array): boolean => store.meta(PREFIX + bytesToHex(id)) !== undefined,
    /** False when there is no room: it may be offered again. */
    put(unit: AclUnit): boolean {
      const held = store.metaUnder(PREFIX);
      const bytes = held.reduce((sum, { value }) => sum + value.length, unit.bytes.length);
      if (held.length >= MAX_UNITS || bytes > MAX_BYTES) return false;
      store.putMeta(PREFIX + bytesToHex(unit.id), unit.bytes);
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
