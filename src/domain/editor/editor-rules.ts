import type { RecordOp } from "../../change/codec/change-body.ts";
import type { DatasetRules } from "../../change/codec/dataset-rules.ts";
import { isJsonObject, type Json } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

export const EDITOR_DATASET = "editor_blocks";

const MAX_TYPE_BYTES = 64;
const FIELDS = new Set(["type", "style", "text", "source", "nav"]);
/** Every block has these; what would take them away is dropped. */
const REQUIRED = new Set(["type", "nav", "nav.parentId", "nav.pos"]);

const isType = (value: Json | undefined): boolean =>
  typeof value === "string" && value !== "" && Buffer.byteLength(value) <= MAX_TYPE_BYTES;

/** What is wrong with a value at a path of a block, or undefined. */
function valueFault(path: string, value: Json | undefined): Refusal | undefined {
  switch (path) {
    case "type":
      return isType(value) ? undefined : refusal("block.type", { limitBytes: MAX_TYPE_BYTES });
    case "text":
    case "source":
    case "nav.parentId":
      return typeof value === "string" ? undefined : refusal("block.text", { path });
    case "nav.pos":
      return typeof value === "string" && value !== "" ? undefined : refusal("block.pos");
    case "style":
      return isJsonObject(value) ? undefined : refusal("block.style");
    case "nav":
      return isJsonObject(value) && typeof value["parentId"] === "string" && typeof value["pos"] === "string"
        ? valueFault("nav.pos", value["pos"])
        : refusal("block.nav");
    default:
      return undefined;
  }
}

/** The first part of a new block whose value is refused, its shape being right. */
export function blockFault(block: {
  type: string;
  nav?: { pos?: string };
}): { field: string; why: Refusal } | undefined {
  const parts = { type: block.type, ...(block.nav?.pos === undefined ? {} : { "nav.pos": block.nav.pos }) };
  for (const [field, value] of Object.entries(parts)) {
    const refused = valueFault(field, value);
    if (refused) return { field, why: refused };
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
    if (!FIELDS.has(field!)) return refusal("block.field");
    const path = segments.join(".");
    if (field === "nav" && segments.length > 1 && path !== "nav.parentId" && path !== "nav.pos")
      return refusal("block.nav");
    if (field !== "nav" && field !== "style" && segments.length > 1) return refusal("block.text", { path: field! });
    if (op.type === "$unset") return REQUIRED.has(path) ? refusal("block.required", { path }) : undefined;
    if (op.type !== "$set") return path.startsWith("style.") ? undefined : refusal("block.set", { path });
    return valueFault(path, op.value);
  },
};
