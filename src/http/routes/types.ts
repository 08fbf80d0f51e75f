import { svcError } from "../../protocol/errors.ts";
import {
  type DatasetDef,
  DatasetDefCreated,
  DatasetDefList,
  DatasetDraftBody,
  type FieldDef,
  FieldDefCreated,
  FieldDraftBody,
  LeafPatchBody,
  TypeCreateBody,
  TypeCreated,
  TypeInfo,
  TypeList,
} from "../../protocol/type.ts";
import { type Route, route } from "../route.ts";

/** The errors with which every write to a type may answer. */
const CHANGE_ERRORS = [
  "type.not_found",
  "type.registered",
  "space.read_only",
  "dataset.validation",
  "request.too_large",
] as const;

/** Types of a space and the datasets they declare. */
export const typeRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/types",
    id: "listTypes",
    tag: "Types",
    summary: "List types",
    description: "Built-in types first, then those of the space, oldest first.",
    responses: { 200: { description: "The types", schema: TypeList } },
    handler: async ({ engine, params }) => {
      const { types } = await engine.space(params.spaceId);
      return { types: types.list() };
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/types",
    id: "createType",
    tag: "Types",
    summary: "Create a type",
    body: TypeCreateBody,
    example: { xKey: "book", name: "Book" },
    responses: { 201: { description: "The type", schema: TypeCreated } },
    errors: ["type.xkey_required", "type.xkey_conflict", "space.read_only", "dataset.validation", "request.too_large"],
    handler: async ({ engine, params, body }) => {
      const { types } = await engine.space(params.spaceId);
      const type = await types.create(body);
      return { ...type, typeId: type.id };
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/types/:typeId",
    id: "getType",
    tag: "Types",
    summary: "A type",
    responses: { 200: { description: "The type", schema: TypeInfo } },
    errors: ["type.not_found"],
    handler: async ({ engine, params }) => {
      const { types } = await engine.space(params.spaceId);
      return types.get(params.typeId);
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/types/:typeId",
    id: "deleteType",
    tag: "Types",
    summary: "Delete a type (not offered)",
    responses: { 204: { description: "Never" } },
    errors: ["sdk.not_implemented"],
    handler: async ({ engine, params }) => {
      await engine.space(params.spaceId);
      throw svcError("sdk.not_implemented", undefined, "Types are not deleted; what they declare can be removed");
    },
  }),
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/types/:typeId/datasets",
    id: "listTypeDatasets",
    tag: "Types",
    summary: "List the datasets a type declares",
    responses: { 200: { description: "The definitions", schema: DatasetDefList } },
    errors: ["type.not_found"],
    handler: async ({ engine, params }) => {
      const { datasets } = await engine.space(params.spaceId);
      return { datasets: datasets.list(params.typeId) };
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/types/:typeId/datasets",
    id: "declareDataset",
    tag: "Types",
    summary: "Declare a dataset",
    description: "Objects that carry the type then hold records of it. Names are unique in the space.",
    body: DatasetDraftBody,
    example: {
      name: "tasks",
      idRule: "auto",
      deleteBy: "author",
      fields: [
        { key: "title", kind: "string", mutableBy: "any" },
        { key: "due", kind: "datetime", mutableBy: "any" },
        { key: "by", stamp: "creator" },
      ],
      search: { title: "title" },
    },
    responses: { 201: { description: "Declared", schema: DatasetDefCreated } },
    errors: [...CHANGE_ERRORS, "dataset.name_conflict", "dataset.decl_invalid"],
    handler: async ({ engine, params, body }) => {
      const { datasets } = await engine.space(params.spaceId);
      const datasetDefId = await datasets.add(params.typeId, body);
      const fields = fieldsOf(datasets.list(params.typeId), datasetDefId);
      return { datasetDefId, writeOnceFields: fields.filter(isWriteOnce).map(({ key }) => key) };
    },
  }),
  route({
    method: "PATCH",
    path: "/v1/spaces/:spaceId/types/:typeId/datasets/:defId",
    id: "updateDataset",
    tag: "Types",
    summary: "Change display leaves of a definition",
    description: "displayName, description, search.title, search.text and search.scope; everything else never changes.",
    body: LeafPatchBody,
    example: { set: { displayName: "Tasks", "search.text": ["title", "notes"] } },
    responses: { 204: { description: "Changed" } },
    errors: [...CHANGE_ERRORS, "sdk.not_found", "dataset.immutable", "dataset.decl_invalid"],
    handler: async ({ engine, params, body }) => {
      const { datasets } = await engine.space(params.spaceId);
      await datasets.patch(params.typeId, params.defId, body);
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/types/:typeId/datasets/:defId",
    id: "removeDataset",
    tag: "Types",
    summary: "Remove a definition; its records stay, unwritable",
    responses: { 204: { description: "Removed" } },
    errors: [...CHANGE_ERRORS, "sdk.not_found"],
    handler: async ({ engine, params }) => {
      const { datasets } = await engine.space(params.spaceId);
      await datasets.remove(params.typeId, params.defId);
    },
  }),
  route({
    method: "POST",
    path: "/v1/spaces/:spaceId/types/:typeId/datasets/:defId/fields",
    id: "addDatasetField",
    tag: "Types",
    summary: "Add a field to a dataset",
    description: "Never required: records without it are there already.",
    body: FieldDraftBody,
    example: { key: "priority", kind: "number", mutableBy: "any" },
    responses: { 201: { description: "Added", schema: FieldDefCreated } },
    errors: [...CHANGE_ERRORS, "sdk.not_found", "dataset.decl_invalid"],
    handler: async ({ engine, params, body }) => {
      const { datasets } = await engine.space(params.spaceId);
      const fieldDefId = await datasets.addField(params.typeId, params.defId, body);
      const fields = fieldsOf(datasets.list(params.typeId), params.defId);
      return { fieldDefId, writeOnce: fields.some((field) => field.id === fieldDefId && isWriteOnce(field)) };
    },
  }),
  route({
    method: "DELETE",
    path: "/v1/spaces/:spaceId/types/:typeId/datasets/:defId/fields/:fieldId",
    id: "removeDatasetField",
    tag: "Types",
    summary: "Remove a field; values stay, unwritable",
    responses: { 204: { description: "Removed" } },
    errors: [...CHANGE_ERRORS, "sdk.not_found", "dataset.decl_invalid"],
    handler: async ({ engine, params }) => {
      const { datasets } = await engine.space(params.spaceId);
      await datasets.removeField(params.typeId, params.defId, params.fieldId);
    },
  }),
];

function fieldsOf(definitions: readonly DatasetDef[], defId: string): readonly FieldDef[] {
  return definitions.find(({ id }) => id === defId)?.fields ?? [];
}

const isWriteOnce = ({ mutableBy, stamp, scope }: FieldDef): boolean =>
  mutableBy === "never" && stamp === undefined && scope === "synced";
