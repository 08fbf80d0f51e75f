import type { SpaceHeader } from "../record/space-header.ts";
import type { Journal } from "./journal.ts";
import type { AclState } from "./state.ts";

/** One record while it is applied to the state. */
export interface Application {
  readonly state: AclState;
  readonly journal: Journal;
  readonly header: SpaceHeader;
  readonly space: Uint8Array;
  /** The position that the record takes. */
  readonly pos: number;
  /** Accounts that may read since this record and have no box with the current key yet; by hex. */
  readonly owed: Map<string, Uint8Array>;
  /** An account lost the right to read, so the record must bring a new key. */
  rotationDue: boolean;
  /** Accounts whose changes count only up to their cut-offs since this record. */
  readonly revoked: Uint8Array[];
}

/** The signed record or proposal that holds an op: its author, and the id that its invite or request gets. */
export interface OpSource {
  readonly actor: Uint8Array;
  readonly sourceId: Uint8Array;
}
