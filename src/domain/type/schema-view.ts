import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json.ts";
import type { PropertyDef, TypeInfo } from "../../protocol/type.ts";
import type { OneSpaceEvents } from "../../space/one-space-events.ts";
import { byCreation, createdVersion, type Definition, readDefinition, withoutSystem } from "./definition.ts";
import {
  DATASET_DEFS_DATASET,
  DATASET_FIELDS_DATASET,
  PROPERTIES_DATASET,
  TYPE_MARKER,
} from "./definition-datasets.ts";

/** A type of the space with everything it declares. */
export interface TypeEntry {
  readonly id: string;
  /** Version of the change that created it: decides between types of one xKey. */
  readonly created: string;
  readonly info: TypeInfo;
  /** Oldest first. */
  readonly properties: ReadonlyMap<string, PropertyDef>;
  readonly definitions: readonly Definition[];
}

/** Answers over all types, made anew when one of them changed. */
interface SchemaIndex {
  readonly types: readonly TypeEntry[];
  readonly typeByXKey: ReadonlyMap<string, TypeEntry>;
  readonly definitionByName: ReadonlyMap<string, Definition>;
  readonly definitionById: ReadonlyMap<string, Definition>;
}

const SCHEMA_DATASETS = new Set<string>([PROPERTIES_DATASET, DATASET_DEFS_DATASET, DATASET_FIELDS_DATASET]);
const MARKER_TEXT = JSON.stringify(TYPE_MARKER);

/** The types of an open space in memory. Read when first asked for, kept in step with commits, a type at a time. */
export interface SchemaView {
  /** User types, oldest first. */
  types(): readonly TypeEntry[];
  type(typeId: string): TypeEntry | undefined;
  /** Of several types with one xKey, made apart, the oldest. */
  typeByXKey(xKey: string): TypeEntry | undefined;
  /** Of several definitions of one name, made apart, the oldest. */
  definitionByName(name: string): Definition | undefined;
  definitionById(defId: string): Definition | undefined;
  /** A write of this device is about to change, or has changed, a type: the next read sees it, committed or not. */
  expire(typeId: string): void;
}

export interface SchemaViewDeps {
  engine: ChangeEngine;
  events: OneSpaceEvents;
  /** The rows that say that they are types. */
  typeRows(): readonly { id: string }[];
}

export function createSchemaView({ engine, events, typeRows }: SchemaViewDeps): SchemaView {
  const entries = new Map<string, TypeEntry>();
  /** Types to read anew before the next answer. */
  const stale = new Set<string>();
  let index: SchemaIndex | undefined;
  let loaded = false;

  const load = () => {
    loaded = true;
    for (const row of typeRows()) stale.add(row.id);
    events.on("committed", (batch) => {
      for (const { dataset, object, recordId, before, doc } of batch.touched) {
        if (SCHEMA_DATASETS.has(dataset)) stale.add(object);
        else if (dataset === OBJECTS_DATASET && (before?.includes(MARKER_TEXT) || doc?.includes(MARKER_TEXT)))
          stale.add(recordId);
      }
    });
  };

  const refresh = () => {
    if (!loaded) load();
    if (stale.size === 0) return;
    const ids = [...stale];
    stale.clear();
    for (const id of ids) {
      const entry = readType(engine, id);
      if (entry) entries.set(id, entry);
      else entries.delete(id);
    }
    index = undefined;
    // What was read inside a transaction may be rolled back with it, so it is read once more after the transaction.
    if (engine.isWriting())
      queueMicrotask(() => {
        for (const id of ids) stale.add(id);
        refresh();
      });
  };

  const indexed = (): SchemaIndex => {
    refresh();
    index ??= indexTypes(entries.values());
    return index;
  };

  return {
    types: () => indexed().types,
    type(typeId) {
      refresh();
      return entries.get(typeId);
    },
    typeByXKey: (xKey) => indexed().typeByXKey.get(xKey),
    definitionByName: (name) => indexed().definitionByName.get(name),
    definitionById: (defId) => indexed().definitionById.get(defId),
    expire: (typeId) => void stale.add(typeId),
  };
}

function readType(engine: ChangeEngine, id: string): TypeEntry | undefined {
  const object = engine.object(id);
  const row = object && engine.record(object, OBJECTS_DATASET, id);
  if (!object || !row || !isTypeRow(row)) return undefined;
  const recordsOf = (dataset: string): JsonObject[] =>
    engine
      .records(object, dataset)
      .filter((record) => record["removed"] !== true)
      .sort(byCreation);
  const fieldsByDef = Map.groupBy(recordsOf(DATASET_FIELDS_DATASET), (field) => field["def"] as string);
  return {
    id,
    created: createdVersion(row),
    info: toTypeInfo(id, row),
    properties: new Map(
      recordsOf(PROPERTIES_DATASET).map((record) => [
        record["id"] as string,
        withoutSystem(record) as unknown as PropertyDef,
      ]),
    ),
    definitions: recordsOf(DATASET_DEFS_DATASET).map((record) =>
      readDefinition(id, record, fieldsByDef.get(record["id"] as string) ?? []),
    ),
  };
}

function isTypeRow(row: JsonObject): boolean {
  const svc = row["svc"];
  const types = isJsonObject(svc) ? svc["types"] : undefined;
  return Array.isArray(types) && types.includes(TYPE_MARKER);
}

/** Returns what a row says of a type. Anybody may write into rows, so only texts are taken over. */
function toTypeInfo(id: string, row: JsonObject): TypeInfo {
  const textAt = (namespace: string, key: string): string | undefined => {
    const group = row[namespace];
    const value = isJsonObject(group) ? group[key] : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const [name, description, iconCid] = [textAt("svc", "name"), textAt("svc", "description"), textAt("svc", "icon")];
  const xKey = textAt("type", "xkey");
  return {
    id,
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(iconCid === undefined ? {} : { iconCid }),
    ...(xKey === undefined ? {} : { xKey }),
  };
}

const older = (a: { created: string; id: string }, b: { created: string; id: string }): number =>
  a.created < b.created ? -1 : a.created > b.created ? 1 : a.id < b.id ? -1 : 1;

function indexTypes(entries: Iterable<TypeEntry>): SchemaIndex {
  const types = [...entries].sort(older);
  const typeByXKey = new Map<string, TypeEntry>();
  const definitions = types.flatMap((type) => type.definitions).sort(older);
  const definitionByName = new Map<string, Definition>();
  for (const type of types) {
    const { xKey } = type.info;
    if (xKey !== undefined && !typeByXKey.has(xKey)) typeByXKey.set(xKey, type);
  }
  for (const definition of definitions) {
    const { name } = definition.declaration;
    if (!definitionByName.has(name)) definitionByName.set(name, definition);
  }
  return {
    types,
    typeByXKey,
    definitionByName,
    definitionById: new Map(definitions.map((definition) => [definition.id, definition])),
  };
}
