import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { refusedAs, refusedPart, svcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { TypeInfo } from "../../protocol/type.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { builtInTypes } from "./built-in-types.ts";
import { TYPE_MARKER } from "./definition-datasets.ts";
import { XKEY } from "./property-record.ts";
import type { Schema } from "./schema.ts";

export interface TypeDraft {
  name?: string;
  description?: string;
  iconCid?: string;
  xKey?: string;
  derived?: boolean;
}

export interface Backlink {
  objectId: string;
  typeId: string;
  propId: string;
}

interface TypeServiceDeps {
  engine: ChangeEngine;
  schema: Schema;
  requireWriter(): void;
  /** Makes an object whose row holds the given dotted paths. */
  createRow(tx: WriteTx, fields: JsonObject): { id: string };
  /** Every place in the objects' rows that links to an object. */
  linksTo: SpaceStore["schema"]["linksTo"];
  /** Gives an object that is there without content its row. */
  fillRow(tx: WriteTx, object: ObjectEntry, fields: JsonObject): void;
}

/** Type of the roots whose ids follow from a type's key. */
const DERIVED_TYPE = "svc.derived-type";

/** The types of a space. A type is an object whose row is marked as one. */
export type TypeService = ReturnType<typeof createTypeService>;

export function createTypeService(deps: TypeServiceDeps) {
  const { engine, schema } = deps;
  const { view } = schema;
  const get = (typeName: string): TypeInfo => {
    const typeId = schema.typeId(typeName);
    const info = builtInTypes().find((type) => type.id === typeId) ?? (typeId && view.type(typeId)?.info);
    if (!info) throw svcError("type.not_found", { typeId: typeName });
    return info;
  };

  const derive = (tx: WriteTx, xKey: string, fields: JsonObject): string => {
    const object = tx.ensureDerived(DERIVED_TYPE, xKey);
    deps.fillRow(tx, object, fields);
    return object.idText;
  };

  return {
    /** Built-in types, then those of the space, oldest first. */
    list: (): TypeInfo[] => [...builtInTypes(), ...view.types().map((type) => type.info)],
    /** By id or xKey. Throws type.not_found. */
    get,

    /**
     * Makes a type. With `derived` its id follows from its key, so that devices that make it apart make one; it is adopted
     * where it is there, also under an id of its own. Throws type.xkey_required, type.xkey_conflict, request.invalid_field.
     */
    create(draft: TypeDraft): Promise<TypeInfo> {
      const { xKey, name, description, iconCid } = draft;
      if (!xKey) throw refusedAs("type.xkey_required", undefined, refusal("type.no_xkey"));
      if (!XKEY.test(xKey)) throw refusedPart("request.invalid_field", { field: "xKey" }, refusal("key.xkey"), "takes");
      if (draft.derived) {
        const known = view.typeByXKey(xKey);
        if (known) return Promise.resolve(known.info);
      }
      deps.requireWriter();
      return engine.write((tx) => {
        const existingTypeId = schema.typeId(xKey);
        if (existingTypeId !== undefined)
          throw refusedAs("type.xkey_conflict", { xKey, existingTypeId }, refusal("type.xkey_taken", { xKey }));
        const fields = {
          "svc.types": [TYPE_MARKER],
          "type.xkey": xKey,
          ...(name ? { "svc.name": name } : {}),
          ...(description ? { "svc.description": description } : {}),
          ...(iconCid ? { "svc.icon": iconCid } : {}),
        };
        const id = draft.derived ? derive(tx, xKey, fields) : deps.createRow(tx, fields).id;
        view.expire(id);
        tx.scope.onRollback(() => view.expire(id));
        return get(id);
      });
    },

    /** Returns the objects that link to an object through properties of format links, of types that they still carry. */
    backlinks(objectId: string): Backlink[] {
      return deps
        .linksTo(objectId)
        .filter(({ ns, prop }) => schema.properties(ns)?.get(prop)?.format?.type === "links")
        .map(({ id, ns, prop }) => ({ objectId: id, typeId: ns, propId: prop }));
    },
  };
}
