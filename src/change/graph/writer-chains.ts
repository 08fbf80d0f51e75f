import type { ChangeTable, WriterRow } from "../../store/change-table.ts";
import type { WriteScope } from "../../store/commit-queue.ts";

/** Writers held between two batches: those who write are few, unless somebody makes writers. */
const MAX_HELD = 4_096;

/** The ends of the writers' chains, as the log has them. Those that moved are written back once a batch. */
export type WriterChains = ReturnType<typeof createWriterChains>;

export function createWriterChains(changes: Pick<ChangeTable, "writer" | "addWriter" | "saveWriter">) {
  let writers = new Map<string, WriterRow>();
  const moved = new Set<WriterRow>();
  const keyOf = (author: Uint8Array, id: Uint8Array) => Buffer.concat([author, id]).toString("latin1");

  return {
    /** The writer of an author, known to the log from now on. */
    of(author: Uint8Array, id: Uint8Array, scope: WriteScope): WriterRow {
      const key = keyOf(author, id);
      const held = writers.get(key);
      if (held) return held;
      const known = changes.writer(author, id);
      const writer = known ?? changes.addWriter(author, id);
      writers.set(key, writer);
      if (!known) scope.onRollback(() => void writers.delete(key));
      return writer;
    },

    /** A change of the writer is in the log: the chain goes on to it, unless it goes further already. */
    advance(writer: WriterRow, to: Pick<WriterRow, "seq" | "lamport"> & { id: Uint8Array }, scope: WriteScope): void {
      if (to.seq <= writer.seq) return;
      const { seq, last, lamport } = writer;
      Object.assign(writer, { seq: to.seq, last: to.id, lamport: to.lamport });
      moved.add(writer);
      scope.onRollback(() => Object.assign(writer, { seq, last, lamport }));
    },

    flush(): void {
      for (const writer of moved) changes.saveWriter(writer);
      moved.clear();
      if (writers.size > MAX_HELD) writers = new Map();
    },
    clear(): void {
      writers = new Map();
      moved.clear();
    },
  };
}
