import type { WriteTx } from "../../change/change-engine.ts";
import type { ObjectEntry } from "../../change/object-cache.ts";
import type { JsonObject } from "../../protocol/json.ts";

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

/** What features that make objects of their own need of the object service. */
export interface ObjectWriterPort {
  /**
   * The dotted fields of a new object's row: types, checked property values, place in its folder. Errors: type.not_found
   * (400), object.type_required, property.*.
   */
  planFields(request: CreateObjectRequest): JsonObject;
  /** A created object with its first content. */
  writeNew(tx: WriteTx, fields: JsonObject): CreatedObject;
  /** First content of a derived object; answers its id. */
  fillDerived(tx: WriteTx, object: ObjectEntry, fields: JsonObject): string;
  /** Binds a built-in type to an object that lacks it. */
  attachType(tx: WriteTx, object: ObjectEntry, typeId: string): void;
}
