import type { JsonObject } from "../../protocol/json.ts";
import { builtInProperties } from "./built-in-types.ts";
import { shapeSchema } from "./json-schema.ts";
import { propertyShape } from "./property-values.ts";
import type { Shape } from "./value-kind.ts";

/** A dataset as the listings show it. */
export interface BuiltInDataset {
  name: string;
  schema: JsonObject;
  /** The type that owns it. */
  typeId?: string;
}

type Scope = "synced" | "derived" | "local" | "account";
interface Field {
  shape: Shape;
  scope?: Scope;
  /** Absent: set by the creating change only. */
  mutableBy?: "author" | "any";
  stamp?: "creator" | "createTime" | "modifyTime";
}

const TEXT: Shape = { kind: "string" };
const FLAG: Shape = { kind: "boolean" };
const INSTANT: Shape = { kind: "datetime" };
const OBJECT: Shape = { kind: "object" };
const TEXTS: Shape = { kind: "array", items: TEXT };

const open = (shape: Shape): Field => ({ shape, mutableBy: "any" });
const local = (shape: Shape): Field => ({ shape, scope: "local", mutableBy: "any" });
const derived = (shape: Shape, stamp?: Field["stamp"]): Field => ({
  shape,
  scope: "derived",
  ...(stamp ? { stamp } : {}),
});

function recordSchema(
  fields: Readonly<Record<string, Field>>,
  more: { required?: string[]; additionalProperties?: boolean; idRule?: "user"; deleteBy?: "author" } = {},
): JsonObject {
  return {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(fields).map(([key, { shape, scope, mutableBy, stamp }]) => [
        key,
        {
          ...shapeSchema(shape),
          "x-scope": scope ?? "synced",
          ...(mutableBy ? { "x-mutable-by": mutableBy } : {}),
          ...(stamp ? { "x-stamp": stamp } : {}),
        },
      ]),
    ),
    additionalProperties: more.additionalProperties ?? false,
    ...(more.required ? { required: more.required } : {}),
    ...(more.deleteBy ? { "x-delete-by": more.deleteBy } : {}),
    ...(more.idRule ? { "x-id": more.idRule } : {}),
  };
}

/** The values that a built-in type gives to an object's row, as one object. */
function namespace(typeId: string): JsonObject {
  const properties = [...(builtInProperties(typeId)?.values() ?? [])].filter(
    ({ description }) => description !== "At the root of the row",
  );
  return {
    type: "object",
    properties: Object.fromEntries(
      properties.map((property) => [
        property.id,
        { ...shapeSchema(propertyShape(property)), "x-scope": property.scope, "x-mutable-by": "any" },
      ]),
    ),
    "x-scope": "synced",
  };
}

const OBJECTS: BuiltInDataset = {
  name: "objects",
  schema: {
    type: "object",
    description: "The rows of all objects. Values of a type's properties stand under its id: <typeId>.<propId>",
    properties: {
      ...(recordSchema({
        author: derived(TEXT, "creator"),
        createdAt: derived(INSTANT, "createTime"),
        modifiedAt: derived(INSTANT, "modifyTime"),
        spaceId: derived(TEXT),
      })["properties"] as JsonObject),
      svc: namespace("svc"),
      nav: namespace("nav"),
      chat: namespace("chat"),
    },
    additionalProperties: true,
  },
};

const CHAT_MESSAGES: BuiltInDataset = {
  name: "chat_messages",
  typeId: "chat",
  schema: recordSchema(
    {
      creator: derived(TEXT, "creator"),
      createdAt: derived(INSTANT, "createTime"),
      modifiedAt: derived(INSTANT, "modifyTime"),
      text: { shape: TEXT, mutableBy: "author" },
      replyToMessageId: { shape: TEXT },
      agent: {
        shape: {
          kind: "object",
          properties: { name: TEXT, debugLink: TEXT, done: FLAG },
          required: ["name", "done"],
        },
      },
      mentions: derived(TEXTS),
      attachments: { shape: OBJECT },
      reactions: open(OBJECT),
      unread: local(FLAG),
      unreadMention: local(FLAG),
      unreadReactions: local(FLAG),
    },
    { deleteBy: "author" },
  ),
};

const EDITOR_BLOCKS: BuiltInDataset = {
  name: "editor_blocks",
  typeId: "editor",
  schema: recordSchema(
    {
      type: open(TEXT),
      style: open(OBJECT),
      text: open(TEXT),
      source: open(TEXT),
      nav: open({ kind: "object", properties: { parentId: TEXT, pos: TEXT }, required: ["parentId", "pos"] }),
    },
    { required: ["type", "nav"] },
  ),
};

const BUNDLES: BuiltInDataset = {
  name: "bundles",
  schema: recordSchema(
    { name: open(TEXT), rootId: open(TEXT), roots: open(TEXTS), losers: open(TEXTS), derived: open(FLAG) },
    { idRule: "user" },
  ),
};

/** Datasets that every space has and callers can read. */
export const SPACE_DATASETS: readonly BuiltInDataset[] = [OBJECTS, CHAT_MESSAGES, EDITOR_BLOCKS, BUNDLES];

/** Names that no type may declare: those above, and those the server keeps for itself. */
export const BUILT_IN_DATASET_NAMES: ReadonlySet<string> = new Set([
  ...SPACE_DATASETS.map(({ name }) => name),
  "files",
  "members",
]);

/** The datasets of the account's own space (`GET /v1/datasets`). */
export const TECH_DATASETS: readonly BuiltInDataset[] = [
  {
    name: "spaces",
    schema: recordSchema(
      {
        name: open(TEXT),
        description: open(TEXT),
        iconCid: open(TEXT),
        spaceType: { shape: TEXT },
        status: open(TEXT),
        ended: open({ kind: "object", properties: { how: TEXT, by: TEXT, name: TEXT, at: INSTANT } }),
        author: { shape: TEXT },
        createdAt: derived(INSTANT, "createTime"),
        settings: open(OBJECT),
        derived: { shape: FLAG },
        ownRole: local(TEXT),
        push: local(OBJECT),
        spaceIndexObjectId: local(TEXT),
      },
      { idRule: "user" },
    ),
  },
  {
    name: "profile",
    schema: recordSchema({ name: open(TEXT), description: open(TEXT), iconCid: open(TEXT) }, { idRule: "user" }),
  },
  {
    name: "devices",
    schema: recordSchema(
      {
        name: open(TEXT),
        os: open(TEXT),
        version: open(TEXT),
        apps: open(OBJECT),
        activeClaims: open({ kind: "object" }),
      },
      { idRule: "user" },
    ),
  },
];

const BUILT_IN_INSTANTS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...SPACE_DATASETS, ...TECH_DATASETS].map(({ name, schema }) => [name, new Set(instantPaths(schema))]),
);

/** Whether a path of a built-in dataset holds an instant. */
export function isBuiltInInstant(dataset: string, path: string): boolean {
  return BUILT_IN_INSTANTS.get(dataset)?.has(path) === true;
}

/** The dotted paths of a schema's instants. */
function instantPaths(schema: JsonObject, parent = ""): string[] {
  const properties = Object.entries((schema["properties"] ?? {}) as Record<string, JsonObject>);
  return properties.flatMap(([key, below]) =>
    key === "$date" ? [parent] : instantPaths(below, parent === "" ? key : `${parent}.${key}`),
  );
}
