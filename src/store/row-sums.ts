import { checksumOf, checksumWith } from "../base/checksum.ts";
import { DamagedRowError, isSpoiltText } from "../protocol/storage-fault.ts";

/** A text as it is stored, with the number of its row and its checksum. */
export interface SummedDoc {
  readonly no: number;
  readonly doc: string | null;
  readonly doc_sum: number;
}

/** Where a row stands in the order of its record's changes, with its checksum. */
interface SummedHead {
  readonly state: number;
  readonly lamport: number;
  readonly change: Uint8Array;
  readonly ops: number;
  readonly head_sum: number;
}

/** SQLite keeps no checksums: each row has its own, of its text and of what the fold goes on from. */
export const docSumOf = (doc: string | null): number => (doc === null ? 0 : checksumOf(doc));

export const headSumOf = (state: number, lamport: number, change: Uint8Array, ops: number): number =>
  checksumWith(checksumOf(change), state, lamport, ops);

const isDocSound = ({ doc, doc_sum }: SummedDoc): boolean => docSumOf(doc) === doc_sum;

export const isRowSound = (row: SummedDoc & SummedHead): boolean =>
  isDocSound(row) && headSumOf(row.state, row.lamport, row.change, row.ops) === row.head_sum;

/** Makes the row of a number what its changes make of it; told of damage and of what cannot be repaired. */
export type RowRepair = (no: number) => void;

/** Reads stored rows again once those that the disk changed were repaired: by whoever knows their changes, who says so first. */
export function createSoundReads() {
  let repair: RowRepair = (no) => {
    throw new DamagedRowError(no);
  };
  /** Runs a read until it meets no damage. A row that is repaired and met again as damaged is not to be helped. */
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
  /** The same for a read that ends later. `search` looks for damaged rows where SQLite stumbles over one and does not say which. */
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
    /** One row, whole; `isAsked` where an index found it, which may be damaged itself. */
    row: <T extends SummedDoc & SummedHead>(
      read: () => T | null,
      isAsked: (row: T) => boolean = () => true,
    ): T | null => {
      const isSound = (row: T): boolean => isRowSound(row) && isAsked(row);
      const row = read();
      if (row === null || isSound(row)) return row;
      return soundly(() => {
        const again = read();
        return again && required(again, isSound);
      });
    },
    /** Texts of rows. */
    docs: <T extends SummedDoc>(read: () => T[]): T[] =>
      soundly(() => {
        const rows = read();
        for (const row of rows) required(row, isDocSound);
        return rows;
      }),
  };
}

export type SoundReads = ReturnType<typeof createSoundReads>;
