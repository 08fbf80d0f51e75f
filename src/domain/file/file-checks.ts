import { svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
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
    throw invalid("name", `longer than ${LIMITS.fileNameBytes} bytes`);
  if ((variant === undefined) !== (variantOf === undefined)) {
    const reason = "variant and variantOf go together";
    throw svcError("file.variant_invalid", { reason }, `${reason}: send both, or neither`);
  }
  if (variant !== undefined && !VARIANT_TAG.test(variant)) {
    const reason = "a variant is named by 1 to 64 letters, digits, dots, dashes and underscores";
    throw svcError("file.variant_invalid", { reason }, `variant is refused: ${reason}`);
  }
}

function invalid(field: string, reason: string) {
  return svcError("request.invalid_field", { field, reason }, `${field} is refused: ${reason}`);
}
