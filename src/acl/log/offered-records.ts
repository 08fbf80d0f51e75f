import { equalBytes } from "../../base/bytes.ts";
import { atOnce, inSlices } from "../../base/slices.ts";
import { sha256 } from "../../crypto/hash.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { type AclRecord, decodeAclRecord, decodePending, type PendingRecord } from "../record/record.ts";
import { verifyParts } from "../record/signed-parts.ts";

/** Records that somebody offers, as far as they can be judged by themselves: signed, and each behind the one before. */
export interface AclOffer {
  readonly records: readonly AclRecord[];
  /** Why the whole is refused. */
  readonly fault?: Refusal;
}

/** What `isKnown` at the beginning of the log is passed over unread: its id is its bytes. */
export type IsKnownRecord = (id: Uint8Array) => boolean;

/** One record a step. */
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

/** Reads what is offered at once: one's own record, or few. */
export const readOffer = (records: readonly Uint8Array[], isKnown: IsKnownRecord): AclOffer =>
  atOnce(reading(records, isKnown));

/** The same of several, in slices of a few milliseconds: whoever shares a space can offer as long logs as they like. */
export function readOffers(logs: readonly (readonly Uint8Array[])[], isKnown: IsKnownRecord): Promise<AclOffer[]> {
  // Frames are reused, and the rest is read in a later turn.
  const kept = logs.map((records) => records.map((bytes) => new Uint8Array(bytes)));
  return inSlices(
    (function* () {
      const offers: AclOffer[] = [];
      for (const records of kept) offers.push(yield* reading(records, isKnown));
      return offers;
    })(),
  );
}

/** Pending records that somebody hands on, read and verified in slices; undefined for what is none. */
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
