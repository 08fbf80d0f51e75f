import type { RecordOp } from "../../change/codec/change-body.ts";
import { encodeDerivedRoot } from "../../change/codec/change-codec.ts";
import type { DatasetRules, FieldScope } from "../../change/codec/dataset-rules.ts";
import { cidFromDigest, digestOfCid } from "../../crypto/cid.ts";
import { isJsonObject, type Json, type JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

/** The rows of an object's files: records of a derived object of its own, which ends with it. */
export const FILES_DATASET = "files";
export const FILES_TYPE = "svc.files";

const HEX = (chars: number) => new RegExp(`^[0-9a-f]{${chars}}$`);
const KEY_ID = HEX(32);
const HASH = HEX(64);
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** A media type without parameters (RFC 9110 § 8.3.1), in lower case. */
export const MIME = /^[a-z0-9!#$&^_.+-]{1,127}\/[a-z0-9!#$&^_.+-]{1,127}$/;
export const VARIANT_TAG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** The id of the object that holds the files of another, known before there is one. */
function filesObjectOf(spaceId: string, owner: string): string | undefined {
  const space = digestOfCid(spaceId);
  return space && cidFromDigest(encodeDerivedRoot({ space, type: FILES_TYPE, derivation: owner }).id);
}

const isText = (value: Json | undefined, maxBytes: number): boolean =>
  typeof value === "string" && Buffer.byteLength(value) <= maxBytes;

const CHECKS: Readonly<Record<string, (value: Json | undefined) => boolean>> = {
  objectId: (value) => typeof value === "string" && digestOfCid(value) !== undefined,
  size: (value) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LIMITS.fileBytes,
  rootCid: (value) => typeof value === "string" && digestOfCid(value) !== undefined,
  hash: (value) => typeof value === "string" && HASH.test(value),
  keyId: (value) => typeof value === "string" && KEY_ID.test(value),
  data: (value) =>
    typeof value === "string" && value.length <= Math.ceil(LIMITS.inlineFileBytes / 3) * 4 && BASE64.test(value),
  name: (value) => isText(value, LIMITS.fileNameBytes),
  mime: (value) => typeof value === "string" && MIME.test(value),
  variant: (value) => typeof value === "string" && VARIANT_TAG.test(value),
  variantOf: (value) => isText(value, 64) && value !== "",
};

/** Files of an object. A row is written once, whole, and never changes; whoever may write may delete it. */
export const FILE_RULES: DatasetRules = {
  name: FILES_DATASET,
  idRule: "auto",
  skipHistory: true,
  scopeOf: ([field]): FieldScope => (field === "durable" ? "local" : "synced"),

  refuseCreate(_id, ops, { spaceId, objectId }) {
    const [op] = ops;
    if (ops.length !== 1 || op?.type !== "$set" || op.path !== "" || !isJsonObject(op.value))
      return refusal("file.not_whole");
    for (const [field, value] of Object.entries(op.value)) {
      const isGood = Object.hasOwn(CHECKS, field) ? CHECKS[field]! : undefined;
      if (!isGood) return refusal("file.field", { field });
      if (!isGood(value)) return refusal("file.form", { field });
    }
    const { objectId: owner } = op.value;
    if (typeof owner !== "string" || filesObjectOf(spaceId, owner) !== objectId)
      return refusal("file.of_another_object");
    return shapeFault(op.value);
  },

  refuseOp(_doc, segments, _op: RecordOp, creating) {
    if (segments[0] === "durable") return refusal("field.scope", { scope: "local" });
    return creating ? undefined : refusal("file.pinned");
  },
};

function shapeFault(row: JsonObject): Refusal | undefined {
  if (typeof row["size"] !== "number") return refusal("file.size");
  if ((row["variant"] === undefined) !== (row["variantOf"] === undefined)) return refusal("file.variant");
  const stored = ["rootCid", "hash", "keyId"].filter((field) => row[field] !== undefined).length;
  if (typeof row["data"] === "string") {
    if (stored > 0) return refusal("file.in_two_places");
    return Buffer.from(row["data"], "base64").length === row["size"] && row["size"] < LIMITS.inlineFileBytes
      ? undefined
      : refusal("file.data_size");
  }
  return stored === 3 && row["size"] >= LIMITS.inlineFileBytes ? undefined : refusal("file.nowhere");
}
