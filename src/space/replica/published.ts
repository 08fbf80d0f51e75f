import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import { decodeCheckedChange, isDerivedRoot } from "../../change/codec/change-codec.ts";
import { changeIdOf } from "../../change/codec/change-stub.ts";
import type { StoredChange } from "../../store/tables/change-table.ts";
import { BODIES_GIVEN_UP } from "../../store/tables/pending-body-table.ts";
import type { Replica, ReplicaWrite, Taken, Unpublished } from "../port/replica.ts";
import type { ReplicaSource } from "./source.ts";

/** At most so many changes of writers of whom nothing counts are published with one change that follows them. */
const FOREIGN_MAX = 256;

/** The part of a replica that notes what others keep of it, and what sync notes for itself. */
export function notes(
  space: ReplicaSource,
): Pick<Replica, "unpublished" | "hasGivenUp" | "note" | "placeNote" | "notedPlaces" | "write"> {
  const { store, engine } = space;
  const replicaWrite = createReplicaWrite(space);
  return {
    unpublished: (limit) => unpublishedOf(space, limit),
    hasGivenUp: () => store.meta(BODIES_GIVEN_UP) !== undefined,
    note: store.meta,
    placeNote: store.places.note,
    notedPlaces: store.places.ids,
    write: (run) => engine.writeNotes(() => run(replicaWrite)),
  };
}

/**
 * Changes that the network is not known to keep. Nobody has to keep the changes of a writer of whom nothing counts. But if
 * a change that counts follows such a change, nobody could take it in without that; so the earlier change is published
 * before it.
 */
function unpublishedOf({ engine, store }: ReplicaSource, limit: number): Unpublished[] {
  const { sync, changes } = store;
  const own = engine.writerNo();
  const taken = new Set<string>();
  const foreignBefore = sync.hasForeign() ? foreignAncestors(store, taken) : () => [];
  return sync.unconfirmed("network", limit).flatMap(({ no, writer, id, bytes }) => {
    const how = { no, isOwn: writer === 0 || writer === own, isNobodys: writer === 0 };
    if (!isWhatItWas(id, bytes)) {
      engine.soundBytes(changes.byNo(no)!); // it is set aside
      return [];
    }
    return [...foreignBefore(id, bytes), bytes].map((each) => ({ ...how, bytes: each }));
  });
}

const isWhatItWas = (id: Uint8Array, bytes: Uint8Array): boolean =>
  bytes.length > 0 && equalBytes(changeIdOf(bytes), id);

/**
 * The changes before a given one whose writers have no change that counts: parents first, each once. None if there are too
 * many.
 */
function foreignAncestors({ changes, sync }: ReplicaSource["store"], taken: Set<string>) {
  return (id: Uint8Array, bytes: Uint8Array): Uint8Array[] => {
    const found = new Map<string, StoredChange>();
    const walk = [{ id, bytes }];
    for (let at = walk.pop(); at && found.size <= FOREIGN_MAX; at = walk.pop()) {
      const change = decodeCheckedChange(at.bytes, at.id);
      if (isDerivedRoot(change)) continue;
      const { parents, prev } = change.header;
      for (const before of prev ? [...parents, prev] : parents) {
        const name = bytesToHex(before);
        if (taken.has(name) || found.has(name)) continue;
        const stored = changes.byId(before);
        if (!stored || !sync.isForeign(stored.writer) || !isWhatItWas(stored.id, stored.bytes)) continue;
        found.set(name, stored);
        walk.push(stored);
      }
    }
    if (found.size > FOREIGN_MAX) return [];
    for (const name of found.keys()) taken.add(name);
    return [...found.values()].sort((one, other) => one.no - other.no).map((stored) => stored.bytes);
  };
}

/** What sync writes with a space, inside a write of its engine. */
function createReplicaWrite({ store, acl }: ReplicaSource): ReplicaWrite {
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
        ids.flatMap((id) => sync.positionOf(id)?.no ?? []),
      );
      sync.countEarly("network");
    },
    putPlaceNote: store.places.putNote,
    dropPlaceNote: store.places.dropNote,
    unpublished: (late) =>
      sync.unconfirm(
        "network",
        late.flatMap((bytes) => sync.positionOf(changeIdOf(bytes))?.no ?? []),
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
