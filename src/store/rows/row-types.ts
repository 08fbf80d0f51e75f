export type RowState = 0 | 1 | 2;
export const ROW_ABSENT: RowState = 0;
export const ROW_LIVE: RowState = 1;
export const ROW_TOMBSTONE: RowState = 2;

export interface RowHead {
  no: number;
  collectionId: number;
  doc: string | null;
  state: RowState;
  lamport: number;
  change: Uint8Array;
  ops: number;
  hasLocal: boolean;
}

export interface RowKey {
  no: number;
  collectionId: number;
  id: string;
}
