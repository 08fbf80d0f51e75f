import { equalBytes } from "../../base/bytes.ts";
import { changeIdOf, isStub } from "../../change/codec/change-stub.ts";
import type { IngestVerdict } from "../../change/intake/ingest-verdict.ts";
import type { Replica, Taken } from "../port/replica.ts";
import type { ReplicaSource } from "./source.ts";

/** The part of a replica that takes in what others give. */
export const taking = (space: ReplicaSource): Pick<Replica, "take" | "replaceWriter"> => ({
  take: (changes) => takeIn(space, changes),
  replaceWriter: async () => void (await space.engine.mintWriter()),
});

/** Whether a stub is all that is kept of the change here, and nobody misses more. */
function isStubEnough({ changes, pendingBodies }: ReplicaSource["store"], id: Uint8Array): boolean {
  const stored = changes.byId(id);
  return stored !== undefined && isStub(stored.bytes) && !pendingBodies.has(stored.no);
}

/** Stores changes of other replicas, to be folded soon; durable when it resolves. */
export async function takeIn(
  { engine, store }: Pick<ReplicaSource, "engine" | "store">,
  changes: readonly Uint8Array[],
): Promise<Taken> {
  const verdicts = await engine.take(changes);
  const ids = changes.map(changeIdOf);
  const own = engine.writerNo();
  let fresh = 0;
  let changed = 0;
  let foreignOwn = false;
  verdicts.forEach((verdict, index) => {
    if (verdict.kind !== "stored") return;
    const id = ids[index]!;
    const position = store.sync.positionOf(id);
    const object = position && engine.objects.byNo(position.objectNo);
    if (object && equalBytes(object.id, id)) fresh++;
    else changed++;
    if (own !== undefined && position?.writer === own && !verdict.late) foreignOwn = true;
  });
  const kept = changes.map((bytes, index) => !isStub(bytes) || isStubEnough(store, ids[index]!));
  const refused = verdicts.filter((verdict) => verdict.kind === "refused");
  const strange = refused.filter(({ ofStranger }) => ofStranger).length;
  const count = (kind: IngestVerdict["kind"]) => verdicts.filter((verdict) => verdict.kind === kind).length;
  return {
    ids,
    kept,
    isParked: verdicts.map(({ kind }) => kind === "parked"),
    fresh,
    changed,
    parked: count("parked"),
    quarantined: count("quarantined"),
    refused: refused.length - strange,
    crowded: refused.filter(({ ofStranger, crowded }) => crowded && !ofStranger).length,
    strange,
    refusal: verdicts.flatMap((verdict) => ("refusal" in verdict ? [verdict.refusal] : []))[0],
    foreignOwn,
  };
}
