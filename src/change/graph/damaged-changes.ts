import { equalBytes } from "../../base/bytes.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { CHANGE_STUB, type StoredChange } from "../../store/tables/change-table.ts";
import { BODIES_GIVEN_UP } from "../../store/tables/pending-body-table.ts";
import { isGenuine } from "../codec/change-codec.ts";
import { changeIdOf, kindOf, LOST_BYTES } from "../codec/change-stub.ts";
import type { OnRepair } from "../codec/ports.ts";
import type { ObjectCache } from "./object-cache.ts";

/** Changes whose bytes are not those that their ids are hashes of any more. */
export type DamagedChanges = ReturnType<typeof createDamagedChanges>;

export function createDamagedChanges(deps: {
  store: Pick<SpaceStore, "db" | "changes" | "pendingBodies" | "history" | "putMeta">;
  objects: Pick<ObjectCache, "byNo" | "rootOf" | "forget">;
  onRepair: OnRepair;
  /** A body of this object is missed from now on. */
  onMissed(object: string): void;
}) {
  const { store, objects, onRepair } = deps;
  const { db, changes, pendingBodies, history } = store;

  const isSound = ({ id, bytes, kind }: Pick<StoredChange, "id" | "bytes" | "kind">): boolean =>
    (bytes.length === 0 && kind === CHANGE_STUB) || equalBytes(changeIdOf(bytes), id);

  /** A root is kept twice. */
  const rootAgain = ({ id, objectNo }: StoredChange): Uint8Array | undefined => {
    const root = objects.rootOf(objectNo);
    return root && equalBytes(changeIdOf(root), id) ? root : undefined;
  };

  /** Bytes that their author signed are what they were: what was changed is the id beside them. Answers whether it is right again. */
  const renamed = ({ no, objectNo, bytes }: StoredChange): boolean => {
    if (bytes.length === 0 || !isGenuine(bytes)) return false;
    const id = changeIdOf(bytes);
    const object = objects.byNo(objectNo);
    if (changes.byId(id) || object?.headsDirty || object?.modifiedDirty) return false;
    changes.setId(no, id);
    if (object) objects.forget(object);
    onRepair("change.id", {
      change: cidFromDigest(id),
    });
    return true;
  };

  return {
    isSound,
    /**
     * If a change is damaged, its bytes are given up; what records were folded with it they keep. It counts as one whose body is
     * missed: whoever has it is asked for it. Answers whether it was.
     */
    setAside(stored: StoredChange): boolean {
      if (isSound(stored) || renamed(stored)) return false;
      const { no, objectNo, id, lamport } = stored;
      const root = rootAgain(stored);
      db.transaction(() => {
        if (root) return changes.setBytes(no, root, kindOf(root), stored.datasetNo);
        changes.setBytes(no, LOST_BYTES, CHANGE_STUB, 0);
        history.hide(objectNo, lamport, no);
        history.amended(objectNo);
        if (objects.byNo(objectNo)?.deleted) return;
        pendingBodies.put(no, objectNo, "body", id);
        store.putMeta(BODIES_GIVEN_UP, Uint8Array.of(1));
      })();
      const objectId = objects.byNo(objectNo)?.idText;
      const facts = { change: cidFromDigest(id), objectId };
      if (!root && objectId !== undefined) deps.onMissed(objectId);
      if (root) onRepair("root.bytes", facts);
      else onRepair("change.bytes", facts);
      return true;
    },
  };
}
