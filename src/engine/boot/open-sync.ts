import { systemTimers } from "../../base/timers.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceHolds } from "../../space/space-holds.ts";
import { createSyncService, type SyncService } from "../../sync/sync-service.ts";
import type { Transports } from "../../sync/transports.ts";
import { createSharedSpaces } from "../shared-spaces.ts";
import type { BootOptions } from "./boot-engine.ts";
import type { OpenAccount } from "./open-account.ts";
import type { Bus } from "./open-bus.ts";

interface SyncDeps {
  readonly opened: OpenAccount;
  readonly bus: Bus;
  readonly transports: Transports;
  readonly events: SpaceEvents;
  readonly holds: SpaceHolds;
}

/** Boot, phase 3: sync, which is notified of every commit. Its rounds begin with the workers, and so do its transports. */
export function openSync(
  { config, clock, log }: BootOptions,
  { opened, bus, transports, events, holds }: SyncDeps,
): SyncService {
  const { account, spaces, tech, devices } = opened;
  const shared = createSharedSpaces(events);
  const sync = createSyncService({
    peerId: account.peerId,
    transports,
    clock,
    log,
    timers: systemTimers,
    intervalMs: config["sync.interval"],
    showCatchUp: () =>
      bus.startLongWork({ kind: "sync.restore", title: "Getting what other devices have", target: account.id }),
    spaces: {
      tech: tech.space.replica,
      active: spaces.activeIds,
      held: spaces.heldIds,
      isHeld: spaces.isHeld,
      isOnlyHere: (spaceId) => devices.list().devices.length <= 1 && !shared.has(spaceId),
      openHeld: async (spaceId) => (await spaces.openHeld(spaceId)).replica,
      open: async (spaceId) => (await spaces.open(spaceId)).replica,
    },
  });
  events.on("committed", (space) => sync.committed(space.replica));
  events.on("aclChanged", (space) => sync.aclChanged(space.replica));
  events.on("known", sync.firstRoundSoon);
  events.on("ending", (spaceId) => {
    sync.forget(spaceId).catch((err: unknown) => log.error("forgetting a space failed", { err, spaceId }));
  });
  holds.add(sync.isBusy);
  return sync;
}
