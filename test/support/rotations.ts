/** Rotations of a space's read key, and what a former member can do with everything it ever had. */
import { join } from "node:path";
import { transportSecretOf } from "../../src/acl/space-keys.ts";
import type { SpaceId } from "../../src/base/ids.ts";
import type { Account } from "../../src/crypto/account.ts";
import { type ChannelKeys, deriveChannelKeys } from "../../src/sync/network/subjects.ts";
import { createAccount } from "./acl-world.ts";
import type { Device } from "./devices.ts";
import { readKeysIn } from "./former-reader.ts";

/** Adds somebody who never comes, and removes it again: one rotation each. */
export async function rotate(device: Device, spaceId: string, times = 1): Promise<void> {
  const base = `/v1/spaces/${spaceId}/acl`;
  for (let count = 0; count < times; count++) {
    const identity = createAccount().id;
    await device.server.client.post(`${base}/add`, { accounts: [{ identity, permission: "reader" }] }, 204);
    await device.server.client.post(`${base}/remove`, { identities: [identity] }, 204);
  }
}

/** The places of a space that a data root knows, oldest epoch first as far as the keys tell; its server is stopped. */
export async function placesIn(dataDir: string, account: Account, spaceId: string): Promise<ChannelKeys[]> {
  const keys = await readKeysIn(join(dataDir), account, spaceId as SpaceId);
  return keys.map((key) => deriveChannelKeys(transportSecretOf(spaceId as SpaceId, key)));
}
