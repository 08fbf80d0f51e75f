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

/** What a create sets a path to; of several the last. */
function createdField(ops: readonly RecordOp[], path: string): Json | undefined {
  let field: Json | undefined;
  for (const { type, path: at, value } of ops) {
    if (type !== "$set" || value === undefined) continue;
    if (at === path) field = value;
    else if (at === "" && isJsonObject(value) && Object.hasOwn(value, path)) field = value[path];
  }
  return field;
}

/** Blocks of a document. Whoever may write may edit any of them; each keeps its type and its place. */
export const EDITOR_RULES: DatasetRules = {
  name: EDITOR_DATASET,
  idRule: "auto",

  refuseCreate(_id, ops) {
    const type = valueFault("type", createdField(ops, "type"));
    if (type) return type;
    const nav = createdField(ops, "nav");
    if (nav !== undefined) return valueFault("nav", nav);
    const fault = (path: string) => valueFault(path, createdField(ops, path));
    return fault("nav.parentId") ?? fault("nav.pos");
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
