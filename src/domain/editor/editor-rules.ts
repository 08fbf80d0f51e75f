import type { RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";

export const EDITOR_DATASET = "editor_blocks";

const MAX_TYPE_BYTES = 64;
const FIELDS = new Set(["type", "style", "text", "source", "nav"]);
/** Every block has these; what would take them away is dropped. */
const REQUIRED = new Set(["type", "nav", "nav.parentId", "nav.pos"]);

const isType = (value: Json | undefined): boolean =>
  typeof value === "string" && value !== "" && Buffer.byteLength(value) <= MAX_TYPE_BYTES;

/** What is wrong with a value at a path of a block, or undefined. */
function valueFault(path: string, value: Json | undefined): string | undefined {
  switch (path) {
    case "type":
      return isType(value) ? undefined : `type is a text of 1 to ${MAX_TYPE_BYTES} bytes`;
    case "text":
    case "source":
    case "nav.parentId":
      return typeof value === "string" ? undefined : `${path} is a text`;
    case "nav.pos":
      return typeof value === "string" && value !== "" ? undefined : "nav.pos is a text that is not empty";
    case "style":
      return isJsonObject(value) ? undefined : "style is an object";
    case "nav":
      return isJsonObject(value) && typeof value["parentId"] === "string" && typeof value["pos"] === "string"
        ? valueFault("nav.pos", value["pos"])
        : "nav is {parentId, pos}";
    default:
      return undefined;
  }
}

/** The first part of a new block whose value is refused, its shape being right. */
export function refusedPart(block: {
  type: string;
  nav?: { pos?: string };
}): { field: string; reason: string } | undefined {
  const parts = { type: block.type, ...(block.nav?.pos === undefined ? {} : { "nav.pos": block.nav.pos }) };
  for (const [field, value] of Object.entries(parts)) {
    const reason = valueFault(field, value);
    if (reason) return { field, reason };
  }
  return undefined;
}

/** Paths a `$set` of a create writes, with their values. */
function createdFields(ops: readonly RecordOp[]): Map<string, Json> {
  const fields = new Map<string, Json>();
  for (const op of ops) {
    if (op.type !== "$set" || op.value === undefined) continue;
    if (op.path !== "") fields.set(op.path, op.value);
    else if (isJsonObject(op.value)) for (const [path, value] of Object.entries(op.value)) fields.set(path, value);
  }
  return fields;
}

/** Blocks of a document. Whoever may write may edit any of them; each keeps its type and its place. */
export const EDITOR_RULES: DatasetRules = {
  name: EDITOR_DATASET,
  idRule: "auto",

  refuseCreate(_id, ops) {
    const fields = createdFields(ops);
    const type = valueFault("type", fields.get("type"));
    if (type) return type;
    const nav = fields.get("nav");
    if (nav !== undefined) return valueFault("nav", nav);
    return valueFault("nav.parentId", fields.get("nav.parentId")) ?? valueFault("nav.pos", fields.get("nav.pos"));
  },

  refuseOp(_doc, segments, op) {
    const [field] = segments;
    if (!FIELDS.has(field!)) return "a block has type, style, text and nav";
    const path = segments.join(".");
    if (field === "nav" && segments.length > 1 && path !== "nav.parentId" && path !== "nav.pos")
      return "nav is {parentId, pos}";
    if (field !== "nav" && field !== "style" && segments.length > 1) return `${field} is a text`;
    if (op.type === "$unset") return REQUIRED.has(path) ? `${path} is required` : undefined;
    if (op.type !== "$set") return path.startsWith("style.") ? undefined : `${path} takes $set`;
    return valueFault(path, op.value);
  },
};
