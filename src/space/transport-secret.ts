import { transportSecretOf as secretOf } from "../acl/space-keys.ts";
import type { Space } from "./space.ts";

/** The secret of a space's log on the network, when the first read key is here. */
export function transportSecretOf(space: Space): Uint8Array | undefined {
  const first = space.acl.state.epochs[0];
  const key = first && space.keys.byId(first.epoch.keyId);
  return key && secretOf(space.id, key);
}
