import { equalBytes } from "../../base/bytes.ts";
import { atOnce, inSlices } from "../../base/slices.ts";
import { sha256 } from "../../crypto/hash.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { type AclRecord, decodeAclRecord, decodePending, type PendingRecord } from "../record/record.ts";
import { verifyParts } from "../record/signed-parts.ts";

/** Offered records, as far as they can be judged by themselves: signed, and each behind the one before. */
export interface AclOffer {
  readonly records: readonly AclRecord[];
  /** Why the whole offer is refused. */
  readonly fault?: Refusal;
}

/** Tells known records. Known ones at the beginning of the log are skipped unread, because an id stands for the bytes. */
export type IsKnownRecord = (id: Uint8Array) => boolean;

/** One record per step. */
function* reading(offered: readonly Uint8Array[], isKnown: IsKnownRecord): Generator<void, AclOffer> {
  const records: AclRecord[] = [];
  for (const bytes of offered) {
    yield;
    if (records.length === 0 && isKnown(sha256(bytes))) continue;
    const record = decodeAclRecord(bytes);
    if (!record) return { records: [], fault: refusal("acl.record_malformed") };
    verifyParts(record);
    const before = records.at(-1);
    if (before && !(record.prev && equalBytes(record.prev, before.id)))
      return { records: [], fault: refusal("acl.records_apart") };
    records.push(record);
  }
  return { records };
}

/** Reads an offer at once: the account's own record, or few. */
export const readOffer = (records: readonly Uint8Array[], isKnown: IsKnownRecord): AclOffer =>
  atOnce(reading(records, isKnown));

/** Reads several offers in slices of a few milliseconds, because a member can offer logs of any length. */
export function readOffers(logs: readonly (readonly Uint8Array[])[], isKnown: IsKnownRecord): Promise<AclOffer[]> {
  // Frames are reused, and the rest is read in a later turn, so the bytes are copied.
  const kept = logs.map((records) => records.map((bytes) => new Uint8Array(bytes)));
  return inSlices(
    (function* () {
      const offers: AclOffer[] = [];
      for (const records of kept) offers.push(yield* reading(records, isKnown));
      return offers;
    })(),
  );
}

/** Reads and verifies pending records that somebody passes on, in slices; undefined for bytes that are none. */
export function readPending(many: readonly Uint8Array[]): Promise<(PendingRecord | undefined)[]> {
  const kept = many.map((bytes) => new Uint8Array(bytes));
  return inSlices(
    (function* () {
      const pending: (PendingRecord | undefined)[] = [];
      for (const bytes of kept) {
        yield;
        pending.push(decodePending(bytes));
      }
      return pending;
    })(),
  );
}
