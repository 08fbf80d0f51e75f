import { svcError } from "../../protocol/errors.ts";
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

const refuse = (field: string, rule: string, remedy: string) =>
  svcError("request.invalid_field", { field, reason: rule }, `The field ${field} is refused: it ${rule}; ${remedy}`);

/** Limits of BUNDLE-1. Errors: request.invalid_field {field, reason}. */
export function checkEnsureBundle(request: EnsureBundleRequest): void {
  if (request.id === "" || Buffer.byteLength(request.id) > MAX_ID_BYTES)
    throw refuse("id", `must have 1 to ${MAX_ID_BYTES} bytes`, "choose a short one such as general-chat/v1");
  if (Buffer.byteLength(request.name ?? "") > MAX_NAME_BYTES)
    throw refuse("name", `must have at most ${MAX_NAME_BYTES} bytes`, "shorten it");
  if ((request.rootTypes ?? []).length > MAX_ROOT_TYPES)
    throw refuse(
      "rootTypes",
      `must name at most ${MAX_ROOT_TYPES} types`,
      "name only those that the root itself carries",
    );
  if (Buffer.byteLength(JSON.stringify(request.rootProperties ?? {})) > MAX_ROOT_PROPERTIES_BYTES) {
    const remedy = "write the rest to the root once the bundle is installed";
    throw refuse("rootProperties", `must have at most ${MAX_ROOT_PROPERTIES_BYTES} bytes as JSON`, remedy);
  }
}

export function checkSeed(seed: string): void {
  if (seed === "" || Buffer.byteLength(seed) > MAX_SEED_BYTES)
    throw refuse(
      "seed",
      `must have 1 to ${MAX_SEED_BYTES} bytes`,
      "choose a short name that is the same at every call",
    );
}
