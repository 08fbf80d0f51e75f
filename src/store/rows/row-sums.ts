import { checksumOf, checksumWith } from "../../base/checksum.ts";
import { DamagedRowError, isSpoiltText } from "../../protocol/storage-fault.ts";

/** A text as it is stored, with the number of its row and its checksum. */
export interface SummedDoc {
  readonly no: number;
  readonly doc: string | null;
  readonly doc_sum: number;
}

/** The position of a row in the order of its record's changes, with the checksum of that position. */
interface SummedHead {
  readonly state: number;
  readonly lamport: number;
  readonly change: Uint8Array;
  readonly ops: number;
  readonly head_sum: number;
}

/** SQLite keeps no checksums, so each row has its own: of its text, and of the position from which the fold goes on. */
export const docSumOf = (doc: string | null): number => (doc === null ? 0 : checksumOf(doc));

export const headSumOf = (state: number, lamport: number, change: Uint8Array, ops: number): number =>
  checksumWith(sumOfChange(change), state, lamport, ops);

/** A change touches many rows, one after the other. Nobody writes to the array that holds its id. */
let lastChange: { readonly id: Uint8Array; readonly sum: number } | undefined;

function sumOfChange(id: Uint8Array): number {
  if (lastChange?.id !== id) lastChange = { id, sum: checksumOf(id) };
  return lastChange.sum;
}

/** Whether a text is what was stored; one that the disk made something else than a text is not. */
export const isDocSound = ({ doc, doc_sum }: Pick<SummedDoc, "doc" | "doc_sum">): boolean =>
  (doc === null || typeof doc === "string") && docSumOf(doc) === doc_sum;

export const isRowSound = (row: SummedDoc & SummedHead): boolean =>
  isDocSound(row) && headSumOf(row.state, row.lamport, row.change, row.ops) === row.head_sum;

/** Makes the row with a number anew from its changes; it reports damage, and rows that cannot be repaired. */
export type RowRepair = (no: number) => void;

/**
 * Repeats reads of stored rows after the damaged ones were repaired. How to repair them is set later (`repairBy`), and nothing else
 * is: a row has to be made anew before the read that met it goes on, what makes it is the fold, and the fold, with the definitions
 * by which it folds, is itself made of reads of rows. Until it is set, a damaged row is refused.
 */
export function createSoundReads() {
  let repair: RowRepair = (no) => {
    throw new DamagedRowError(no);
  };
  /** Runs a read until it meets no damage. It gives up on a row that was repaired and is damaged again. */
  const soundly = <T>(read: () => T): T => {
    const repaired = new Set<number>();
    for (;;)
      try {
        return read();
      } catch (error) {
        if (!(error instanceof DamagedRowError) || repaired.has(error.row)) throw error;
        repaired.add(error.row);
        repair(error.row);
      }
  };
  /** The same for a read that ends later. `search` looks for damaged rows where SQLite fails on one without saying which. */
  const soundlyLater = async <T>(read: () => Promise<T>, search: () => Promise<number>): Promise<T> => {
    const repaired = new Set<number>();
    for (let isSearched = false; ; )
      try {
        return await read();
      } catch (error) {
        if (error instanceof DamagedRowError && !repaired.has(error.row)) {
          repaired.add(error.row);
          repair(error.row);
        } else if (isSpoiltText(error) && !isSearched) {
          isSearched = true;
          if ((await search()) === 0) throw error;
        } else throw error;
      }
  };
  const required = <T extends SummedDoc>(row: T, isSound: (row: T) => boolean): T => {
    if (isSound(row)) return row;
    throw new DamagedRowError(row.no);
  };
  return {
    repairBy(by: RowRepair): void {
      repair = by;
    },
    repair: (no: number): void => repair(no),
    soundly,
    soundlyLater,
    /**
     * Returns one whole row; `isAsked` checks that it is the wanted one where an index found it, because the index may be damaged
     * itself.
     */
    row: <T extends SummedDoc & SummedHead>(
      read: () => T | null,
      isAsked: (row: T) => boolean = () => true,
    ): T | null => {
      const row = read();
      if (row === null || (isRowSound(row) && isAsked(row))) return row;
      return soundly(() => {
        const again = read();
        return again && required(again, (one) => isRowSound(one) && isAsked(one));
      });
    },
    /** Returns texts of rows. */
    docs: <T extends SummedDoc>(read: () => T[]): T[] =>
      soundly(() => {
        const rows = read();
        for (const row of rows) required(row, isDocSound);
        return rows;
      }),
  };
}

export type SoundReads = ReturnType<typeof createSoundReads>;
