import type { SpaceHeader } from "../record/space-header.ts";
import type { Journal } from "./journal.ts";
import type { AclState } from "./state.ts";

/** One record on its way into the state. */
export interface Application {
  readonly state: AclState;
  readonly journal: Journal;
  readonly header: SpaceHeader;
  readonly space: Uint8Array;
  /** Position that the record takes. */
  readonly pos: number;
  /** Who may read since this record and has no box with the current key yet; by hex. */
  readonly owed: Map<string, Uint8Array>;
  /** Somebody lost the right to read: the record must bring a new key. */
  rotationDue: boolean;
  /** Accounts of whose changes only those up to their cut-offs count since this record. */
  readonly cut: Uint8Array[];
}

/** The signed thing an op stands in: by whom, and by which id its invite or request will be known. */
export interface OpSource {
  readonly actor: Uint8Array;
  readonly sourceId: Uint8Array;
}
