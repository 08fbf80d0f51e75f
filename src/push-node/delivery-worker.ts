import { createHmac } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import type { Platform } from "../protocol/push-node.ts";
import type { Notification, Outcome, Provider } from "./provider.ts";
import { createProviderLane, type ProviderLane } from "./provider-lane.ts";
import type { PruneGuard } from "./prune-guard.ts";
import type { Delivery, Device, PushState } from "./state.ts";

/** Longer than any provider may take, so that a delivery is never given out while somebody works on it. */
const LEASE_MS = 60_000;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 5 * 60_000;
/** Other nodes of the same state may have left deliveries: it looks for them at least this often. */
const LOOK_MS = 5_000;

interface WorkerDeps {
  readonly state: PushState;
  readonly secret: Uint8Array;
  readonly providers: Readonly<Record<Platform, Provider | undefined>>;
  readonly guard: PruneGuard;
  readonly clock: Clock;
  readonly log: Log;
  /** Most deliveries under way at once. */
  readonly parallel: number;
}

/** Sends deliveries to providers until each is accepted, refused or too old. */
export interface DeliveryWorker extends Service {
  /** Must be called when there may be something to do. */
  kick(): void;
}

export function createDeliveryWorker(deps: WorkerDeps): DeliveryWorker {
  const { state, clock, log } = deps;
  const laneByProvider = new Map<Provider, ProviderLane>();
  const laneOf = (provider: Provider): ProviderLane => {
    const lane = laneByProvider.get(provider) ?? createProviderLane(clock, Math.ceil((deps.parallel * 3) / 4));
    laneByProvider.set(provider, lane);
    return lane;
  };
  const running = new Set<Promise<void>>();
  let stopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let looking: Promise<void> | undefined;
  let lookAgain = false;

  /** Starts what is due, as far as there is room, and looks again when the next delivery is due. */
  const look = async (): Promise<void> => {
    clearTimeout(timer);
    const room = deps.parallel - running.size;
    if (stopped || room <= 0) return; // every delivery that ends calls this again
    const due = await state.takeDue(clock.nowMs(), room, LEASE_MS);
    for (const delivery of due) {
      const work = bring(delivery)
        .catch((error: unknown) => log.error("a delivery failed inside the node", { err: error, id: delivery.id }))
        .finally(() => {
          running.delete(work);
          kick();
        });
      running.add(work);
    }
    const nextMs = await state.nextDueMs();
    if (stopped) return;
    const waitMs = nextMs === undefined ? LOOK_MS : Math.min(LOOK_MS, Math.max(1, nextMs - clock.nowMs()));
    clearTimeout(timer);
    timer = setTimeout(kick, waitMs);
  };

  /** Announces that there may be something to do. */
  const kick = (): void => {
    if (stopped) return;
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = look()
      .catch((error: unknown) => {
        log.error("deliveries cannot be looked for; it is tried again", { err: error });
        timer = setTimeout(kick, LOOK_MS);
      })
      .finally(() => {
        looking = undefined;
        if (!lookAgain) return;
        lookAgain = false;
        kick();
      });
  };

  const bring = async (delivery: Delivery): Promise<void> => {
    const device = await state.deviceOf(delivery.account, delivery.device);
    const provider = device && deps.providers[device.platform];
    if (!device || !provider) return state.finish(delivery); // the device was revoked or replaced, or no provider serves it
    if (clock.nowMs() > delivery.expiresMs) {
      log.warn("a notification was given up: its provider did not take it for an hour", { provider: provider.name });
      return state.finish(delivery);
    }
    const lane = laneOf(provider);
    const waitMs = lane.waitMs();
    // This does not count as an attempt.
    if (waitMs > 0) return state.defer({ ...delivery, attempts: delivery.attempts - 1 }, clock.nowMs() + waitMs);
    lane.begun();
    const outcome = await provider.send(notificationOf(delivery, device));
    lane.ended(outcome);
    await follow(delivery, device, provider, outcome);
  };

  const notificationOf = (delivery: Delivery, device: Device): Notification => ({
    delivery,
    device,
    collapseId: collapseIdOf(deps.secret, device, delivery.chat),
  });

  const follow = async (delivery: Delivery, device: Device, provider: Provider, outcome: Outcome): Promise<void> => {
    switch (outcome.kind) {
      case "accepted":
        deps.guard.accepted();
        if (outcome.sandbox !== undefined && outcome.sandbox !== (device.sandbox ?? false))
          await state.putDevice({ ...device, sandbox: outcome.sandbox });
        return state.finish(delivery);
      case "dead":
        await prune(device, outcome, provider);
        return state.finish(delivery);
      case "refused":
        log.warn("a provider refused a notification", { provider: provider.name, reason: outcome.reason });
        return state.finish(delivery);
      case "later": {
        const delayMs = outcome.delayMs ?? backoffMs(delivery.attempts);
        log.debug("a provider takes a notification later", {
          provider: provider.name,
          reason: outcome.reason,
          delayMs,
        });
        return state.defer(delivery, clock.nowMs() + delayMs);
      }
    }
  };

  /** Drops a dead token, unless so many die that the fault must be ours, or the token was replaced meanwhile. */
  const prune = async (device: Device, outcome: Outcome & { kind: "dead" }, provider: Provider): Promise<void> => {
    const { reason } = outcome;
    if (!deps.guard.mayPrune())
      return void log.error("tokens are refused in mass; none is dropped", { provider: provider.name, reason });
    const now = await state.deviceOf(device.account, device.device);
    if (now?.token === device.token && now.registeredMs === device.registeredMs)
      await state.dropDevice(device.account, device.device);
    log.info("a dead token was dropped", { provider: provider.name, reason });
  };

  return {
    name: "deliveries",
    start: kick,
    kick,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await looking;
      await Promise.all(running);
    },
  };
}

/** Doubles with each attempt, and varies by a third, so that many deliveries do not come back at the same moment. */
function backoffMs(attempts: number): number {
  const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempts, 20));
  return Math.round(delayMs * (1 + Math.random() / 3));
}

/**
 * An id that is the same for a token and a chat, and differs for all others: 43 of the 64 characters that Apple allows.
 */
export function collapseIdOf(secret: Uint8Array, device: Pick<Device, "platform" | "token">, chat: string): string {
  const hmac = createHmac("sha256", secret).update(
    `svc/push-collapse/v1\0${device.platform}\0${device.token}\0${chat}`,
  );
  return hmac.digest("base64url");
}
