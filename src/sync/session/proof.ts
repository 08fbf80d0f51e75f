import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { changeIdOf, isStub } from "../../change/codec/change-stub.ts";
import type { Space } from "../../space/space.ts";
import { aclFrom } from "./acl-fetch.ts";
import { decodeItems, encodeSpaceName, encodeWants } from "./messages.ts";
import { type RemoteReplica, SYNC_KINDS } from "./remote-replica.ts";

/** How many changes are asked back at most, and how much of them. */
const SAMPLE_CHANGES = 16;
const SAMPLE_BYTES = 256 << 10;

/**
 * Whether the remote gives back what it claims to keep. Its word alone is not enough to call anything synced: ids can be
 * repeated by whoever was told them. All of a few changes is asked for, of many a few at random, the newest among them.
 * Numbers are those of the order of arrival here, `after` exclusive.
 */
export async function givesBack(remote: RemoteReplica, space: Space, after: number, upto: number): Promise<boolean> {
  const ids = sampleOf(space, after, upto);
  if (ids.length === 0) return true;
  const items = decodeItems(await remote.request(SYNC_KINDS.wants, encodeWants(space.id, ids)));
  const given = new Set(items.filter((bytes) => !isStub(bytes)).map((bytes) => bytesToHex(changeIdOf(bytes))));
  return ids.every((id) => given.has(bytesToHex(id)));
}

/**
 * The same for records of the ACL log and for what waits for the owner; these are few, so all are asked for.
 * `from` is the place of the first of the records in the chain.
 */
export async function givesBackRights(
  remote: RemoteReplica,
  space: Space,
  rights: { readonly from: number; readonly records: readonly Uint8Array[]; readonly units: readonly Uint8Array[] },
): Promise<boolean> {
  const { from, records, units } = rights;
  const chain = records.length > 0 ? await aclFrom(remote, space.id, from) : [];
  if (!records.every((bytes, index) => chain[index] && equalBytes(bytes, chain[index]))) return false;
  if (units.length === 0) return true;
  const given = decodeItems(await remote.request(SYNC_KINDS.units, encodeSpaceName(space.id)));
  return units.every((bytes) => given.some((other) => equalBytes(bytes, other)));
}

function sampleOf({ engine }: Space, after: number, upto: number): Uint8Array[] {
  const { changes } = engine.store;
  const ids: Uint8Array[] = [];
  let bytes = 0;
  for (const no of numbersWithin(after, upto)) {
    const change = changes.byNo(no);
    // Nobody's: derived roots, which everybody computes. Of what is deleted, and where this side has a stub, stubs do.
    if (!change || change.writer === 0 || isStub(change.bytes) || engine.objects.byNo(change.objectNo)?.deleted)
      continue;
    if (!change.counts) continue; // where its author was not known when it came, its stub is all there is
    bytes += change.bytes.length;
    if (bytes > SAMPLE_BYTES && ids.length > 0) break;
    ids.push(change.id);
  }
  return ids;
}

function numbersWithin(after: number, upto: number): Set<number> {
  const span = upto - after;
  if (span <= SAMPLE_CHANGES) return new Set(Array.from({ length: span }, (_, index) => upto - index));
  const numbers = new Set([upto]);
  while (numbers.size < SAMPLE_CHANGES) {
    const random = Buffer.from(randomBytes(6)).readUIntBE(0, 6);
    numbers.add(after + 1 + (random % span));
  }
  return numbers;
}
