import type { TouchedRecord } from "../../change/fold/commit-batch.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";

/** The types that objects carry, as a write sees them. */
interface CarriedTypes {
  /** Undefined for what has no row among the objects: the server's own. */
  types(tx: WriteTx, object: ObjectEntry): readonly Json[] | undefined;
  has(tx: WriteTx, object: ObjectEntry, typeId: string): boolean;
}

/**
 * An object's row is read once a batch, and again when something in the batch changed it or was rolled back: writes come
 * in bursts to one object.
 */
export function createCarriedTypes(): CarriedTypes {
  const typesByObject = new Map<string, readonly Json[] | undefined>();
  /** The batch that the map is of, and how much of what it touched has been looked through. */
  let batch: readonly TouchedRecord[] = [];
  let seen = 0;

  const forget = () => {
    typesByObject.clear();
    batch = [];
    seen = 0;
  };

  const typesOf: CarriedTypes["types"] = (tx, object) => {
    const touched = tx.touched();
    if (touched !== batch) forget();
    batch = touched;
    tx.scope.onRollback(forget);
    for (; seen < touched.length; seen++)
      if (touched[seen]!.dataset === OBJECTS_DATASET) typesByObject.delete(touched[seen]!.recordId);
    if (typesByObject.has(object.idText)) return typesByObject.get(object.idText);
    const row = tx.record(object, OBJECTS_DATASET, object.idText);
    const listed = isJsonObject(row?.["svc"]) ? row["svc"]["types"] : undefined;
    const types = row && (Array.isArray(listed) ? listed : []);
    typesByObject.set(object.idText, types);
    return types;
  };

  return { types: typesOf, has: (tx, object, typeId) => typesOf(tx, object)?.includes(typeId) === true };
}
