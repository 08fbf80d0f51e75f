import type { JsonObject } from "../../protocol/json.ts";

/** The block types the editor gives a meaning to (EDIT-1). Others are kept and rendered as their text. */
export const BLOCK_TYPES = [
  "paragraph",
  "heading",
  "list_item",
  "check_list_item",
  "code",
  "quote",
  "divider",
  "html",
  "table",
  "image",
] as const;

/** What a block says. An absent text equals `""`, an absent style equals `{}`. */
export interface BlockFields {
  readonly type: string;
  readonly style?: JsonObject;
  /** Inline markdown; the body verbatim of code, html and table. */
  readonly text?: string;
}

/** A block together with the slice of markdown it came from. */
export interface SourcedBlock extends BlockFields {
  /** The block's lines and the separator that follows them. Absent: the block did not come from markdown. */
  readonly source?: string;
}

/**
 * The type of the records in which a block goes on that is too long for one (EDIT-7). They stand under the block, in the
 * order of their positions; what all of them say, joined, is what the block says.
 */
export const CONTINUATION = "continuation";

/** What a record says of a block, or all its records together. */
export interface LongText {
  readonly text: string;
  readonly source: string;
}

/** One of the records of a long block. */
export interface Stretch extends LongText {
  readonly id: string;
  readonly pos: string;
}

/** A top-level block, as far as the document needs it: its record of `editor_blocks`, with what goes on in others. */
export interface BlockRow extends SourcedBlock {
  readonly id: string;
  /** `nav.pos`. */
  readonly pos: string;
  /** Of a block that goes on in others: what each of its records says, its own first. */
  readonly stretches?: readonly Stretch[];
}

/** The part of `style` that markdown can say for a type; the rest of the bag is the client's own. */
export interface MarkdownStyle {
  /** heading: 1 to 6 */
  level?: number;
  /** list_item */
  ordered?: boolean;
  /** check_list_item */
  checked?: boolean;
  /** code: the info string */
  lang?: string;
}

/** Reads the keys of `style` that markdown shows for this type, with their defaults. Never throws on foreign values. */
export function markdownStyle(type: string, style: JsonObject | undefined): MarkdownStyle {
  switch (type) {
    case "heading": {
      const level = style?.["level"];
      return { level: typeof level === "number" ? Math.min(6, Math.max(1, Math.trunc(level) || 1)) : 1 };
    }
    case "list_item":
      return { ordered: style?.["ordered"] === true };
    case "check_list_item":
      return { checked: style?.["checked"] === true };
    case "code": {
      const lang = style?.["lang"];
      return typeof lang === "string" && lang !== "" ? { lang } : {};
    }
    default:
      return {};
  }
}

/** Whether two blocks of markdown say the same: type, the style markdown can show, text. */
export function equalBlocks(a: BlockFields, b: BlockFields): boolean {
  if (a.type !== b.type || (a.text ?? "") !== (b.text ?? "")) return false;
  const left = markdownStyle(a.type, a.style);
  const right = markdownStyle(b.type, b.style);
  return (
    left.level === right.level &&
    left.ordered === right.ordered &&
    left.checked === right.checked &&
    left.lang === right.lang
  );
}

export function isListType(type: string): boolean {
  return type === "list_item" || type === "check_list_item";
}
