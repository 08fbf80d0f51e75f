/** The few things nearly every scenario needs: a space, a type with a dataset, an object that carries it. */
import type { Client, Json, JsonObject, Page, Row, SpaceInfo, UpsertResult, WriteResult } from "./client.ts";

export interface FieldDraft {
  key: string;
  kind?: string;
  scope?: "synced" | "local";
  required?: boolean;
  mutableBy?: "never" | "author" | "any";
  stamp?: "creator" | "createTime" | "modifyTime";
  shape?: JsonObject;
}
export interface DatasetDraft {
  name: string;
  idRule?: "auto" | "user";
  idPattern?: string;
  idMaxLen?: number;
  deleteBy?: "anyone" | "author";
  dynamic?: boolean;
  fields: FieldDraft[];
}
export interface CreatedType {
  id: string;
  typeId: string;
  xKey: string;
  name?: string;
}
export interface CreatedObject {
  id: string;
  objectId: string;
  versionId: string;
}

let counter = 0;
/** A name that no other call of this process has been given, fit for xKeys and dataset names. */
export function uniqueName(stem: string): string {
  return `${stem}_${process.pid.toString(36)}_${(counter++).toString(36)}`;
}

export function createSpace(client: Client, name = uniqueName("space")): Promise<SpaceInfo> {
  return client.post<SpaceInfo>("/v1/spaces", { name }, 201);
}

export function createType(client: Client, spaceId: string, xKey = uniqueName("type")): Promise<CreatedType> {
  return client.post<CreatedType>(`/v1/spaces/${spaceId}/types`, { xKey, name: xKey }, 201);
}

/** A well-formed id of nothing. */
export const ABSENT = "bafyreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";

/** The body that makes an object of this name. */
export const named = (name: string): JsonObject => ({ initialProperties: { svc: { name } } });

export function createObject(client: Client, spaceId: string, body: JsonObject = {}): Promise<CreatedObject> {
  return client.post<CreatedObject>(`/v1/spaces/${spaceId}/objects`, body, 201);
}

function declareDataset(
  client: Client,
  spaceId: string,
  typeId: string,
  draft: DatasetDraft,
): Promise<{ datasetDefId: string }> {
  return client.post(`/v1/spaces/${spaceId}/types/${typeId}/datasets`, draft, 201);
}

/** A dataset with its own type and one object that carries it, and short calls on it. */
export interface Collection {
  readonly spaceId: string;
  readonly typeId: string;
  readonly objectId: string;
  readonly dataset: string;
  /** `/v1/spaces/<id>` */
  readonly path: string;
  /** objectId and dataset, to spread into a body. */
  readonly target: { objectId: string; dataset: string };
  modify(records: Json[], more?: JsonObject): Promise<WriteResult>;
  upsert(records: { id: string; fields: JsonObject }[], more?: JsonObject): Promise<UpsertResult>;
  deleteRecords(recordIds: string[]): Promise<WriteResult>;
  query(body?: JsonObject): Promise<Page>;
  /** One record by id; undefined when a query does not find it. */
  find(id: string): Promise<Row | undefined>;
}

export const ANY_FIELDS: FieldDraft[] = [
  { key: "s", kind: "string", mutableBy: "any" },
  { key: "n", kind: "number", mutableBy: "any" },
  { key: "b", kind: "boolean", mutableBy: "any" },
  { key: "t", kind: "array", mutableBy: "any" },
  { key: "o", kind: "object", mutableBy: "any" },
  { key: "d", kind: "datetime", mutableBy: "any" },
];

export async function createCollection(
  client: Client,
  spaceId: string,
  draft: Partial<DatasetDraft> = {},
): Promise<Collection> {
  const type = await createType(client, spaceId);
  const dataset = draft.name ?? uniqueName("data");
  await declareDataset(client, spaceId, type.typeId, { idRule: "user", fields: ANY_FIELDS, ...draft, name: dataset });
  const object = await createObject(client, spaceId, { types: [type.typeId] });
  return openCollection(client, { spaceId, typeId: type.typeId, objectId: object.id, dataset });
}

export function openCollection(
  client: Client,
  ids: { spaceId: string; typeId: string; objectId: string; dataset: string },
): Collection {
  const path = `/v1/spaces/${ids.spaceId}`;
  const target = { objectId: ids.objectId, dataset: ids.dataset };
  const query = (body: JsonObject = {}): Promise<Page> => client.post<Page>(`${path}/query`, { ...target, ...body });
  return {
    ...ids,
    path,
    target,
    modify: (records, more = {}) => client.post(`${path}/modify`, { ...target, records, ...more }),
    upsert: (records, more = {}) => client.post(`${path}/upsert`, { ...target, records, ...more }),
    deleteRecords: (recordIds) => client.post(`${path}/delete-records`, { ...target, recordIds }),
    query,
    find: async (id) => (await query({ filter: { id } })).records[0],
  };
}

/** A record entry of a modify body that creates or changes with one multi-field `$set`. */
export function setFields(id: string, fields: JsonObject, upsert = true): JsonObject {
  return { id, upsert, ops: [{ type: "$set", value: fields }] };
}

/** A row without the members that every row has (`_ver`, `_traces`), for comparing content. */
export function content(row: Row | undefined): JsonObject | undefined {
  if (!row) return undefined;
  return Object.fromEntries(Object.entries(row).filter(([key]) => key !== "_ver" && key !== "_traces"));
}

/** `_ver.id`: the version that created the record. */
export function creationVersion(row: Row | undefined): string {
  const version = row?.["_ver"];
  const id = version !== null && typeof version === "object" && !Array.isArray(version) ? version["id"] : undefined;
  if (typeof id !== "string" || id === "") throw new Error(`no _ver.id in ${JSON.stringify(row)}`);
  return id;
}
