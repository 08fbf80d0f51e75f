/** How far the backup of a content has come on this device. */
export const FILE_INFLIGHT = 0;
export const FILE_DURABLE = 1;
export const FILE_LIMITED = 2;
export type FileStateNo = typeof FILE_INFLIGHT | typeof FILE_DURABLE | typeof FILE_LIMITED;
