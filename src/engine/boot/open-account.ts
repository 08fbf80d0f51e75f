import { hostname } from "node:os";
import { createFarewells } from "../../account/life/space-farewells.ts";
import { createSpaceRegistry } from "../../account/life/space-registry.ts";
import { createAccountValues } from "../../account/own-space/account-values.ts";
import { createAclSecrets } from "../../account/own-space/acl-secrets.ts";
import { createReadFrontiers } from "../../account/own-space/read-frontiers.ts";
import { TECH_SPACE_NAME } from "../../account/own-space/tech-datasets.ts";
import { createTechSpace, type TechSpace, techIndex } from "../../account/own-space/tech-space.ts";
import { createPlaceHints } from "../../account/rows/place-hints.ts";
import { createSpaceGeneses } from "../../account/rows/space-geneses.ts";
import { createSpaceRoots } from "../../account/rows/space-roots.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { closePart } from "../../base/service.ts";
import { PRODUCT_VERSION } from "../../base/version.ts";
import type { Account } from "../../crypto/account.ts";
import { createDeviceService, type DeviceService } from "../../domain/device/device-service.ts";
import { createIdentityDirectory } from "../../domain/identity/identity-directory.ts";
import { derivedSpaceGenesis } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceHolds } from "../../space/space-holds.ts";
import { spaceDatasets, techDatasets } from "../built-in-datasets.ts";
import type { Stores } from "./open-stores.ts";

interface OpenAccountDeps {
  parts: AsyncDisposableStack;
  account: Account;
  stores: Stores;
  events: SpaceEvents;
  holds: SpaceHolds;
  clock: Clock;
  log: Log;
}

/** The account's own space and what is kept in it: devices, custody of secrets, rows of the account's spaces. */
export type OpenAccount = Awaited<ReturnType<typeof openAccount>>;

/** Boot, phase 2. What it opens is closed with `parts`. */
export async function openAccount({ parts, account, stores, events, holds, clock, log }: OpenAccountDeps) {
  const tech = await openTechSpace(parts, account, stores);
  const devices = createDeviceService({ tech, peerId: account.peerId, clock, version: PRODUCT_VERSION, hostname });
  await registerDevice(devices, account, log);
  const secrets = createAclSecrets(tech, account);
  const roots = createSpaceRoots(tech);
  const geneses = createSpaceGeneses({ account, tech, roots });
  const farewells = createFarewells({ store: stores.account, clock });
  const builtIns = spaceDatasets();
  const registry = createSpaceRegistry({
    account,
    clock,
    log,
    paths: stores.paths,
    store: stores.account,
    tech,
    roots,
    geneses,
    farewells,
    events,
    holds,
    openSpace: (spaceId) => stores.openSpace(spaceId, { as: secrets.accountIn(spaceId), builtIns, keepsHistory: true }),
  });
  const spaces = parts.adopt(registry, closePart);
  return {
    account,
    tech,
    techSchema: stores.schemaOf(tech.space.id),
    devices,
    secrets,
    roots,
    hints: createPlaceHints({ tech, roots, secrets }),
    geneses,
    farewells,
    spaces,
    identities: createIdentityDirectory({ store: stores.account, accountId: account.id }),
    frontiers: createReadFrontiers(tech),
    accountValues: createAccountValues(tech),
  };
}

async function openTechSpace(
  parts: AsyncDisposableStack,
  account: Account,
  { openSpace }: Pick<Stores, "openSpace">,
): Promise<TechSpace> {
  const genesis = derivedSpaceGenesis(account, TECH_SPACE_NAME);
  const options = { as: account, builtIns: techDatasets(), keepsHistory: false, genesis };
  const space = parts.adopt(await openSpace(genesis.spaceId, options), closePart);
  return createTechSpace(space, await techIndex(space));
}

async function registerDevice(devices: DeviceService, { peerId }: Account, log: Log): Promise<void> {
  if (await devices.register()) return;
  log.warn("this device was pruned: its row stays gone until it has fresh keys from a new init", { peerId });
}
