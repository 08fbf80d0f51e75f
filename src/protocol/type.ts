import { type Static, Type } from "@sinclair/typebox";
import { describedAs, named, oneOf, strict } from "./schema.ts";

/** The kinds with which properties and fields are declared. */
export const KINDS = ["string", "number", "boolean", "array", "object", "datetime"] as const;

const Kind = named("Kind", oneOf(KINDS));
const MutableBy = named("MutableBy", oneOf(["never", "author", "any"]));
const Stamp = named("Stamp", oneOf(["creator", "createTime", "modifyTime"]));
const IdRule = named("IdRule", oneOf(["auto", "user"]));
const DeleteBy = named("DeleteBy", oneOf(["anyone", "author"]));
const FieldScope = named("FieldScope", oneOf(["synced", "local", "derived"]));
const SettableFieldScope = named("SettableFieldScope", oneOf(["synced", "local"]));

/** A kind and, for arrays and objects, the shape of their content. */
const ShapeSchema = Type.Recursive(
  (This) =>
    strict({
      kind: oneOf(KINDS, { fault: "request.schema" }),
      items: Type.Optional(This),
      properties: Type.Optional(Type.Record(Type.String(), This)),
      required: Type.Optional(Type.Array(Type.String(), { description: "Keys that an object has" })),
    }),
  { $id: "Shape", description: "A kind; `items` of an array, `properties` of an object. Other keys are free." },
);

const TextBag = Type.Record(Type.String(), Type.String());

export const TypeInfo = named(
  "TypeInfo",
  strict({
    id: Type.String(),
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    iconCid: Type.Optional(Type.String()),
    xKey: Type.Optional(Type.String({ description: "Stable key, unique within the space; a built-in's is its id" })),
    builtIn: Type.Optional(Type.Literal(true)),
  }),
);
export type TypeInfo = Static<typeof TypeInfo>;

export const TypeCreated = named("TypeCreated", strict({ ...TypeInfo.properties, typeId: Type.String() }));
export const TypeList = named("TypeList", strict({ types: Type.Array(TypeInfo) }));
export const TypeCreateBody = named(
  "TypeCreateBody",
  strict({
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    iconCid: Type.Optional(Type.String()),
    xKey: Type.Optional(Type.String({ description: "Required: 1 to 128 characters of A-Z, a-z, 0-9 and _ . / : -" })),
    derived: Type.Optional(
      Type.Boolean({
        description: "Its id follows from its xKey, the same on every device; a type that has that id is adopted",
      }),
    ),
  }),
);

const OptionSchema = named(
  "SelectOption",
  strict({
    name: Type.Optional(Type.String()),
    color: Type.Optional(Type.String()),
    pos: Type.Optional(Type.String()),
    meta: Type.Optional(TextBag),
  }),
);

const FormatSchema = named(
  "PropertyFormat",
  strict({
    type: oneOf(["links", "date", "datetime", "select", "multiselect"]),
    ui: Type.Optional(Type.String()),
    filter: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: "Filter over the objects a page offers to link to" }),
    ),
    options: Type.Optional(Type.Record(Type.String(), OptionSchema, { description: "Options of a select by key" })),
    meta: Type.Optional(TextBag),
  }),
);

const propertyFields = {
  description: Type.Optional(Type.String()),
  xKey: Type.Optional(Type.String({ description: "Stable key, unique within the type" })),
  meta: Type.Optional(TextBag),
  items: Type.Optional(ShapeSchema),
  properties: Type.Optional(Type.Record(Type.String(), ShapeSchema)),
  required: Type.Optional(Type.Array(Type.String())),
};

export const PropertyDef = named(
  "PropertyDef",
  strict({
    id: Type.String({ description: "The propId: what values are keyed by" }),
    name: Type.String(),
    kind: Kind,
    scope: oneOf(["synced", "account", "local", "derived"]),
    format: Type.Optional(FormatSchema),
    ...propertyFields,
  }),
);
export type PropertyDef = Static<typeof PropertyDef>;

export const PropertyCreated = named("PropertyCreated", strict({ ...PropertyDef.properties, propId: Type.String() }));
export const PropertyList = named("PropertyList", strict({ properties: Type.Array(PropertyDef) }));
export const PropertyCreateBody = named(
  "PropertyCreateBody",
  strict({
    name: Type.String(),
    derived: Type.Optional(
      Type.Boolean({
        description: "The id that type and xKey yield, the same on every device; adopts it when it is there",
      }),
    ),
    kind: Type.Optional(
      oneOf(KINDS, { fault: "request.schema", description: "May be left out where the format implies it" }),
    ),
    scope: Type.Optional(
      oneOf(["synced", "account", "local"], {
        fault: "request.schema",
        description: "Where values live; default synced",
      }),
    ),
    format: Type.Optional(describedAs(FormatSchema, Type.Object({}, { additionalProperties: true }))),
    ...propertyFields,
  }),
);
export type PropertyCreateBody = Static<typeof PropertyCreateBody>;

/** Body of a PATCH of a definition: dotted paths of leaves. */
export const LeafPatchBody = named(
  "LeafPatchBody",
  strict({
    set: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: 'Values by dotted path: `{"format.ui": "select"}`' }),
    ),
    unset: Type.Optional(Type.Array(Type.String(), { description: "Dotted paths to remove" })),
  }),
);
export type LeafPatchBody = Static<typeof LeafPatchBody>;

const SearchSchema = named(
  "SearchDeclaration",
  strict(
    {
      title: Type.Optional(Type.String({ description: "Key of the field that titles a record" })),
      text: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
      scope: Type.Optional(Type.String({ description: "Search scope; `basic` when absent" })),
    },
    { description: "What of a record is indexed" },
  ),
);

export const FieldDef = named(
  "FieldDef",
  strict({
    id: Type.String(),
    key: Type.String(),
    name: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    kind: Kind,
    shape: Type.Optional(ShapeSchema),
    scope: FieldScope,
    required: Type.Optional(Type.Literal(true)),
    mutableBy: MutableBy,
    stamp: Type.Optional(Stamp),
    invalid: Type.Optional(Type.Literal(true)),
    invalidReason: Type.Optional(Type.String({ description: "Why the field has no effect" })),
  }),
);
export type FieldDef = Static<typeof FieldDef>;

export const DatasetDef = named(
  "DatasetDef",
  strict({
    id: Type.String(),
    name: Type.String(),
    displayName: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    dynamic: Type.Optional(Type.Literal(true)),
    idRule: IdRule,
    idPattern: Type.Optional(Type.String()),
    idMaxLen: Type.Optional(Type.Integer()),
    deleteBy: DeleteBy,
    skipHistory: Type.Optional(Type.Literal(true)),
    search: Type.Optional(SearchSchema),
    fields: Type.Array(FieldDef),
    invalid: Type.Optional(Type.Literal(true)),
    invalidReason: Type.Optional(
      Type.String({ description: "Why the name means another definition; this one is reached under its id" }),
    ),
  }),
);
export type DatasetDef = Static<typeof DatasetDef>;

export const DatasetDefList = named("DatasetDefList", strict({ datasets: Type.Array(DatasetDef) }));
export const DatasetDefCreated = named(
  "DatasetDefCreated",
  strict({
    datasetDefId: Type.String(),
    writeOnceFields: Type.Array(Type.String(), {
      description:
        "Keys of the fields that only the creating change of a record sets, because `mutableBy` was left out or `never`; remove such a field and add it anew to change that",
    }),
  }),
);
export const FieldDefCreated = named(
  "FieldDefCreated",
  strict({
    fieldDefId: Type.String(),
    writeOnce: Type.Boolean({ description: "Whether only the creating change of a record sets it" }),
  }),
);

const fieldDraft = {
  key: Type.String(),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  kind: Type.Optional(describedAs(Kind, Type.String({ description: "Default string" }))),
  shape: Type.Optional(describedAs(ShapeSchema, Type.Object({}, { additionalProperties: true }))),
  scope: Type.Optional(describedAs(SettableFieldScope, Type.String({ description: "Default synced" }))),
  required: Type.Optional(Type.Boolean({ description: "Only in the initial declaration" })),
  mutableBy: Type.Optional(
    describedAs(
      MutableBy,
      Type.String({ description: "Default never: set by the creating change; author needs a creator stamp" }),
    ),
  ),
  stamp: Type.Optional(describedAs(Stamp, Type.String({ description: "Set by the server; one field each" }))),
};
export const FieldDraftBody = named("FieldDraftBody", strict(fieldDraft));
export type FieldDraft = Static<typeof FieldDraftBody>;

export const DatasetDraftBody = named(
  "DatasetDraftBody",
  strict({
    name: Type.String({ description: "Unique in the space: a-z, 0-9, _ and -, at most 64 characters" }),
    derived: Type.Optional(
      Type.Boolean({
        description:
          "The ids that type, name and keys yield, the same on every device; adopts the type's own of that name",
      }),
    ),
    displayName: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    dynamic: Type.Optional(Type.Boolean({ description: "Undeclared keys are allowed" })),
    idRule: Type.Optional(describedAs(IdRule, Type.String({ description: "Default auto: the server names records" }))),
    idPattern: Type.Optional(Type.String({ description: "RE2 syntax over the whole id; only with idRule user" })),
    idMaxLen: Type.Optional(Type.Integer({ description: "Only with idRule user; default 128" })),
    deleteBy: Type.Optional(
      describedAs(DeleteBy, Type.String({ description: "Default anyone; author needs a creator stamp" })),
    ),
    skipHistory: Type.Optional(Type.Boolean()),
    search: Type.Optional(SearchSchema),
    fields: Type.Array(FieldDraftBody),
  }),
);
export type DatasetDraft = Static<typeof DatasetDraftBody>;

/** JSON Schema of a dataset's records, with `x-` keys (TYPE-4). */
const RecordSchema = named(
  "RecordJsonSchema",
  Type.Object({}, { additionalProperties: true, description: "JSON Schema with x- keys" }),
);

export const DatasetListing = named(
  "DatasetListing",
  strict({
    datasets: Type.Array(
      strict({
        name: Type.String(),
        schema: RecordSchema,
        typeId: Type.Optional(Type.String({ description: "Of the type that owns the dataset" })),
      }),
    ),
  }),
);

export const Backlinks = named(
  "Backlinks",
  strict({
    backlinks: Type.Array(strict({ objectId: Type.String(), typeId: Type.String(), propId: Type.String() })),
  }),
);
