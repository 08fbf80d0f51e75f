import type { DatasetDef, PropertyDef } from "../../protocol/type.ts";

/** What search needs to know about the types of a space. */
export interface SearchableTypes {
  types(): Iterable<{
    readonly id: string;
    readonly properties: ReadonlyMap<string, PropertyDef>;
    readonly definitions: readonly { readonly def: DatasetDef }[];
  }>;
  /** Returns the definition that owns a name, where several definitions claim it. */
  definitionByName(name: string): { readonly def: DatasetDef } | undefined;
}

export interface IndexedProperty {
  readonly name: string;
  readonly scope: string;
  /** Names of a select's options by their keys. */
  readonly options?: Readonly<Record<string, string>>;
}

interface IndexedDataset {
  readonly title?: string;
  readonly text: readonly string[];
  readonly scope: string;
}

/**
 * What is indexed of a space beyond what is indexed of every space. It is plain data, because it is sent to the process that
 * indexes.
 */
export interface SearchConfig {
  /** By type, then by property. */
  readonly properties: Readonly<Record<string, Readonly<Record<string, IndexedProperty>>>>;
  readonly datasets: Readonly<Record<string, IndexedDataset>>;
}

export const DEFAULT_SCOPE = "basic";
const PROPERTY_SCOPE = "props";
/** The `meta.index` of a property that must not be found. */
const UNINDEXED = "none";
const SLUG = /^[a-z0-9_-]{1,64}$/;
const INDEXED_KINDS = new Set(["string", "number", "array"]);

export const isScope = (scope: string): boolean => SLUG.test(scope);

export function readSearchConfig(view: SearchableTypes): SearchConfig {
  const properties: Record<string, Record<string, IndexedProperty>> = {};
  const datasets: Record<string, IndexedDataset> = {};
  for (const type of view.types()) {
    const indexed = [...type.properties.values()].flatMap((property) => {
      const one = indexedProperty(property);
      return one ? [[property.id, one] as const] : [];
    });
    if (indexed.length > 0) properties[type.id] = Object.fromEntries(indexed.sort(([a], [b]) => (a < b ? -1 : 1)));
    for (const { def } of type.definitions) {
      if (!def.search || view.definitionByName(def.name)?.def.id !== def.id) continue;
      const { title, text, scope = DEFAULT_SCOPE } = def.search;
      const texts = text === undefined ? [] : typeof text === "string" ? [text] : text;
      datasets[def.name] = { ...(title === undefined ? {} : { title }), text: texts, scope };
    }
  }
  return { properties: sorted(properties), datasets: sorted(datasets) };
}

function indexedProperty({ name, kind, meta, format }: PropertyDef): IndexedProperty | undefined {
  const asked = meta?.["index"];
  if (asked === UNINDEXED || !INDEXED_KINDS.has(kind)) return undefined;
  const scope = asked !== undefined && isScope(asked) ? asked : PROPERTY_SCOPE;
  const options = Object.entries(format?.options ?? {}).flatMap(([key, option]) =>
    option.name === undefined ? [] : [[key, option.name] as const],
  );
  return { name, scope, ...(options.length > 0 ? { options: Object.fromEntries(options) } : {}) };
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns what has to be read again when one configuration replaces the other: objects' rows, and datasets by name. */
export function configDifference(
  before: SearchConfig,
  after: SearchConfig,
): { readonly objects: boolean; readonly datasets: readonly string[] } {
  const names = new Set([...Object.keys(before.datasets), ...Object.keys(after.datasets)]);
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  return {
    objects: !same(before.properties, after.properties),
    datasets: [...names].filter((name) => !same(before.datasets[name], after.datasets[name])),
  };
}
