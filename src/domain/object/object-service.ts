import type { ObjectId } from "../../base/ids.ts";
import { keyBetween } from "../../base/position-key.ts";
import type { RecordOp } from "../../change/codec/change-body.ts";
import type { FieldScope } from "../../change/codec/dataset-rules.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { refusedAs, refusedPart, SvcError, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { canonicalInstants } from "../../query/value/canonical-instants.ts";
import { type PartialWriteResult, toPartialWriteResult, toWriteResult, type WriteResult } from "../record/port.ts";
import { type SchemaPort, TYPE_MARKER } from "../type/port.ts";
import { OBJECT_RULES } from "./object-rules.ts";
import type { CreatedObject, CreateObjectRequest, ObjectWriterPort, PlannedRow } from "./port.ts";

interface ObjectServiceDeps {
  engine: ChangeEngine;
  schema: SchemaPort;
  requireWriter(): void;
  /** Throws acl.forbidden unless this account belongs to the space. */
  requireReader(): void;
  /** Keeps values with scope account and lays them over the row; null removes. */
  setAccountValues(objectId: ObjectId, values: Readonly<Record<string, Json>>): Promise<void>;
  /** Objects that end with this one. */
  childrenOf(object: ObjectEntry): readonly string[];
}

const NAV_ITEM = 1;
const NAV_FOLDER = 2;

/** Objects of a space: their rows, their types and their property values. */
export type ObjectService = ReturnType<typeof createObjectService>;

export function createObjectService(deps: ObjectServiceDeps) {
  const { engine, schema } = deps;

  /** Returns the position after the last child of a folder. */
  const nextPosition = (parentId: string): string => {
    const last = engine.lastPosition(parentId);
    const next = keyBetween(last, undefined, Math.random);
    return next ?? `${last}V`;
  };

  /** Property values by namespace, each checked against its type, by the scope its property declares. */
  const initialFields = (values: Record<string, JsonObject>, types: ReadonlySet<string>): PlannedRow => {
    const row: PlannedRow = { synced: {}, local: {}, account: {} };
    for (const [namespace, given] of Object.entries(values)) {
      const properties = canonicalInstants(given) as JsonObject;
      const typeId = schema.typeId(namespace);
      if (!typeId) throw typeNotFound(namespace, refusal("type.unknown_initial", { name: namespace }));
      if (!types.has(typeId))
        throw refusedAs(
          "object.type_required",
          { typeId: namespace },
          refusal("object.type_not_listed", { name: namespace }),
        );
      for (const [property, value] of Object.entries(properties)) {
        const scope = schema.checkValues(typeId, { [property]: value }, 400);
        if (value !== null && scope !== "derived") row[scope][`${typeId}.${property}`] = value;
      }
    }
    return row;
  };

  const planRow = (request: CreateObjectRequest): PlannedRow => {
    const types: string[] = [];
    for (const name of request.types ?? []) {
      const typeId = schema.attachableTypeId(name);
      if (!typeId) throw typeNotFound(name, refusal("type.unknown_carried", { name }));
      if (!types.includes(typeId)) types.push(typeId);
    }
    if (!types.includes("nav")) types.push("nav");
    const row = initialFields(request.initialProperties ?? {}, new Set([...types, "svc"]));
    const { synced: fields } = row;
    if (request.nav?.type !== undefined) checkNavType("nav.type", request.nav.type);
    if (fields["nav.type"] !== undefined) checkNavType("initialProperties.nav.type", fields["nav.type"]);
    const parentId = request.nav?.parentId ?? (fields["nav.parentId"] as string | undefined) ?? "";
    const synced: JsonObject = {
      "svc.types": types,
      ...fields,
      "nav.type": request.nav?.type ?? fields["nav.type"] ?? NAV_ITEM,
      "nav.parentId": parentId,
      "nav.pos": request.nav?.pos ?? fields["nav.pos"] ?? nextPosition(parentId),
    };
    return { ...row, synced };
  };

  const port: ObjectWriterPort = {
    planShared(request) {
      const { synced, local, account } = planRow(request);
      const [path] = Object.keys({ ...local, ...account });
      if (path === undefined) return synced;
      const why = refusal("object.private_property");
      throw refusedPart("request.invalid_field", { field: path }, why, "refused", refusal("object.set_afterwards"));
    },
    writeNew,
    fillDerived(tx, object, fields) {
      fill(tx, object, fields);
      return object.idText;
    },
    attachType(tx, object, typeId) {
      const row = tx.record(object, OBJECTS_DATASET, object.idText);
      if (!row || isType(row)) {
        const dataset = OBJECTS_DATASET;
        const reason = refusal("write.no_content");
        const why = refusal("object.takes_no_content", { objectId: object.idText, type: typeId });
        throw refusedAs("dataset.validation", { dataset }, why, { reason });
      }
      const types = (row["svc"] as JsonObject | undefined)?.["types"];
      if (!Array.isArray(types) || types.includes(typeId)) return;
      const op: RecordOp = { type: "$addToSet", path: "svc.types", value: typeId };
      tx.append(object, { dataset: OBJECTS_DATASET, records: [{ id: object.idText, ops: [op] }] }, OBJECT_RULES);
    },
  };

  return {
    ...port,

    /**
     * Creates an object in one durable step: root, first content and device-local values together. Values private to
     * the account are kept behind it.
     */
    async create(request: CreateObjectRequest): Promise<CreatedObject> {
      deps.requireWriter();
      let account: PlannedRow["account"] = {};
      const created = await engine.write((tx) => {
        const row = planRow(request);
        account = row.account;
        const made = writeNew(tx, row.synced);
        if (Object.keys(row.local).length > 0) tx.setLocal(tx.object(made.id)!, OBJECTS_DATASET, made.id, row.local);
        return made;
      });
      if (Object.keys(account).length > 0) await deps.setAccountValues(created.id as ObjectId, account);
      return created;
    },

    row: (objectId: string): JsonObject | undefined => {
      const object = engine.object(objectId);
      return object && !object.deleted ? engine.record(object, OBJECTS_DATASET, objectId) : undefined;
    },

    /** `POST {S}/properties/:objectId/set/:typeId`: values of one type; a null removes. */
    async setProperties(objectId: string, typeName: string, values: JsonObject): Promise<PartialWriteResult> {
      deps.requireReader();
      const patch = canonicalInstants(values) as JsonObject;
      const typeId = schema.typeId(typeName);
      if (!typeId) throw svcError("type.not_found", { typeId: typeName });
      const scope = schema.checkValues(typeId, patch, 400);
      if (scope === "synced") deps.requireWriter();
      const result = await engine.write((tx) => writeProperties(tx, objectId, typeId, patch, scope));
      if (scope === "account") {
        const byPath = Object.fromEntries(
          Object.entries(patch).map(([property, value]) => [`${typeId}.${property}`, value]),
        );
        await deps.setAccountValues(objectId as ObjectId, byPath);
      }
      return result;
    },

    /** Enters the object into the deletion log. Its row is gone with the commit; its content is removed afterwards. */
    async delete(objectId: string): Promise<void> {
      deps.requireWriter();
      await engine.write((tx) => {
        const object = tx.object(objectId);
        const gone = () => refusedAs("sdk.not_found", { objectId }, refusal("object.unknown"));
        if (!object || object.deleted) throw gone();
        if (object.derived) throw svcError("space.derived_undeletable", { objectId });
        if (isType(tx.record(object, OBJECTS_DATASET, objectId)))
          throw refusedAs("sdk.not_implemented", undefined, refusal("object.types_stay"));
        for (const child of deps.childrenOf(object)) {
          const entry = tx.object(child);
          if (entry && !entry.deleted) tx.deleteObject(entry);
        }
        // If one commit has several deletions of an object, the first one deletes it.
        if (!tx.deleteObject(object)) throw gone();
      });
    },
  };

  function writeProperties(
    tx: WriteTx,
    objectId: string,
    typeId: string,
    patch: JsonObject,
    scope: FieldScope,
  ): PartialWriteResult {
    const object = tx.object(objectId);
    const row = object && !object.deleted ? tx.record(object, OBJECTS_DATASET, objectId) : undefined;
    if (!object || !row) throw svcError("object.not_found", { objectId });
    const carried = (row["svc"] as JsonObject | undefined)?.["types"];
    if (typeId !== "svc" && !(Array.isArray(carried) && carried.includes(typeId))) {
      const reason = refusal("object.without_type");
      throw refusedAs("dataset.validation", { dataset: OBJECTS_DATASET }, refusal("object.other_type"), { reason });
    }
    if (Object.keys(patch).length === 0 || scope === "account") {
      return { versionId: scope === "account" ? tx.localVersion() : "", changeId: "", recordIds: [objectId] };
    }
    if (scope === "local") {
      const fields: Record<string, Json | undefined> = {};
      for (const [property, value] of Object.entries(patch)) fields[`${typeId}.${property}`] = value ?? undefined;
      tx.setLocal(object, OBJECTS_DATASET, objectId, fields);
      return { versionId: tx.localVersion(), changeId: "", recordIds: [objectId] };
    }
    const ops = Object.entries(patch).map(
      ([property, value]): RecordOp =>
        value === null
          ? { type: "$unset", path: `${typeId}.${property}` }
          : { type: "$set", path: `${typeId}.${property}`, value },
    );
    return toPartialWriteResult(
      tx.appendPartly(object, { dataset: OBJECTS_DATASET, records: [{ id: objectId, ops }] }, OBJECT_RULES),
    );
  }

  function writeNew(tx: WriteTx, fields: JsonObject): CreatedObject {
    const object = tx.createObject();
    const { versionId } = fill(tx, object, fields);
    return { id: object.idText, objectId: object.idText, versionId };
  }

  function fill(tx: WriteTx, object: ObjectEntry, fields: JsonObject): WriteResult {
    const record = { id: "", upsert: true, ops: [{ type: "$set" as const, path: "", value: fields }] };
    return toWriteResult(tx.append(object, { dataset: OBJECTS_DATASET, records: [record] }, OBJECT_RULES));
  }
}

function checkNavType(field: string, type: Json): void {
  if (type === NAV_ITEM || type === NAV_FOLDER) return;
  const why = refusal("object.nav_type", { item: NAV_ITEM, folder: NAV_FOLDER });
  throw refusedPart("request.invalid_field", { field }, why, "refused");
}

/** The type is named in the body, so this is no 404. */
function typeNotFound(typeId: string, why: Refusal) {
  return new SvcError("type.not_found", { details: { typeId }, refusal: why, status: 400 });
}

function isType(row: JsonObject | undefined): boolean {
  const types = (row?.["svc"] as JsonObject | undefined)?.["types"];
  return Array.isArray(types) && types.includes(TYPE_MARKER);
}
