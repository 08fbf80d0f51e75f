import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { WriteTx } from "../../change/space-engine.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";

/** Body of `POST {S}/objects`, its shape checked. */
export interface CreateObjectRequest {
  types?: string[];
  initialProperties?: Record<string, JsonObject>;
  nav?: { type?: number; parentId?: string; pos?: string };
}

export interface CreatedObject {
  id: string;
  objectId: string;
  versionId: string;
}

/** The first content of an object's row, by where it lives. */
export interface PlannedRow {
  /** Dotted fields that the change carries. */
  synced: JsonObject;
  /** Values private to this device, by dotted path. */
  local: Record<string, Json>;
  /** Values private to the account, by dotted path. */
  account: Record<string, Json>;
}

/** What features that make objects of their own need of the object service. */
export interface ObjectWriterPort {
  /**
   * The dotted fields of a new object's row that every member sees: types, checked property values, place in its folder.
   * Errors: type.not_found (400), object.type_required, property.*; request.invalid_field for a value whose property is
   * private to a device or an account.
   */
  planShared(request: CreateObjectRequest): JsonObject;
  /** A created object with its first content. */
  writeNew(tx: WriteTx, fields: JsonObject): CreatedObject;
  /** First content of a derived object; answers its id. */
  fillDerived(tx: WriteTx, object: ObjectEntry, fields: JsonObject): string;
  /** Binds a built-in type to an object that lacks it. Errors: dataset.validation for a type or an object of the server's own. */
  attachType(tx: WriteTx, object: ObjectEntry, typeId: string): void;
}
