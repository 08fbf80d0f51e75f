import type { JsonObject } from "../../src/protocol/json.ts";
import type { PropertyDef } from "../../src/protocol/type.ts";
import { call, spacePath, type WriteResult } from "./api-client.ts";

export interface TypeInfo {
  id: string;
  name?: string;
  xKey?: string;
  builtIn?: boolean;
}

/** Types and datasets of a space, and records of its datasets. */
export const typeApi = {
  list: async (spaceId: string) => (await call<{ types: TypeInfo[] }>("GET", spacePath(spaceId, "types"))).types,
  properties: async (spaceId: string, typeId: string) =>
    (await call<{ properties: PropertyDef[] }>("GET", spacePath(spaceId, "types", typeId, "properties"))).properties,
  create: (spaceId: string, name: string, xKey: string) =>
    call<TypeInfo & { typeId: string }>("POST", spacePath(spaceId, "types"), { name, xKey }),
  createDataset: (spaceId: string, typeId: string, draft: JsonObject) =>
    call<{ datasetDefId: string }>("POST", spacePath(spaceId, "types", typeId, "datasets"), draft),
  createRecord: (spaceId: string, objectId: string, dataset: string, id: string, fields: JsonObject) =>
    call<WriteResult>("POST", spacePath(spaceId, "modify"), {
      objectId,
      dataset,
      records: [{ id, upsert: true, ops: [{ type: "$set", path: "", value: fields }] }],
    }),
  deleteRecord: (spaceId: string, objectId: string, dataset: string, id: string) =>
    call<WriteResult>("POST", spacePath(spaceId, "delete-records"), { objectId, dataset, recordIds: [id] }),
};
