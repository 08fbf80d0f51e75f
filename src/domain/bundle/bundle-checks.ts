import { fail } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";

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

const refuse = (field: string, reason: string) =>
  fail("request.invalid_field", { field, reason }, `${field}: ${reason}`);

/** Limits of gaps § 18. Errors: request.invalid_field {field, reason}. */
export function checkEnsureBundle(request: EnsureBundleRequest): void {
  if (request.id === "" || Buffer.byteLength(request.id) > MAX_ID_BYTES)
    throw refuse("id", `1 to ${MAX_ID_BYTES} bytes`);
  if (Buffer.byteLength(request.name ?? "") > MAX_NAME_BYTES) throw refuse("name", `at most ${MAX_NAME_BYTES} bytes`);
  if ((request.rootTypes ?? []).length > MAX_ROOT_TYPES) throw refuse("rootTypes", `at most ${MAX_ROOT_TYPES}`);
  if (Buffer.byteLength(JSON.stringify(request.rootProperties ?? {})) > MAX_ROOT_PROPERTIES_BYTES) {
    throw refuse("rootProperties", "at most 64 KiB as JSON");
  }
}

export function checkSeed(seed: string): void {
  if (seed === "" || Buffer.byteLength(seed) > MAX_SEED_BYTES) throw refuse("seed", `1 to ${MAX_SEED_BYTES} bytes`);
}
