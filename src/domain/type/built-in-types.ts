import type { PropertyDef, TypeInfo } from "../../protocol/type.ts";

type BuiltInProperty = Pick<PropertyDef, "kind"> & Partial<Pick<PropertyDef, "scope" | "items" | "description">>;

interface BuiltIn {
  /** Objects can carry it. The others stand for what every object, the index and types themselves have. */
  readonly attachable: boolean;
  readonly name: string;
  readonly properties: Readonly<Record<string, BuiltInProperty>>;
}

const TEXT: BuiltInProperty = { kind: "string" };
const TEXTS: BuiltInProperty = { kind: "array", items: { kind: "string" } };
const COUNTER: BuiltInProperty = { kind: "number", scope: "local" };

/** The types every space has, in the order they are listed (TYPE-1). */
const BUILT_INS: Readonly<Record<string, BuiltIn>> = {
  svc: {
    attachable: false,
    name: "Object",
    properties: {
      name: TEXT,
      description: TEXT,
      icon: TEXT,
      tags: TEXTS,
      types: { ...TEXTS, scope: "derived", description: "Bound when the object is created" },
      id: { ...TEXT, scope: "derived", description: "At the root of the row" },
      author: { ...TEXT, scope: "derived", description: "At the root of the row" },
      spaceId: { ...TEXT, scope: "derived", description: "At the root of the row" },
      createdAt: { kind: "datetime", scope: "derived", description: "At the root of the row" },
      modifiedAt: { kind: "datetime", scope: "derived", description: "At the root of the row" },
    },
  },
  spaceIndex: {
    attachable: false,
    name: "Space index",
    properties: { name: TEXT, description: TEXT, icon: TEXT, spaceType: TEXT },
  },
  type: { attachable: false, name: "Type", properties: { xkey: TEXT } },
  chat: {
    attachable: true,
    name: "Chat",
    properties: {
      unreadCount: COUNTER,
      unreadMentions: COUNTER,
      unreadReactionsCount: COUNTER,
      notifyMode: { kind: "string", scope: "account" },
    },
  },
  editor: { attachable: true, name: "Editor", properties: {} },
  page: { attachable: true, name: "Page", properties: {} },
  nav: {
    attachable: true,
    name: "Navigation",
    properties: {
      type: { kind: "number", description: "1 item, 2 folder" },
      parentId: { kind: "string", description: "Empty: the root" },
      pos: TEXT,
    },
  },
};

const PROPERTIES_BY_TYPE: ReadonlyMap<string, ReadonlyMap<string, PropertyDef>> = new Map(
  Object.entries(BUILT_INS).map(([typeId, { properties }]) => [
    typeId,
    new Map(
      Object.entries(properties).map(([id, { scope, ...rest }]) => [
        id,
        { id, name: id, scope: scope ?? "synced", ...rest } satisfies PropertyDef,
      ]),
    ),
  ]),
);

export function builtInTypes(): TypeInfo[] {
  return Object.entries(BUILT_INS).map(([id, { name }]) => ({ id, name, xKey: id, builtIn: true }));
}

export function isBuiltInType(typeId: string): boolean {
  return Object.hasOwn(BUILT_INS, typeId);
}

/** Whether objects may carry a built-in type by name. */
export function isAttachable(typeId: string): boolean {
  return Object.hasOwn(BUILT_INS, typeId) && BUILT_INS[typeId]!.attachable;
}

/** The properties of a built-in type by id, or undefined for any other. */
export function builtInProperties(typeId: string): ReadonlyMap<string, PropertyDef> | undefined {
  return PROPERTIES_BY_TYPE.get(typeId);
}
