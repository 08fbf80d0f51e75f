import { bytesToHex } from "../../base/bytes.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { PendingRow } from "../../store/tables/acl-table.ts";
import { type AclRecord, decodePending, type PendingRecord } from "../record/record.ts";
import type { AclState } from "../reducer/state.ts";

/** Most pending records in a space. */
export const MAX_PENDING = 256;
const MAX_BYTES = 8 << 20;

export interface HeldPending {
  pending: PendingRecord;
  /** Unix milliseconds at which it came here. */
  receivedMs: number;
}

/**
 * The records that wait for the owner to put them into the log: proposals, and records of lost branches. They are
 * durable, bounded, and passed on to peers that may reach the owner. Records of lost branches are kept for a while
 * longer, because what follows them may come later and change the decision. Writes happen inside the commit queue's
 * transaction.
 */
export type PendingRecords = ReturnType<typeof createPendingRecords>;

export function createPendingRecords({ pendingRecords: table }: Pick<SpaceStore, "pendingRecords">) {
  /** Decoded records by id; what an id stands for never changes. */
  const cache = new Map<string, PendingRecord | undefined>();

  const read = ({ id, bytes }: PendingRow): PendingRecord | undefined => {
    const name = bytesToHex(id);
    if (!cache.has(name)) cache.set(name, decodePending(bytes));
    return cache.get(name);
  };

  const waitsFor = (id: Uint8Array): PendingRow | undefined => {
    const row = table.get(id);
    return row?.lost === false ? row : undefined;
  };

  const waiting = (): { held: PendingRow[]; bytes: number } => {
    const held = table.waiting();
    return { held, bytes: held.reduce((sum, row) => sum + row.bytes.length, 0) };
  };

  const drop = (row: PendingRow): void => {
    if (read(row)?.kind === "acl") table.lose(row.id, MAX_PENDING);
    else table.drop(row.id);
  };

  return {
    /** In the order of their authors' clocks, but each after those that it follows. */
    list(): HeldPending[] {
      const rows = new Map(table.waiting().map((row) => [bytesToHex(row.id), row]));
      if (cache.size > 2 * rows.size + 4 * MAX_PENDING)
        for (const name of cache.keys()) if (!rows.has(name)) cache.delete(name);
      const records = [...rows.values()].flatMap((row) => read(row) ?? []);
      return inOrder(records).map((pending) => ({ pending, receivedMs: rows.get(bytesToHex(pending.id))!.receivedMs }));
    },
    count: (): number => table.waitingCount(),
    has: (id: Uint8Array): boolean => waitsFor(id) !== undefined,
    /** A record of a lost branch that is still known. */
    lostRecord(id: Uint8Array): AclRecord | undefined {
      const row = table.get(id);
      const pending = row && read(row);
      return pending?.kind === "acl" ? pending : undefined;
    },
    /** Records of lost branches that are still known. */
    lost: (): AclRecord[] =>
      table.all().flatMap((row) => {
        const pending = read(row);
        return pending?.kind === "acl" ? [pending] : [];
      }),
    /**
     * Returns false when there is no room; the record may be offered again. One that was in force here is kept in any
     * case.
     */
    put(pending: PendingRecord, nowMs: number, wasInForce = false): boolean {
      if (waitsFor(pending.id)) return true;
      if (!wasInForce) {
        const { held, bytes } = waiting();
        if (held.length >= MAX_PENDING || bytes + pending.bytes.length > MAX_BYTES) return false;
      }
      table.put(pending.id, pending.bytes, nowMs);
      return true;
    },
    /**
     * Keeps a lost branch from its first record on, as far as there is room: a record is useless without those before it.
     */
    putBranch(branch: readonly AclRecord[], nowMs: number): void {
      const before = waiting();
      const names = new Set(before.held.map(({ id }) => bytesToHex(id)));
      let { bytes } = before;
      for (const record of branch) {
        const name = bytesToHex(record.id);
        if (names.has(name)) continue;
        bytes += record.bytes.length;
        if (names.size >= MAX_PENDING || bytes > MAX_BYTES) return;
        names.add(name);
        table.put(record.id, record.bytes, nowMs);
      }
    },
    drop(id: Uint8Array): void {
      const row = waitsFor(id);
      if (row) drop(row);
    },
    /** Drops pending records that have taken effect. */
    dropEffective(state: AclState): void {
      for (const row of table.waiting()) {
        const name = bytesToHex(row.id);
        if (state.positions.has(name) || state.sequenced.has(name)) drop(row);
      }
    },
  };
}

/**
 * Sorts by their authors' clocks, but each record after those that it follows: a record that took effect before one that
 * it follows would only give that one a position, and so deprive it of its effect.
 */
export function inOrder(records: readonly PendingRecord[]): PendingRecord[] {
  const byClock = records.toSorted((a, b) => a.time - b.time || Buffer.compare(a.id, b.id));
  const left = new Map(byClock.map((pending) => [bytesToHex(pending.id), pending]));
  return byClock.flatMap((pending) => {
    const branch: PendingRecord[] = [];
    for (let at: PendingRecord | undefined = pending; at; ) {
      if (!left.delete(bytesToHex(at.id))) break;
      branch.unshift(at);
      at = at.kind === "acl" && at.prev ? left.get(bytesToHex(at.prev)) : undefined;
    }
    return branch;
  });
}
