import { digestOfCid } from "../../crypto/cid.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { RecordOp } from "./change-body.ts";
import type { DatasetRules } from "./dataset-rules.ts";

/** What the rules of several datasets have in common. */

/** Records are named by the ids of objects, or of spaces. */
export const namedBy = (what: "object" | "space"): Pick<DatasetRules, "refuseCreate"> => ({
  refuseCreate: (id) => (digestOfCid(id) ? undefined : refusal("id.is_no", { what })),
});

/** There is one record, of this name. */
export const oneRecord = (
  name: string,
  code: "metadata.one_record" | "profile.one_record",
): Pick<DatasetRules, "refuseCreate"> => ({
  refuseCreate: (id) => (id === name ? undefined : refusal(code)),
});

/** What people are shown of a space or an account. */
export const ABOUT_FIELDS = ["name", "description", "iconCid"] as const;

const IS_ABOUT: ReadonlySet<string> = new Set(ABOUT_FIELDS);

/** Whether an op sets one of these fields to a text that is not too long. */
export const setsAboutField = (segments: readonly string[], op: RecordOp): boolean =>
  isAboutField(segments) && setsText(op) && (op.value as string).length <= LIMITS.aboutTextChars;

/** The same, or takes the field away. */
export const changesAboutField = (segments: readonly string[], op: RecordOp): boolean =>
  op.type === "$unset" ? isAboutField(segments) : setsAboutField(segments, op);

const isAboutField = (segments: readonly string[]): boolean => segments.length === 1 && IS_ABOUT.has(segments[0]!);

export const setsText = ({ type, value }: RecordOp): boolean => type === "$set" && typeof value === "string";
