import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { closePart } from "../../base/service.ts";
import { createEventDelivery } from "../../domain/event/event-delivery.ts";
import { createEventHub } from "../../domain/event/event-hub.ts";
import { createLongWorks } from "../../domain/process/long-work.ts";
import { createProcessRegistry } from "../../domain/process/process-registry.ts";
import type { Replica } from "../../space/port/replica.ts";
import type { Space } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import { createEventRelay } from "../../sync/event-relay.ts";
import type { Transports } from "../../sync/transports.ts";
import type { OpenAccount } from "./open-account.ts";

/** Events between clients, devices and members, and the processes that they report. */
export type Bus = ReturnType<typeof openBus>;

/** Boot, phase 2, closed with `parts`. It needs the account's spaces, and all that works in the background uses it. */
export function openBus(deps: {
  parts: AsyncDisposableStack;
  opened: OpenAccount;
  events: SpaceEvents;
  clock: Clock;
  log: Log;
  transports: Transports;
  open(spaceId: string): Promise<Replica | undefined>;
}) {
  const { clock, log } = deps;
  const { account, spaces, tech } = deps.opened;
  const delivery = createEventDelivery({ accountId: account.id, clock });
  const relay = createEventRelay({
    account,
    peerId: account.peerId,
    tech: tech.space.replica,
    transports: deps.transports,
    clock,
    log,
    open: deps.open,
    receive: (event) => void delivery.receive(event),
  });
  const hub = createEventHub({
    accountId: account.id,
    clock,
    delivery,
    network: relay,
    requireSpace: async (spaceId) => ({ hasReadKey: (await spaces.open(spaceId)).keys.current() !== undefined }),
  });
  const registry = createProcessRegistry({ accountId: account.id, bus: hub, clock });
  const processes = deps.parts.adopt(registry, closePart);

  /** Events between members can be opened only with a read key, so this is tried again whenever the ACL log has changed. */
  const listenIn = (space: Space): void => {
    if (space.id === tech.space.id || !space.keys.current()) return;
    processes.hear(space.id);
    relay.attach(space.replica);
  };
  deps.events.on("opened", listenIn);
  deps.events.on("aclChanged", listenIn);
  deps.events.on("ending", (spaceId: SpaceId) => {
    processes.unhear(spaceId);
    relay.detach(spaceId);
  });
  return { events: hub, relay, processes, startLongWork: createLongWorks({ processes, log }) };
}
