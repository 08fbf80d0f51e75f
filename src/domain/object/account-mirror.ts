import type { AccountValues } from "../../account/own-space/account-values.ts";
import type { ObjectId } from "../../base/ids.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";

/** Copies the account's own values into the rows of a space's objects on this device, and keeps them in step. */
export function createAccountMirror(deps: {
  engine: ChangeEngine;
  values: AccountValues;
  onBackgroundError(error: unknown): void;
}) {
  const { engine, values } = deps;

  /** Brings one row in step. Values that the account no longer has are removed from the row. */
  const mirror = (objectId: ObjectId, removed: readonly string[] = []): Promise<void> =>
    engine.write((tx) => {
      const object = tx.object(objectId);
      const row = object && tx.record(object, OBJECTS_DATASET, objectId);
      if (!object || !row) return;
      const wanted = values.of(objectId);
      const fields: Record<string, Json | undefined> = {};
      for (const [path, value] of Object.entries(wanted))
        if (!Bun.deepEquals(valueAt(row, path), value)) fields[path] = value;
      for (const path of removed) if (!Object.hasOwn(wanted, path)) fields[path] = undefined;
      if (Object.keys(fields).length > 0) tx.setLocal(object, OBJECTS_DATASET, objectId, fields);
    });

  const stop = values.onChanged((objectId) => {
    if (engine.object(objectId)) mirror(objectId).catch(deps.onBackgroundError);
  });

  return {
    mirror,
    /** Must be called when the space is opened: takes over what other devices set while it was closed. */
    async mirrorAll(): Promise<void> {
      for (const objectId of values.objectsOf(engine.spaceId)) await mirror(objectId);
    },
    close: stop,
  };
}

function valueAt(row: JsonObject, path: string): Json | undefined {
  let node: Json | undefined = row;
  for (const segment of path.split("."))
    node = isJsonObject(node) && Object.hasOwn(node, segment) ? node[segment] : undefined;
  return node;
}
