import { isJsonObject, type Json } from "../../protocol/json.ts";
import { type Kind, keyFault } from "./value-kind.ts";

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

/** Where a format's declaration is wrong, and how. */
export interface FormatFault {
  path: string;
  reason: string;
}

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

export function uiFault(type: FormatType, ui: Json | undefined): FormatFault | undefined {
  const allowed = UI_BY_FORMAT[type];
  if (typeof ui === "string" && allowed.includes(ui)) return undefined;
  const reason = allowed.length > 0 ? `one of ${allowed.join(", ")}` : `the format ${type} has no ui`;
  return { path: "format.ui", reason };
}

/** What is wrong with a whole format for values of a kind, or undefined. The filter is only seen to be an object. */
export function formatFault(format: unknown, kind: Kind): FormatFault | undefined {
  if (!isJsonObject(format)) return { path: "format", reason: "an object with a type" };
  const stray = Object.keys(format).find((key) => !FORMAT_KEYS.has(key));
  if (stray !== undefined)
    return { path: `format.${stray}`, reason: "a format has type, ui, filter, options and meta" };
  const { type, ui, filter, options, meta } = format;
  if (!isFormatType(type)) return { path: "format.type", reason: `one of ${FORMAT_TYPES.join(", ")}` };
  if (!KINDS_BY_FORMAT[type].includes(kind)) {
    return { path: "format.type", reason: `${type} goes with kind ${KINDS_BY_FORMAT[type].join(" or ")}, not ${kind}` };
  }
  if (ui !== undefined) {
    const fault = uiFault(type, ui);
    if (fault) return fault;
  }
  if (filter !== undefined) {
    if (type !== "links") return { path: "format.filter", reason: "only links have a filter" };
    if (!isJsonObject(filter)) return { path: "format.filter", reason: "a filter is an object" };
  }
  if (options !== undefined) {
    const fault = optionsFault(options, type);
    if (fault) return fault;
  }
  return meta === undefined ? undefined : bagFault(meta, "format.meta");
}

function optionsFault(options: Json, type: FormatType): FormatFault | undefined {
  if (!hasOptions(type)) return { path: "format.options", reason: "only select and multiselect have options" };
  if (!isJsonObject(options)) return { path: "format.options", reason: "an object of options by key" };
  for (const [key, option] of Object.entries(options)) {
    const path = `format.options.${key}`;
    const fault = keyFault(key);
    if (fault) return { path, reason: fault };
    if (!isJsonObject(option)) return { path, reason: "an option is an object of name, color and pos" };
    for (const [leaf, value] of Object.entries(option)) {
      if (leaf === "meta") {
        const inner = bagFault(value, `${path}.meta`);
        if (inner) return inner;
      } else if (!(OPTION_LEAVES as readonly string[]).includes(leaf)) {
        return { path: `${path}.${leaf}`, reason: "an option has name, color, pos and meta" };
      } else if (typeof value !== "string") return { path: `${path}.${leaf}`, reason: "a string" };
    }
  }
  return undefined;
}

/** What is wrong with a bag of texts (`meta`), or undefined. */
export function bagFault(bag: Json, path: string): FormatFault | undefined {
  if (!isJsonObject(bag)) return { path, reason: "an object of strings" };
  for (const [key, value] of Object.entries(bag)) {
    const fault = keyFault(key);
    if (fault) return { path: `${path}.${key}`, reason: fault };
    if (typeof value !== "string") return { path: `${path}.${key}`, reason: "a string" };
  }
  return undefined;
}
