/** Decides what of a record can be found (SEARCH-1), and makes the index's units from it. */
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import type { IndexUnit } from "../../store/search/index-store.ts";
import { chunkText } from "../text/chunk.ts";
import { editorWindows } from "./editor-windows.ts";
import { DEFAULT_SCOPE, type IndexedProperty, type SearchConfig } from "./search-config.ts";

export const EDITOR = "editor_blocks";
const CHAT = "chat_messages";
/** The dataset name under which names, descriptions and property values are reported. */
const PROPERTY = "prop";
const TYPE_MARKER = "__type__";

interface Source {
  readonly object: string;
  readonly dataset: string;
  readonly scope: string;
  readonly embed: boolean;
}

/** Returns the units of an object's row: its name, its description, the values of its properties. Rows of types have none. */
export function objectUnits(doc: JsonObject, config: SearchConfig): IndexUnit[] {
  const svc = isJsonObject(doc["svc"]) ? doc["svc"] : {};
  const types = Array.isArray(svc["types"]) ? svc["types"] : [];
  if (types.includes(TYPE_MARKER)) return [];
  const object = doc["id"] as string;
  const about: Source = { object, dataset: PROPERTY, scope: DEFAULT_SCOPE, embed: true };
  const units = ["name", "description"].flatMap((key) => chunked(about, key, "", textOf(svc[key])));
  for (const typeId of types) {
    const properties = typeof typeId === "string" ? config.properties[typeId] : undefined;
    const values = typeof typeId === "string" ? doc[typeId] : undefined;
    if (!properties || !isJsonObject(values)) continue;
    for (const [propId, property] of Object.entries(properties)) {
      const text = propertyText(property, values[propId]);
      if (text === "") continue;
      const source: Source = { object, dataset: PROPERTY, scope: property.scope, embed: false };
      units.push(...chunked(source, propId, "", `${property.name}: ${text}`));
    }
  }
  return units;
}

/** Returns the units of an object's record: a chat message, or a record of a declared dataset that says what can be found. */
export function recordUnits(object: string, dataset: string, doc: JsonObject, config: SearchConfig): IndexUnit[] {
  const record = doc["id"] as string;
  if (dataset === CHAT)
    return chunked({ object, dataset, scope: "chat", embed: true }, record, "", textOf(doc["text"]));
  const declared = Object.hasOwn(config.datasets, dataset) ? config.datasets[dataset] : undefined;
  if (!declared) return [];
  const title = declared.title === undefined ? "" : textOf(doc[declared.title]);
  const text = declared.text.map((key) => textOf(doc[key])).filter((part) => part !== "");
  return chunked({ object, dataset, scope: declared.scope, embed: true }, record, title, text.join("\n"));
}

/** Returns the units of a document: windows over its blocks. */
export function documentUnits(object: string, docs: readonly string[]): IndexUnit[] {
  const source: Source = { object, dataset: EDITOR, scope: DEFAULT_SCOPE, embed: true };
  const blocks = docs.map((doc) => JSON.parse(doc) as JsonObject);
  return editorWindows(blocks).flatMap(({ firstBlockId, title, text }) =>
    chunked(source, `win_${firstBlockId}`, title, text),
  );
}

/** Whether search reads records of a dataset at all. */
export function isIndexed(dataset: string, config: SearchConfig): boolean {
  return dataset === CHAT || dataset === EDITOR || Object.hasOwn(config.datasets, dataset);
}

function chunked(source: Source, record: string, title: string, text: string): IndexUnit[] {
  return chunkText(title, text).map((chunk, number) => ({ ...source, record, chunk: number, text: chunk }));
}

function propertyText(property: IndexedProperty, value: Json | undefined): string {
  const { options } = property;
  if (!options) return textOf(value);
  const named = (key: Json): Json => (typeof key === "string" && Object.hasOwn(options, key) ? options[key]! : key);
  return textOf(Array.isArray(value) ? value.map(named) : value === undefined ? value : named(value));
}

/**
 * Returns texts and numbers as text, and of an array those in it. Links are left out, because they mean nothing to people who
 * search.
 */
function textOf(value: Json | undefined): string {
  if (typeof value === "string") return value.startsWith("svc://") ? "" : value;
  if (typeof value === "number") return String(value);
  if (!Array.isArray(value)) return "";
  return value
    .map((each) => (Array.isArray(each) ? "" : textOf(each)))
    .filter((text) => text !== "")
    .join(", ");
}
