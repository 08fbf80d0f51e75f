import type { TouchedRecord } from "../../change/fold/commit-batch.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type { BlockRow } from "./block.ts";
import { EDITOR_DATASET } from "./editor-rules.ts";

const MAX_DOCUMENTS = 16;

/** A document's top-level blocks in their order, kept in step with the records. */
interface CachedDocument {
  blocks: BlockRow[];
  byId: Map<string, BlockRow>;
}

/** Top-level blocks of the documents edited lately: reading ten thousand records for each append would be too slow. */
export function createDocumentCache(engine: ChangeEngine) {
  const documents = new Map<string, CachedDocument>();
  const stop = engine.onCommit(({ touched }) => apply(touched));

  const load = (object: ObjectEntry): CachedDocument => {
    const collectionId = engine.collectionIdOf(object, EDITOR_DATASET);
    const rows =
      collectionId === undefined
        ? []
        : engine.store.rows.docs(collectionId).map((text) => toBlock(JSON.parse(text) as JsonObject));
    const blocks = rows.filter((block) => block !== undefined).sort(compareBlocks);
    return { blocks, byId: new Map(blocks.map((block) => [block.id, block])) };
  };

  return {
    /**
     * The top-level blocks of a document in order. In a write, `touched` brings in what earlier writes of the same batch
     * did; the caller drops the document if its write is rolled back.
     */
    blocks(object: ObjectEntry, touched: readonly TouchedRecord[] = []): readonly BlockRow[] {
      const known = documents.get(object.idText);
      documents.delete(object.idText);
      const document = known ?? load(object);
      documents.set(object.idText, document);
      if (documents.size > MAX_DOCUMENTS) documents.delete(documents.keys().next().value!);
      if (known) apply(touched.filter((record) => record.object === object.idText));
      return document.blocks;
    },
    drop: (objectId: string) => void documents.delete(objectId),
    stop,
  };

  /** Takes over records as they now are. Doing so twice is the same as once. */
  function apply(touched: readonly TouchedRecord[]): void {
    for (const record of touched) {
      if (record.dataset !== EDITOR_DATASET) continue;
      const document = documents.get(record.object);
      if (!document) continue;
      const before = document.byId.get(record.recordId);
      const after = record.doc === null ? undefined : toBlock(JSON.parse(record.doc) as JsonObject);
      if (before) {
        document.blocks.splice(placeOf(document.blocks, before), 1);
        document.byId.delete(before.id);
      }
      if (after) {
        document.blocks.splice(placeOf(document.blocks, after), 0, after);
        document.byId.set(after.id, after);
      }
    }
  }
}

/** By position, then by id, both bytewise: the same order on every device. */
function compareBlocks(a: BlockRow, b: BlockRow): number {
  return Buffer.compare(Buffer.from(a.pos), Buffer.from(b.pos)) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Where a block stands, or would stand. */
function placeOf(blocks: readonly BlockRow[], block: BlockRow): number {
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareBlocks(blocks[middle]!, block) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A record as the document needs it; undefined for a nested one. */
function toBlock(record: JsonObject): BlockRow | undefined {
  const nav = record["nav"] as { parentId?: string; pos?: string } | undefined;
  if ((nav?.parentId ?? "") !== "") return undefined;
  const { id, type, style, text, source } = record as {
    id: string;
    type: string;
    style?: JsonObject;
    text?: string;
    source?: string;
  };
  return {
    id,
    type,
    pos: nav?.pos ?? "",
    ...(style === undefined ? {} : { style }),
    ...(text === undefined ? {} : { text }),
    ...(source === undefined ? {} : { source }),
  };
}
