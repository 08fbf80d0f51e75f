import { equalBlocks, isListType, type SourcedBlock } from "./block.ts";
import { canonicalBody } from "./block-canonical.ts";
import { type SplitBlock, splitBlockAt } from "./block-split.ts";
import { indentOf, isBlank, lineEnd } from "./line.ts";
import { createParseCache } from "./parse-cache.ts";
import { atOnce, endsStep, type Steps } from "./steps.ts";

const BLANK_LINE = "\n\n";
/** Keeps apart two blocks that a blank line cannot: an item and an indented block after it. */
const COMMENT = "\n\n<!-- -->\n\n";
/** How many characters of block sources stay remembered as parsed. */
const CACHE_CHARS = 8 << 20;
/** Blocks of which nothing on the next line can become part. */
export const CLOSED_TYPES: ReadonlySet<string> = new Set(["heading", "divider", "code"]);

/** What stands after a block, as far as it bears on the block's own markdown. */
export interface Following {
  /** First line; undefined at the end of the document. */
  readonly first: string | undefined;
  /** First line that is not blank. */
  readonly nonBlank: string | undefined;
  readonly type: string;
  /** How the next block is rendered: from its source, in canonical form after an edit, or in canonical form always. */
  readonly from: "source" | "edit" | "fields";
}

export const DOCUMENT_END: Following = { first: undefined, nonBlank: undefined, type: "", from: "source" };

/** A block's part of the document, and what it is to the block before it. */
interface RenderedBlock {
  readonly chunk: string;
  readonly following: Following;
}

export interface RenderedDocument {
  readonly content: string;
  /** What each block contributed, in order; joined they are the content. */
  readonly chunks: readonly string[];
  /** What each block is to the one before it. */
  readonly followings: readonly Following[];
}

export interface BlockRenderer {
  /** Renders the top-level blocks, given in their order. */
  render(blocks: readonly SourcedBlock[]): RenderedDocument;
  /** The same in steps. */
  renderSteps(blocks: readonly SourcedBlock[]): Steps<RenderedDocument>;
  /** Renders one block before what follows it. */
  renderBlock(block: SourcedBlock, following: Following): RenderedBlock;
  /** The parsed source of a block that is rendered from it; undefined for one in canonical form. */
  fresh(block: SourcedBlock): SplitBlock | undefined;
}

/**
 * Makes a renderer (EDIT-3). A block whose `source` still parses to its fields is that source; any other is its
 * canonical form. What stands between two blocks is what their sources say, a blank line where a block has none or where
 * the two would be read otherwise when parsed again. What a source parses to is remembered by content, so rendering
 * costs little more than the document's length.
 */
export function createBlockRenderer(): BlockRenderer {
  const cache = createParseCache(CACHE_CHARS);

  /** The parsed source, while it says what the block says. */
  const fresh = (block: SourcedBlock): SplitBlock | undefined => {
    if (!block.source) return undefined;
    const { head } = cache.parse(block.source);
    return head.end === block.source.length && equalBlocks(head, block) ? head : undefined;
  };

  const renderBlock = (block: SourcedBlock, following: Following): RenderedBlock => {
    const parsed = fresh(block);
    const chunk = chooseChunk(parsed ? fromSource(parsed, following) : fromFields(block, following), following);
    const from = parsed ? "source" : block.source ? "edit" : "fields";
    const first = chunk.slice(0, lineEnd(chunk, 0));
    const nonBlank = isBlank(first, 0, first.length) ? following.nonBlank : first;
    return { chunk, following: { first, nonBlank, type: block.type, from } };
  };

  /** The first candidate that what follows leaves as it is. */
  const chooseChunk = (candidates: readonly string[], following: Following): string => {
    const safe = candidates.find((chunk) => staysWhole(cache.parse(chunk).tail, following));
    if (safe !== undefined) return safe;
    const loosest = candidates.at(-1)!;
    const { tail } = cache.parse(loosest);
    return loosest.slice(0, tail.bodyEnd) + COMMENT;
  };

  function* renderSteps(blocks: readonly SourcedBlock[]): Steps<RenderedDocument> {
    const chunks = new Array<string>(blocks.length);
    const followings = new Array<Following>(blocks.length);
    let following = DOCUMENT_END;
    for (let i = blocks.length - 1; i >= 0; i--) {
      if (endsStep(i)) yield;
      const rendered = renderBlock(blocks[i]!, following);
      chunks[i] = rendered.chunk;
      following = rendered.following;
      followings[i] = following;
    }
    return { content: chunks.join(""), chunks, followings };
  }

  return { renderBlock, fresh, render: (blocks) => atOnce(renderSteps(blocks)), renderSteps };
}

/** The source as it is, else with a blank line after it. */
function fromSource(parsed: SplitBlock, following: Following): string[] {
  if (following.first === undefined) return [parsed.source];
  const spaced = withBlankLine(parsed);
  const tightItem = isListType(parsed.type) && isListType(following.type) && following.from === "edit";
  // Nothing says that a block without a source stood tight against this one, and markdown has lines that run on lazily.
  const candidates = following.from === "source" || tightItem ? [parsed.source, spaced] : [spaced];
  // No blank line ends an unterminated fence; the canonical form closes it.
  if (parsed.openTo === "everything") candidates.push(canonicalBody(parsed) + BLANK_LINE);
  return candidates;
}

/** The canonical form, with the line break that the outdated source had where that can run on into nothing. */
function fromFields(block: SourcedBlock, following: Following): string[] {
  const body = canonicalBody(block);
  // A blank line: all that a block without visible text can be.
  if (body === "") return ["\n"];
  const gap = block.source ? gapOf(block.source) : "";
  if (following.first === undefined) return [body + gap];
  const tightItem = isListType(block.type) && isListType(following.type) && following.from !== "fields";
  const tight = gap === "\n" && (tightItem || (CLOSED_TYPES.has(block.type) && following.from === "source"));
  return tight ? [body + gap, body + BLANK_LINE] : [body + BLANK_LINE];
}

/** A block's source with a blank line at its end, unchanged when it has one. */
export function withBlankLine(parsed: SplitBlock): string {
  const { source, openTo } = parsed;
  if (openTo === "nothing" || openTo === "indented") return source;
  if (parsed.type === "paragraph" && parsed.text === "") return `${source}\n`;
  return source.slice(0, parsed.bodyEnd - parsed.start) + BLANK_LINE;
}

/** The line breaks at the end of a source: none, one, or two for a blank line. */
function gapOf(source: string): "" | "\n" | "\n\n" {
  let end = source.length;
  let breaks = 0;
  for (; end > 0 && breaks < 2; end--) {
    const char = source[end - 1];
    if (char === "\n") breaks++;
    else if (char !== " " && char !== "\t") break;
  }
  return breaks === 0 ? "" : breaks === 1 ? "\n" : "\n\n";
}

/** Whether a block is still the same, and ends where it did, with `following` behind it. */
function staysWhole(block: SplitBlock, { first, nonBlank }: Following): boolean {
  if (first === undefined || block.openTo === "nothing") return true;
  if (block.openTo === "indented") {
    return nonBlank === undefined || indentOf(nonBlank, 0, nonBlank.length) < block.contentColumn!;
  }
  const next = isBlank(first, 0, first.length) ? `\n${nonBlank ?? ""}` : first;
  const again = splitBlockAt(block.source + next, 0);
  return again.end === block.source.length && equalBlocks(again, block);
}
