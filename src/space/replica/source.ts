import type { AclService } from "../../acl/acl-service.ts";
import type { SpaceKeyRing } from "../../acl/key-ring.ts";
import type { AclLog } from "../../acl/log/acl-log.ts";
import type { Permission } from "../../acl/record/permission.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import type { Signer } from "../../crypto/sign.ts";
import type { SpaceStore } from "../../store/space-store.ts";

/** The parts of an open space that its replica is made of. */
export interface ReplicaSource {
  readonly id: SpaceId;
  readonly acl: AclLog;
  /** What changes the ACL. */
  readonly aclService: AclService;
  readonly keys: SpaceKeyRing;
  readonly engine: ChangeEngine;
  /** The tables that its replica, and what is built on it, read by name. */
  readonly store: SpaceStore;
  /** Public key of the account that opened it: one's own, or the guest key's. */
  readonly accountKey: Uint8Array;
  /** Signs as that account. */
  readonly signer: Signer;
  /** This account's permission now. */
  role(): Permission;
}
