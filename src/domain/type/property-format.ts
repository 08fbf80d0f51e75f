import { isJsonObject, type Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { type Kind, keyFault, type PartFault } from "./value-kind.ts";

const FORMAT_TYPES = ["links", "date", "datetime", "select", "multiselect"] as const;
export type FormatType = (typeof FORMAT_TYPES)[number];

/** The kinds a format's values may have; the first is meant when none is said. */
const KINDS_BY_FORMAT: Record<FormatType, readonly Kind[]> = {
  links: ["array"],
  date: ["datetime", "string"],
  datetime: ["datetime", "string"],
  select: ["string"],
  multiselect: ["array"],
};
const UI_BY_FORMAT: Record<FormatType, readonly string[]> = {
  links: ["link", "links"],
  date: [],
  datetime: [],
  select: ["select", "multiselect"],
  multiselect: ["select", "multiselect"],
};
export const OPTION_LEAVES = ["name", "color", "pos"] as const;
const FORMAT_KEYS = new Set(["type", "ui", "filter", "options", "meta"]);

export function isFormatType(value: unknown): value is FormatType {
  return typeof value === "string" && (FORMAT_TYPES as readonly string[]).includes(value);
}

/** The kind that a format means when none is said. */
export function impliedKind(type: FormatType): Kind {
  return KINDS_BY_FORMAT[type][0]!;
}

export function hasOptions(type: FormatType): boolean {
  return type === "select" || type === "multiselect";
}

export function uiFault(type: FormatType, ui: Json | undefined): PartFault | undefined {
  const allowed = UI_BY_FORMAT[type];
  if (typeof ui === "string" && allowed.includes(ui)) return undefined;
  const why = allowed.length > 0 ? refusal("value.one_of", { values: allowed }) : refusal("format.no_ui", { type });
  return { path: "format.ui", why };
}

/** What is wrong with a whole format for values of a kind, or undefined. The filter is only seen to be an object. */
export function formatFault(format: unknown, kind: Kind): PartFault | undefined {
  if (!isJsonObject(format)) return { path: "format", why: refusal("format.object") };
  const stray = Object.keys(format).find((key) => !FORMAT_KEYS.has(key));
  if (stray !== undefined) return { path: `format.${stray}`, why: refusal("format.parts") };
  const { type, ui, filter, options, meta } = format;
  if (!isFormatType(type)) return { path: "format.type", why: refusal("value.one_of", { values: FORMAT_TYPES }) };
  if (!KINDS_BY_FORMAT[type].includes(kind)) {
    return { path: "format.type", why: refusal("format.kind", { type, kinds: KINDS_BY_FORMAT[type], kind }) };
  }
  if (ui !== undefined) {
    const fault = uiFault(type, ui);
    if (fault) return fault;
  }
  if (filter !== undefined) {
    if (type !== "links") return { path: "format.filter", why: refusal("format.filter") };
    if (!isJsonObject(filter)) return { path: "format.filter", why: refusal("format.filter_object") };
  }
  if (options !== undefined) {
    const fault = optionsFault(options, type);
    if (fault) return fault;
  }
  return meta === undefined ? undefined : bagFault(meta, "format.meta");
}

function optionsFault(options: Json, type: FormatType): PartFault | undefined {
  if (!hasOptions(type)) return { path: "format.options", why: refusal("format.options") };
  if (!isJsonObject(options)) return { path: "format.options", why: refusal("format.options_object") };
  for (const [key, option] of Object.entries(options)) {
    const path = `format.options.${key}`;
    const fault = keyFault(key);
    if (fault) return { path, why: fault };
    if (!isJsonObject(option)) return { path, why: refusal("format.option_object") };
    for (const [leaf, value] of Object.entries(option)) {
      if (leaf === "meta") {
        const inner = bagFault(value, `${path}.meta`);
        if (inner) return inner;
      } else if (!(OPTION_LEAVES as readonly string[]).includes(leaf)) {
        return { path: `${path}.${leaf}`, why: refusal("format.option_parts") };
      } else if (typeof value !== "string") return { path: `${path}.${leaf}`, why: refusal("value.string") };
    }
  }
  return undefined;
}

/** What is wrong with a bag of texts (`meta`), or undefined. */
export function bagFault(bag: Json, path: string): PartFault | undefined {
  if (!isJsonObject(bag)) return { path, why: refusal("bag.object") };
  for (const [key, value] of Object.entries(bag)) {
    const fault = keyFault(key);
    if (fault) return { path: `${path}.${key}`, why: fault };
    if (typeof value !== "string") return { path: `${path}.${key}`, why: refusal("value.string") };
  }
  return undefined;
}
