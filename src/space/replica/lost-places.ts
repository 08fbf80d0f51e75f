import type { AclRecord } from "../../acl/record/record.ts";
import { sequencedPending } from "../../acl/record/signed-parts.ts";
import { transportSecretOf } from "../../acl/record/space-keys.ts";
import { bytesToHex } from "../../base/bytes.ts";
import type { LostPlace } from "../port/replica.ts";
import type { ReplicaSource } from "./source.ts";

const LATELY = 100;

/** Places of epochs that began on branches of the log that lost, as far as this account was given their read keys. */
export function lostPlacesOf({ id, acl, keys }: ReplicaSource): LostPlace[] {
  const records = acl.pending.list().flatMap(({ pending }) => (pending.kind === "acl" ? pending : []));
  const lost = new Map(
    [...records, ...acl.pending.lost(), ...sequencedLately(acl)].map((one) => [bytesToHex(one.id), one]),
  );
  return [...lost.values()].flatMap((record) => {
    const base = positionLeft(acl, lost, record);
    if (base === undefined) return [];
    const ending = acl.state.epochs.find(({ pos }) => pos > base)?.pos ?? acl.records().length - 1;
    const records = acl
      .records()
      .slice(base + 1, ending + 1)
      .map(({ bytes }) => bytes);
    return record.ops.flatMap((op) => {
      const key = op.op === "readKeyChange" ? keys.keyIn(op.epoch) : undefined;
      return key ? [{ secret: transportSecretOf(id, key), records }] : [];
    });
  });
}

/** Records that were given a place all the same, later: their ops were done again, under other keys. */
function sequencedLately(acl: ReplicaSource["acl"]): AclRecord[] {
  return acl
    .records()
    .slice(-LATELY)
    .flatMap(({ record }) =>
      record.ops.flatMap((op) => {
        const pending = op.op === "sequenced" ? sequencedPending(op.pending) : undefined;
        return pending?.kind === "acl" ? pending : [];
      }),
    );
}

/** The position in the log of the record at which a lost branch began. */
function positionLeft(
  acl: ReplicaSource["acl"],
  lost: ReadonlyMap<string, AclRecord>,
  record: AclRecord,
): number | undefined {
  let before: AclRecord | undefined = record;
  while (before?.prev && !acl.has(before.prev)) before = lost.get(bytesToHex(before.prev));
  return before?.prev ? acl.at(before.prev)?.pos : undefined;
}
