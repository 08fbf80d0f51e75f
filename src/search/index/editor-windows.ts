import { isJsonObject, type JsonObject } from "../../protocol/json.ts";

/** A window over a document: some consecutive blocks. */
export interface EditorWindow {
  readonly firstBlockId: string;
  /** The heading under which the window stands, which may be the window's first line. */
  readonly title: string;
  readonly text: string;
}

/** About how many bytes of text a window holds; a heading begins a new window. */
const WINDOW_BYTES = 1_500;
const ROOT = "";
/** The type of the records in which a long block goes on (EDIT-7); a word may begin in one and end in the next. */
const CONTINUATION = "continuation";

interface Block {
  readonly id: string;
  readonly type: string;
  readonly text: string;
  readonly parent: string;
  readonly pos: string;
}

/** Cuts a document into windows of neighbouring blocks. Nested blocks follow their parents, in reading order. */
export function editorWindows(records: readonly JsonObject[]): EditorWindow[] {
  const windows: EditorWindow[] = [];
  let first: Block | undefined;
  let title = "";
  let lines: string[] = [];
  let bytes = 0;
  let heading = "";
  let hasBody = false;

  const close = (): void => {
    if (first && lines.length > 0) windows.push({ firstBlockId: first.id, title, text: lines.join("\n") });
    first = undefined;
    lines = [];
    bytes = 0;
    hasBody = false;
  };

  for (const block of joined(inOrder(records.map(toBlock)))) {
    const isHeading = block.type === "heading";
    // Consecutive headings head one window together.
    if (bytes >= WINDOW_BYTES || (isHeading && hasBody)) close();
    if (isHeading) heading = block.text;
    if (block.text === "") continue;
    if (!first) {
      first = block;
      title = heading;
    }
    lines.push(block.text);
    hasBody ||= !isHeading;
    bytes += Buffer.byteLength(block.text) + 1;
  }
  close();
  return windows;
}

function toBlock(record: JsonObject): Block {
  const nav = isJsonObject(record["nav"]) ? record["nav"] : {};
  const { type, text } = record;
  const [parent, pos] = [nav["parentId"], nav["pos"]];
  return {
    id: record["id"] as string,
    type: typeof type === "string" ? type : "",
    text: typeof text === "string" ? text : "",
    parent: typeof parent === "string" ? parent : ROOT,
    pos: typeof pos === "string" ? pos : "",
  };
}

/** Blocks in their order, each with what it says in its continuations. One that goes on nothing stands for itself. */
function joined(blocks: readonly Block[]): Block[] {
  const isContinuation = ({ type, parent }: Block): boolean => type === CONTINUATION && parent !== ROOT;
  const continuations = Map.groupBy(blocks.filter(isContinuation), ({ parent }) => parent);
  const heads = new Set(blocks.filter((block) => !isContinuation(block)).map(({ id }) => id));
  return blocks
    .filter((block) => !isContinuation(block) || !heads.has(block.parent))
    .map((block) => {
      const more = heads.has(block.id) ? continuations.get(block.id) : undefined;
      const texts = [block, ...(more ?? [])].map(({ text }) => text);
      return { ...block, text: texts.join("").trim() };
    });
}

/** Orders blocks depth first by position. Blocks whose parents are missing, or that are their own descendants, come last. */
function inOrder(blocks: readonly Block[]): Block[] {
  const childrenByParent = Map.groupBy(
    [...blocks].sort((a, b) => (a.pos < b.pos ? -1 : a.pos > b.pos ? 1 : a.id < b.id ? -1 : 1)),
    ({ parent }) => parent,
  );
  const ordered: Block[] = [];
  const seen = new Set<Block>();
  const pending = [...(childrenByParent.get(ROOT) ?? [])].reverse();
  const walk = (): void => {
    for (let block = pending.pop(); block; block = pending.pop()) {
      if (seen.has(block)) continue;
      seen.add(block);
      ordered.push(block);
      pending.push(...[...(childrenByParent.get(block.id) ?? [])].reverse());
    }
  };
  walk();
  for (const block of blocks) {
    if (seen.has(block)) continue;
    pending.push(block);
    walk();
  }
  return ordered;
}
