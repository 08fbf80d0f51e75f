import { bytesToHex } from "../base/bytes.ts";
import type { AclView } from "../change/ports.ts";
import type { SpaceStore } from "../store/space-store.ts";
import { type AclRecord, decodeAclRecord, type Permission } from "./acl-record.ts";
import { type AclState, applyAclRecord, canWrite, emptyAcl, permissionAt } from "./acl-state.ts";
import type { SpaceHeader } from "./space-header.ts";

/** The stored ACL chain of a space, judged record by record when it is opened and whenever one is added. */
export interface AclLog extends AclView {
  readonly state: AclState;
  records(): AclRecord[];
  permission(account: Uint8Array): Permission;
}

/** Thrown when a stored chain does not verify: the file was damaged or written by somebody else. */
export class AclDamagedError extends Error {}

export function openAclLog(store: SpaceStore, header: SpaceHeader): AclLog {
  const state = emptyAcl();
  const records: AclRecord[] = [];
  for (const { pos, bytes } of store.aclRecords()) {
    const record = decodeAclRecord(bytes);
    const fault = record ? applyAclRecord(state, record, header) : "it is no ACL record";
    if (!record || fault) throw new AclDamagedError(`${store.path}: ACL record ${pos}: ${fault}`);
    records.push(record);
  }
  return {
    state,
    records: () => records,
    permission: (account) => permissionAt(state, account, state.clocks.length - 1),
    head() {
      const pos = state.clocks.length - 1;
      return { id: state.head!, pos, clock: state.clocks[pos]! };
    },
    at(id) {
      const pos = state.positions.get(bytesToHex(id));
      return pos === undefined ? undefined : { pos, clock: state.clocks[pos]! };
    },
    counts: (change) => canWrite(permissionAt(state, change.author, change.aclPos)),
  };
}
