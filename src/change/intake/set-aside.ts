import { compareBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { UNCOUNTED_ROW_BYTES } from "../../store/tables/change-table.ts";
import type { WaitKind } from "../../store/tables/parked-table.ts";
import { isStub } from "../codec/change-stub.ts";
import type { AclView } from "../codec/ports.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";

/** Bounds on what waits, so that nobody fills a disk with changes that will never fit. */
export interface ParkQuota {
  bytesPerSpace: number;
  bytesPerAuthor: number;
  /**
   * For all authors together who have no right to what they sent. Keys cost nothing, so a quota for each would be no limit.
   */
  bytesOfStrangers: number;
  /** For all changes together that are in the graph and do not count. */
  bytesUncounted: number;
  quarantineBytes: number;
}

export const DEFAULT_PARK_QUOTA: ParkQuota = {
  bytesPerSpace: 256 << 20,
  bytesPerAuthor: 64 << 20,
  bytesOfStrangers: 8 << 20,
  bytesUncounted: 16 << 20,
  quarantineBytes: 16 << 20,
};

/** Stands for all authors who have no right to what they sent, and for authors of formats that are not understood here. */
export const STRANGER = new Uint8Array(32);

interface SetAsideDeps {
  store: Pick<SpaceStore, "parked" | "changes">;
  acl: AclView;
  quota: ParkQuota;
  clock: Clock;
}

/** A change that is to wait. */
export interface Waiting {
  id: Uint8Array;
  /** The author who has the right to it, as far as that is known. Without one, it counts against the common quota. */
  author: Uint8Array;
  /** The object it belongs to; undefined while its format is not known here. */
  object: Uint8Array | undefined;
  bytes: Uint8Array;
}

export type SetAside = ReturnType<typeof createSetAside>;

/**
 * Sets aside changes that are not taken in: for good (CHANGE-4), or until what they wait for has come (CHANGE-5). Each is
 * counted against some quota.
 */
export function createSetAside({ store, acl, quota, clock }: SetAsideDeps) {
  const { parked, changes } = store;

  const quarantine = (id: Uint8Array, why: Refusal, bytes: Uint8Array): IngestVerdict => {
    parked.drop(id);
    if (parked.quarantineUsage().bytes + bytes.length <= quota.quarantineBytes)
      parked.quarantine(id, why, bytes, clock.nowMs());
    else parked.passOver(id);
    return { kind: "quarantined", refusal: why };
  };

  /** Whether there is room for one more change that does not count. */
  const hasRoom = (bytes: Uint8Array): boolean =>
    changes.uncountedBytes() + bytes.length + UNCOUNTED_ROW_BYTES <= quota.bytesUncounted;

  const isStranger = (author: Uint8Array): boolean => author === STRANGER || acl.knows?.(author) === false;

  const park = ({ id, author, object, bytes }: Waiting, waitKind: WaitKind, waitFor: Uint8Array): IngestVerdict => {
    const by = isStranger(author) ? (parked.voucherFor(id) ?? STRANGER) : author;
    const known = parked.get(id);
    const held = known && (isStub(bytes) || !isStub(known.bytes)) ? known : undefined;
    if (known && (!held || compareBytes(known.author, by) !== 0)) parked.drop(id);
    if (!held) {
      const { bytesPerAuthor, bytesOfStrangers, bytesPerSpace } = quota;
      const ofStranger = by === STRANGER;
      if (parked.usage().bytes + bytes.length > bytesPerSpace)
        return {
          kind: "refused",
          refusal: refusal("change.space_quota"),
          ofStranger,
          crowded: true,
        };
      if (parked.usageOf(by).bytes + bytes.length > (ofStranger ? bytesOfStrangers : bytesPerAuthor))
        return { kind: "refused", refusal: refusal("change.author_quota"), ofStranger };
    }
    parked.put({ id, bytes: held?.bytes ?? bytes, waitKind, waitFor, author: by, object, receivedMs: clock.nowMs() });
    return { kind: "parked", waitKind, waitFor };
  };

  /** A parent that will never come takes its children with it; a parent that may still come is waited for. */
  const parkBehind = (parentId: Uint8Array, waiting: Waiting): IngestVerdict => {
    const why = parked.whyQuarantined(parentId);
    if (!why) return park(waiting, "change", parentId);
    const first = why.code === "change.follows_refused" ? why : refusal("change.follows_refused", { because: why });
    return quarantine(waiting.id, first, waiting.bytes);
  };

  return { quarantine, park, parkBehind, hasRoom, isStranger };
}
