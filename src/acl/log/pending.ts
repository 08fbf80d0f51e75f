import { bytesToHex } from "../../base/bytes.ts";
import type { PendingRow } from "../../store/acl-table.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { type AclRecord, decodePending, type PendingRecord } from "../record/record.ts";
import type { AclState } from "../reducer/state.ts";

/** So many records wait in a space at most. */
export const MAX_PENDING = 256;
const MAX_BYTES = 8 << 20;

export interface HeldPending {
  pending: PendingRecord;
  /** Unix milliseconds when it came here. */
  receivedMs: number;
}

/**
 * What waits for the owner to put it into the log: proposals, and records of branches that lost. Durable, bounded,
 * handed on to whoever may reach the owner. Records of lost branches are kept a while longer, for what follows them may
 * come later and decide otherwise. Writes happen inside the commit queue's transaction.
 */
export type PendingRecords = ReturnType<typeof createPendingRecords>;

export function createPendingRecords({ pendingRecords: table }: Pick<SpaceStore, "pendingRecords">) {
  /** Decoded by id; what an id stands for never changes. */
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
    /** In the order of their authors' clocks, but each behind those that it follows. */
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
    /** False when there is no room: it may be offered again. What was in force here is kept in any case. */
    put(pending: PendingRecord, nowMs: number, wasInForce = false): boolean {
      if (waitsFor(pending.id)) return true;
      if (!wasInForce) {
        const { held, bytes } = waiting();
        if (held.length >= MAX_PENDING || bytes + pending.bytes.length > MAX_BYTES) return false;
      }
      table.put(pending.id, pending.bytes, nowMs);
      return true;
    },
    /** A branch that lost, from its first record on as far as there is room: none is of use without those before it. */
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
    /** What took effect waits no more. */
    settle(state: AclState): void {
      for (const row of table.waiting()) {
        const name = bytesToHex(row.id);
        if (state.positions.has(name) || state.sequenced.has(name)) drop(row);
      }
    },
  };
}

/**
 * In the order of their authors' clocks, but each behind those that it follows: a record that takes effect before one that it
 * follows would give that one a place, and so take its effect from it.
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
