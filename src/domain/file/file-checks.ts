import { refusedAs, refusedPart, type SvcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import { VARIANT_TAG } from "./file-rules.ts";

/** What is said of a file when it is attached. */
export interface AttachInput {
  /** Kept verbatim. */
  readonly name?: string | undefined;
  /** The Content-Type header. */
  readonly mime: string | null;
  readonly variant?: string | undefined;
  readonly variantOf?: string | undefined;
}

/** Errors: request.invalid_field, file.variant_invalid. */
export function checkAttach({ name, variant, variantOf }: AttachInput): void {
  if (name !== undefined && Buffer.byteLength(name) > LIMITS.fileNameBytes)
    throw refusedPart("request.invalid_field", { field: "name" }, refusal("file.name"), "refused");
  if ((variant === undefined) !== (variantOf === undefined)) {
    const why = refusal("file.variant_alone");
    const both = refusal("part.remedied", { why, remedy: refusal("file.both_or_neither") });
    throw refusedAs("file.variant_invalid", undefined, both, { reason: why });
  }
  if (variant !== undefined && !VARIANT_TAG.test(variant))
    throw refusedVariant("variant", refusal("file.variant_name"));
}

/** Why a file cannot be the variant that `field` says. */
export function refusedVariant(field: "variant" | "variantOf", why: Refusal): SvcError {
  return refusedAs("file.variant_invalid", undefined, refusal("part.refused", { part: field, why }), { reason: why });
}
