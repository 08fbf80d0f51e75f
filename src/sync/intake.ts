import { equalBytes } from "../base/bytes.ts";
import { changeIdOf, isStub } from "../change/codec/change-stub.ts";
import type { IngestVerdict } from "../change/intake/ingest-verdict.ts";
import type { Space } from "../space/space.ts";

/** What came of a batch of changes of others. Each was judged alone: a bad one holds up none of its neighbours. */
export interface Taken {
  readonly verdicts: readonly IngestVerdict[];
  readonly ids: readonly Uint8Array[];
  /** Whether whoever gave the change is thereby known to keep it: a stub is enough where no more is kept here. */
  readonly kept: readonly boolean[];
  /** Stored: roots of objects that were not here, and other changes. */
  readonly fresh: number;
  readonly changed: number;
  readonly parked: number;
  readonly quarantined: number;
  /** A quota is used up: they have to be offered again. */
  readonly refused: number;
  /** The same of those who never were members: nobody misses them. */
  readonly strange: number;
  /** Why the first of those that are quarantined or refused is. */
  readonly reason: string | undefined;
  /** Changes under this device's own writer that it did not write: the device was copied, or put back to an older state. */
  readonly foreignOwn: boolean;
}

/** Whether a stub of the change is all that is kept here, and nobody misses more. */
function isStubEnough({ engine }: Space, id: Uint8Array): boolean {
  const { changes, unopened } = engine.store;
  const stored = changes.byId(id);
  return stored !== undefined && isStub(stored.bytes) && !unopened.has(stored.no);
}

/** Stores and folds changes of other replicas; durable when it resolves. */
export async function takeIn(space: Space, changes: readonly Uint8Array[]): Promise<Taken> {
  const { engine } = space;
  const verdicts = await engine.ingest(changes);
  const ids = changes.map(changeIdOf);
  const ownId = engine.writerId();
  const own = ownId && engine.store.changes.writer(space.accountKey, ownId)?.no;
  let fresh = 0;
  let changed = 0;
  let foreignOwn = false;
  verdicts.forEach((verdict, index) => {
    if (verdict.kind !== "stored") return;
    const id = ids[index]!;
    const place = engine.store.sync.placeOf(id);
    const object = place && engine.objects.byNo(place.objectNo);
    if (object && equalBytes(object.id, id)) fresh++;
    else changed++;
    if (own !== undefined && place?.writer === own && !verdict.late) foreignOwn = true;
  });
  const kept = changes.map((bytes, index) => !isStub(bytes) || isStubEnough(space, ids[index]!));
  const refused = verdicts.filter((verdict) => verdict.kind === "refused");
  const strange = refused.filter(({ ofStranger }) => ofStranger).length;
  const count = (kind: IngestVerdict["kind"]) => verdicts.filter((verdict) => verdict.kind === kind).length;
  return {
    verdicts,
    ids,
    kept,
    fresh,
    changed,
    parked: count("parked"),
    quarantined: count("quarantined"),
    refused: refused.length - strange,
    strange,
    reason: verdicts.flatMap((verdict) => ("reason" in verdict ? [verdict.reason] : []))[0],
    foreignOwn,
  };
}
