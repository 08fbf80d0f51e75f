import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Place } from "../../space/port/places.ts";
import type { Replica } from "../../space/port/replica.ts";
import { findAcl } from "./find-acl.ts";
import type { NetworkStore } from "./network-store.ts";

/** A place that held nothing is looked into again after this. */
const LOOK_AGAIN_MS = 60_000;

/** Where others say that a space is. */
export interface SpaceHints {
  readonly secrets: readonly Uint8Array[];
  /** Secrets to whose keys the space's read keys may be sealed. */
  readonly seeds: readonly Uint8Array[];
}

interface HintFollowerDeps {
  readonly store: Pick<NetworkStore, "openChannel">;
  readonly clock: Clock;
  placesOf(replica: Replica): Place[];
  hintsOf(spaceId: SpaceId): Promise<SpaceHints>;
  isClosed(): boolean;
}

/**
 * Takes in what the log says at places of a space that no read key leads to yet. Devices that hold only the root need it,
 * and accounts that were removed and are members again.
 */
export function createHintFollower({ store, clock, placesOf, hintsOf, isClosed }: HintFollowerDeps) {
  const lookedAtMs = new Map<string, number>();

  return async (replica: Replica): Promise<void> => {
    const { secrets, seeds } = await hintsOf(replica.id);
    for (const transportSecret of secrets) {
      const name = `${replica.id} ${bytesToHex(transportSecret)}`;
      const isKnown = placesOf(replica).some(({ secret }) => secret && equalBytes(secret, transportSecret));
      const dueMs = (lookedAtMs.get(name) ?? Number.NEGATIVE_INFINITY) + LOOK_AGAIN_MS;
      if (isKnown || clock.nowMs() < dueMs || isClosed()) continue;
      lookedAtMs.set(name, clock.nowMs());
      const records = await findAcl(store, { spaceId: replica.id, transportSecret, seeds }, isClosed);
      if (records && !replica.closing()) await replica.acl.takeEach(records);
    }
  };
}
