import { bytesToHex } from "../../base/bytes.ts";
import { changeIdOf } from "../../change/codec/change-stub.ts";
import { BODIES_GIVEN_UP } from "../../change/fold/object-deletions.ts";
import type { ReplicaWrite, Taken, Unpublished } from "../replica.ts";
import type { ReplicaSource } from "./source.ts";

/** Changes that the network is not known to keep. */
export function unpublishedOf({ engine, accountKey }: ReplicaSource, limit: number): Unpublished[] {
  const { sync, changes } = engine.store;
  const writerId = engine.writerId();
  const own = writerId && changes.writer(accountKey, writerId)?.no;
  return sync.unconfirmed("network", limit).map(({ no, writer, bytes }) => ({
    no,
    bytes,
    isOwn: writer === 0 || writer === own,
    isNobodys: writer === 0,
  }));
}

/** What sync writes with a space, inside a write of its engine. */
export function createReplicaWrite({ engine, acl }: ReplicaSource): ReplicaWrite {
  const { store } = engine;
  const { sync } = store;
  return {
    putNote: store.putMeta,
    dropNote: store.dropMeta,
    published(taken: Taken): void {
      const ids = taken.ids.filter((_, index) => taken.kept[index]);
      taken.ids.forEach((id, index) => {
        if (taken.kept[index] && taken.isParked[index]) sync.confirmEarly("network", id);
      });
      sync.confirm(
        "network",
        ids.flatMap((id) => sync.placeOf(id)?.no ?? []),
      );
      sync.settleEarly("network");
    },
    putPlaceNote: store.places.putNote,
    dropPlaceNote: store.places.dropNote,
    unpublished: (late) =>
      sync.unconfirm(
        "network",
        late.flatMap((bytes) => sync.placeOf(changeIdOf(bytes))?.no ?? []),
      ),
    forgetPublished: () => sync.forget("network"),
    recordsPublished(ids) {
      for (const id of ids) sync.noteRecord("network", id);
    },
    forgetRecordsPublished(options) {
      const lost = options?.quietly ? undefined : acl.records().findLast(({ id }) => sync.hasRecord("network", id));
      if (lost) acl.alarms.raise({ kind: "rolled_back", record: bytesToHex(lost.id) });
      sync.forgetRecords("network");
    },
    forgetGivenUp: () => store.dropMeta(BODIES_GIVEN_UP),
  };
}

export const hasGivenUp = ({ engine }: ReplicaSource): boolean => engine.store.meta(BODIES_GIVEN_UP) !== undefined;
