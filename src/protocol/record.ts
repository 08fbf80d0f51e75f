import { type Static, Type } from "@sinclair/typebox";
import { LIMITS } from "./limits.ts";
import { describedAs, named, oneOf, strict } from "./schema.ts";

/** A tree with the names of a record's parts; it is as deep as the record. */
const VersionTree = named(
  "VersionTree",
  Type.Object(
    {},
    {
      additionalProperties: Type.Union([Type.String(), Type.Unsafe<object>({ $ref: "VersionTree" })]),
      description: "The version of each part, or those of its own parts; `*` is that of all that are not listed",
    },
  ),
);

/** A record as stored. It is open, because datasets define records. */
export const AnyRecord = named(
  "AnyRecord",
  Type.Object(
    {
      id: Type.String(),
      _ver: Type.Optional(
        Type.Object(
          { id: Type.String({ description: "Of its creation; orders records by age, compared as text" }) },
          {
            additionalProperties: describedAs(Type.Union([Type.String(), VersionTree]), Type.Unknown()),
            description: "By which change each part was last written",
          },
        ),
      ),
    },
    { additionalProperties: true, description: "A whole record, with `_ver` and, where present, `_traces`" },
  ),
);

const snapshotFields = {
  filter: Type.Optional(
    Type.Union([Type.Null(), Type.Object({}, { additionalProperties: true })], {
      description: "Mongo-style filter; absent, null or {} matches all",
    }),
  ),
  sort: Type.Optional(
    Type.Array(Type.String(), { description: "Dotted paths, `-` before one is descending; ties by id" }),
  ),
  limit: Type.Optional(Type.Integer({ description: "Absent, 0 or negative: all" })),
  offset: Type.Optional(Type.Integer({ description: "0 or negative: none" })),
  includeTotal: Type.Optional(Type.Boolean({ description: "`true` adds total and hasNext" })),
  projection: Type.Optional(Type.Unknown({ description: "Accepted, not applied" })),
};

const windowFields = {
  mailboxCapacity: Type.Optional(
    Type.Integer({ minimum: 16, description: "Entries kept for a slow reader before closed{overflow}; default 256" }),
  ),
  driftBudgetPercent: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 100,
      description: "Share of the window that may leave unreplaced before closed{drifted}; default 30",
    }),
  ),
};

const ofObject = {
  objectId: Type.String({ minLength: 1 }),
  dataset: Type.String({ minLength: 1 }),
};

const ofCollection = {
  objectId: Type.Optional(Type.String({ description: "Absent or empty here" })),
  dataset: Type.Optional(Type.String({ description: "Absent or empty here" })),
};

/** Body of a query over a dataset of one object. */
export const ObjectQueryBody = named("ObjectQueryBody", strict({ ...ofObject, ...snapshotFields }));
export const ObjectWindowBody = named("ObjectWindowBody", strict({ ...ofObject, ...snapshotFields, ...windowFields }));
/** Body of a query over a collection of its own: objects, spaces, devices, files. */
export const CollectionQueryBody = named("CollectionQueryBody", strict({ ...ofCollection, ...snapshotFields }));
export const CollectionWindowBody = named(
  "CollectionWindowBody",
  strict({ ...ofCollection, ...snapshotFields, ...windowFields }),
);
export type CollectionQueryBody = Static<typeof CollectionQueryBody>;

export const QueryReply = named(
  "QueryReply",
  strict({
    records: Type.Array(AnyRecord),
    total: Type.Optional(Type.Integer({ description: "All matches, whatever limit and offset are" })),
    hasNext: Type.Optional(Type.Boolean()),
  }),
);

const traceIds = Type.Optional(
  Type.Array(Type.String({ maxLength: LIMITS.traceIdChars }), {
    maxItems: LIMITS.traceIds,
    description: "Opaque ids kept with the change, and with each record it writes",
  }),
);

export const ModifyBody = named(
  "ModifyBody",
  Type.Object({
    objectId: Type.String({ minLength: 1 }),
    dataset: Type.String({ minLength: 1 }),
    records: Type.Array(
      Type.Object({
        id: Type.String({ description: "Empty with upsert: the server derives one" }),
        upsert: Type.Optional(
          Type.Boolean({
            description: "`true` makes a record that is not there; without it such a record is passed by",
          }),
        ),
        ops: Type.Array(
          Type.Object({
            type: oneOf(["$set", "$unset", "$inc", "$addToSet", "$pull"], { fault: "request.schema" }),
            path: Type.Optional(
              Type.String({ description: "Dotted; empty or absent with an object value sets several fields" }),
            ),
            value: Type.Optional(Type.Unknown()),
          }),
        ),
      }),
    ),
    traceIds,
    scope: Type.Optional(oneOf(["synced", "local"], { fault: "request.schema" })),
  }),
);

export const WriteReply = named(
  "WriteReply",
  strict({
    versionId: Type.String({ description: "Id of the change; empty when nothing was written" }),
    changeId: Type.String(),
    recordIds: Type.Array(Type.String()),
    rejections: Type.Optional(
      Type.Array(
        strict({
          recordIndex: Type.Integer(),
          recordId: Type.Optional(Type.String()),
          opIndex: Type.Integer({ description: "-1: the whole record" }),
          reason: Type.String(),
        }),
      ),
    ),
  }),
);

export const DeleteRecordsBody = named(
  "DeleteRecordsBody",
  strict({
    objectId: Type.String({ minLength: 1 }),
    dataset: Type.String({ minLength: 1 }),
    recordIds: Type.Array(Type.String()),
    traceIds,
  }),
);

export const UpsertBody = named(
  "UpsertBody",
  strict({
    objectId: Type.String({ minLength: 1 }),
    dataset: Type.String({ minLength: 1 }),
    records: Type.Array(
      Type.Object(
        { id: Type.String(), fields: Type.Object({}, { additionalProperties: true }) },
        { additionalProperties: false },
      ),
    ),
    pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: 5000, description: "Records a change; default 500" })),
    traceIds,
  }),
);

export const UpsertReply = named(
  "UpsertReply",
  strict({
    pages: Type.Array(
      strict({ versionId: Type.String(), changeId: Type.String(), recordIds: Type.Array(Type.String()) }),
    ),
    created: Type.Integer(),
    updated: Type.Integer(),
    skipped: Type.Integer(),
    rejections: Type.Array(
      strict({
        index: Type.Integer({ description: "Into the request's records" }),
        id: Type.String(),
        code: oneOf(["upsert.immutable_field", "upsert.not_author", "upsert.record_deleted", "upsert.rejected"]),
        reason: Type.String(),
      }),
    ),
  }),
);

export const ObjectCreateBody = named(
  "ObjectCreateBody",
  strict({
    types: Type.Optional(Type.Array(Type.String(), { description: "Ids or xKeys" })),
    initialProperties: Type.Optional(
      Type.Record(Type.String(), Type.Object({}, { additionalProperties: true }), {
        description: "Values by type and property: `{svc: {name}}`",
      }),
    ),
    nav: Type.Optional(
      strict({
        type: Type.Optional(Type.Integer({ description: "1 item, 2 folder" })),
        parentId: Type.Optional(Type.String({ description: "Empty: the root" })),
        pos: Type.Optional(Type.String()),
      }),
    ),
  }),
);

export const ObjectCreated = named(
  "ObjectCreated",
  strict({ id: Type.String(), objectId: Type.String(), versionId: Type.String() }),
);

export const PropertiesReply = named("PropertiesReply", strict({ record: AnyRecord }));
export const SetPropertiesBody = named(
  "SetPropertiesBody",
  strict({
    patch: Type.Object({}, { additionalProperties: true, description: "Values by propId; null removes" }),
  }),
);
