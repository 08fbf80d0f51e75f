import { refusedPart } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";

/** Body of `POST {S}/bundles`, its shape checked. */
export interface EnsureBundleRequest {
  id: string;
  name?: string;
  rootTypes?: string[];
  rootProperties?: Record<string, JsonObject>;
  derived?: boolean;
}

const MAX_ID_BYTES = 256;
const MAX_NAME_BYTES = 1024;
const MAX_ROOT_TYPES = 32;
const MAX_ROOT_PROPERTIES_BYTES = 64 << 10;
const MAX_SEED_BYTES = 256;

const refuse = (field: string, why: Refusal, remedy: Refusal) =>
  refusedPart("request.invalid_field", { field }, why, "it", remedy);

/** Limits of BUNDLE-4. Errors: request.invalid_field {field, reason}. */
export function checkEnsureBundle(request: EnsureBundleRequest): void {
  if (request.id === "" || Buffer.byteLength(request.id) > MAX_ID_BYTES)
    throw refuse("id", refusal("bundle.id_bytes", { limitBytes: MAX_ID_BYTES }), refusal("bundle.short_id"));
  if (Buffer.byteLength(request.name ?? "") > MAX_NAME_BYTES)
    throw refuse("name", refusal("bundle.name_bytes", { limitBytes: MAX_NAME_BYTES }), refusal("bundle.shorten"));
  if ((request.rootTypes ?? []).length > MAX_ROOT_TYPES)
    throw refuse("rootTypes", refusal("bundle.root_types", { limit: MAX_ROOT_TYPES }), refusal("bundle.own_types"));
  if (Buffer.byteLength(JSON.stringify(request.rootProperties ?? {})) > MAX_ROOT_PROPERTIES_BYTES) {
    const why = refusal("bundle.properties_bytes", { limitBytes: MAX_ROOT_PROPERTIES_BYTES });
    throw refuse("rootProperties", why, refusal("bundle.write_later"));
  }
}

export function checkSeed(seed: string): void {
  if (seed === "" || Buffer.byteLength(seed) > MAX_SEED_BYTES)
    throw refuse("seed", refusal("bundle.id_bytes", { limitBytes: MAX_SEED_BYTES }), refusal("bundle.short_seed"));
}
