import type { WriteScope } from "../../store/commit/commit-queue.ts";
import type { ChangeTable, WriterRow } from "../../store/tables/change-table.ts";

/** A change of a writer, as its chain needs it. */
interface ChainLink {
  readonly id: Uint8Array;
  readonly seq: number;
  readonly lamport: number;
  readonly counts: boolean;
}

/** Writers held between two batches: those who write are few, unless somebody makes writers. */
const MAX_HELD = 4_096;

/** What a batch has brought of a writer: changes, and how many of them count. */
interface Brought {
  changes: number;
  counted: number;
}

function goTo(writer: WriterRow, seq: number, last: WriterRow["last"], lamport: number): void {
  writer.seq = seq;
  writer.last = last;
  writer.lamport = lamport;
}

/** The writers' chains, as the log has them: how long they are and where they end. Their rows are written once a batch. */
export type WriterChains = ReturnType<typeof createWriterChains>;

export function createWriterChains(changes: Pick<ChangeTable, "writer" | "addWriter" | "saveWriter">) {
  let writers = new Map<string, WriterRow>();
  const grown = new Map<WriterRow, Brought>();
  const keyOf = (author: Uint8Array, id: Uint8Array) => Buffer.concat([author, id]).toString("latin1");

  const broughtOf = (writer: WriterRow): Brought => {
    const known = grown.get(writer);
    if (known) return known;
    const brought = { changes: 0, counted: 0 };
    grown.set(writer, brought);
    return brought;
  };

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
    grow(writer: WriterRow, by: ChainLink, scope: WriteScope): void {
      const brought = broughtOf(writer);
      const { seq, last, lamport } = writer;
      brought.changes++;
      if (by.counts) brought.counted++;
      if (by.seq > seq) goTo(writer, by.seq, by.id, by.lamport);
      scope.onRollback(() => {
        brought.changes--;
        if (by.counts) brought.counted--;
        goTo(writer, seq, last, lamport);
      });
    },

    /** Writes the rows of a batch, behind the last of its writes that can be undone alone. */
    flush(): void {
      for (const [writer, brought] of grown) changes.saveWriter(writer, brought);
      grown.clear();
      if (writers.size > MAX_HELD) writers = new Map();
    },
    /** Rows are read anew. */
    clear(): void {
      writers = new Map();
      grown.clear();
    },
  };
}
