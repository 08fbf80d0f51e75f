import type { WriteTx } from "../../change/change-engine.ts";
import type { TouchedRecord } from "../../change/commit-batch.ts";
import type { ObjectEntry } from "../../change/object-cache.ts";
import { OBJECTS_DATASET } from "../../change/projection.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";

/**
 * Makes the check whether an object carries a type, inside a write. An object's row is read once a batch, and again
 * when something in the batch changed it or was rolled back: writes come in bursts to one object.
 */
export function createTypeCheck(): (tx: WriteTx, object: ObjectEntry, typeId: string) => boolean {
  const typesByObject = new Map<string, Json | undefined>();
  /** The batch that the map is of, and how much of what it touched has been looked through. */
  let batch: readonly TouchedRecord[] = [];
  let seen = 0;

  const forget = () => {
    typesByObject.clear();
    batch = [];
    seen = 0;
  };

  const typesOf = (tx: WriteTx, object: ObjectEntry): Json | undefined => {
    const touched = tx.touched();
    if (touched !== batch) forget();
    batch = touched;
    tx.scope.onRollback(forget);
    for (; seen < touched.length; seen++)
      if (touched[seen]!.dataset === OBJECTS_DATASET) typesByObject.delete(touched[seen]!.recordId);
    if (typesByObject.has(object.idText)) return typesByObject.get(object.idText);
    const svc = tx.record(object, OBJECTS_DATASET, object.idText)?.["svc"];
    const types = isJsonObject(svc) ? svc["types"] : undefined;
    typesByObject.set(object.idText, types);
    return types;
  };

  return (tx, object, typeId) => {
    const types = typesOf(tx, object);
    return Array.isArray(types) && types.includes(typeId);
  };
}
