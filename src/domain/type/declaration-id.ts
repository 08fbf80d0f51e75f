import { bytesToBase58 } from "../../base/base58.ts";
import { utf8ToBytes } from "../../base/bytes.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { DATASET_DEFS_DATASET, DATASET_FIELDS_DATASET, PROPERTIES_DATASET } from "./definition-datasets.ts";

/** The datasets of what a type declares, each with what names a record of it within its type. */
const KEYS = {
  [PROPERTIES_DATASET]: ["xKey"],
  [DATASET_DEFS_DATASET]: ["name"],
  [DATASET_FIELDS_DATASET]: ["def", "key"],
} as const;
export type DeclarationDataset = keyof typeof KEYS;

const ID_BYTES = 20;

/**
 * The id that the key of a declaration yields within its type, so that devices that declare it apart have declared one:
 * base58 of the first 20 bytes of a hash. Undefined where the key is missing.
 */
export function derivedDeclarationId(
  typeId: string,
  dataset: DeclarationDataset,
  fields: JsonObject,
): string | undefined {
  const key = KEYS[dataset].map((name) => fields[name]);
  if (!key.every((part) => typeof part === "string")) return undefined;
  const text = JSON.stringify([typeId, dataset, ...key]);
  return bytesToBase58(sha256(utf8ToBytes(`svc/declaration/v1\0${text}`)).subarray(0, ID_BYTES));
}
