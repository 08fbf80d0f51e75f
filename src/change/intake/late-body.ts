import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { CHANGE_ROOT, CHANGE_STUB, type StoredChange } from "../../store/tables/change-table.ts";
import type { BodyOpener } from "../codec/body-opener.ts";
import { type Change, decodeChange } from "../codec/change-codec.ts";
import { isStub, kindOf, stubOf } from "../codec/change-stub.ts";
import type { RulesRegistry } from "../codec/ports.ts";
import { sealedPartsOf } from "../codec/stored-change.ts";
import type { FoldInput } from "../fold/change-parts.ts";
import type { ObjectCache } from "../graph/object-cache.ts";
import { contentOf, isNeedless } from "./content.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";
import type { SetAside } from "./set-aside.ts";

interface LateBodyDeps {
  store: Pick<SpaceStore, "changes" | "pendingBodies" | "history" | "datasetNo">;
  objects: Pick<ObjectCache, "byNo">;
  opener: BodyOpener;
  registry: RulesRegistry;
  aside: Pick<SetAside, "quarantine" | "hasRoom" | "isStranger">;
  /** Answers whether it was: what does not count is not. */
  fold(input: FoldInput): boolean;
}

/** Takes in the body of a change that is in the graph without it (CHANGE-7), once the body has come, or what it waited for. */
export function createLateBodies({ store, objects, opener, registry, aside, fold }: LateBodyDeps) {
  const { changes, pendingBodies } = store;

  return (stored: StoredChange, bytes: Uint8Array): IngestVerdict => {
    const object = objects.byNo(stored.objectNo)!;
    if (kindOf(bytes) === CHANGE_ROOT) {
      changes.setBytes(stored.no, bytes, CHANGE_ROOT, 0);
      pendingBodies.drop(stored.no);
      return { kind: "stored", counts: stored.counts, late: true };
    }
    const isTooLarge = sealedPartsOf(bytes)!.sealed.length > LIMITS.sealedChangeBytes;
    const content = isTooLarge
      ? { broken: refusal("change.body_too_large") }
      : contentOf(opener.openStored(bytes, object.idText), stored.id, registry);
    const { header } = decodeChange(stubOf(bytes), stored.id) as Change;
    const isUnpaid = !stored.counts && ("wait" in content || !aside.hasRoom(bytes));
    const isDropped = isUnpaid || isNeedless(content, object, aside.isStranger(header.author), registry);
    if (isDropped || !("wait" in content)) pendingBodies.drop(stored.no);
    if (isDropped) {
      if (isStub(stored.bytes)) return { kind: "known" };
      changes.setBytes(stored.no, stubOf(bytes), CHANGE_STUB, 0);
      return { kind: "stored", counts: stored.counts, late: true };
    }
    const datasetNo = "body" in content && stored.counts ? store.datasetNo(content.body.dataset) : 0;
    const kept = isTooLarge ? stored.bytes : bytes;
    if (kept !== stored.bytes || datasetNo !== 0) changes.setBytes(stored.no, kept, kindOf(kept), datasetNo);
    if ("broken" in content) {
      aside.quarantine(stored.id, content.broken, kept);
      return { kind: "stored", counts: stored.counts, refusal: content.broken, late: true };
    }
    if ("wait" in content) pendingBodies.put(stored.no, object.no, content.wait, content.what);
    else {
      const parents = header.parents.flatMap((parent) => changes.noOf(parent) ?? []);
      if (fold({ change: { ...stored }, parents, author: header.author, object, ...content }))
        store.history.amended(object.no);
    }
    return { kind: "stored", counts: stored.counts, late: true };
  };
}
