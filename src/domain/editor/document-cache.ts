import type { TouchedRecord } from "../../change/fold/commit-batch.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import type { OneSpaceEvents } from "../../space/one-space-events.ts";
import type { BlockRow } from "./block.ts";
import { type CachedDocument, createCachedDocument } from "./cached-document.ts";
import { EDITOR_DATASET } from "./editor-rules.ts";

const MAX_DOCUMENTS = 16;
/** Records that a document which nobody asks for keeps the texts of; beyond, it is read anew when somebody does. */
const MAX_NOTED = 100_000;

/** Top-level blocks of the documents edited lately: reading ten thousand records for each append would be too slow. */
export function createDocumentCache(engine: Pick<ChangeEngine, "recordTexts">, events: OneSpaceEvents) {
  const documents = new Map<string, CachedDocument>();
  const stop = events.on("committed", ({ touched }) => note(touched));

  const load = (object: ObjectEntry): CachedDocument =>
    createCachedDocument(engine.recordTexts(object, EDITOR_DATASET));

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
      if (known) note(touched.filter((record) => record.object === object.idText));
      return document.blocks();
    },
    drop: (objectId: string) => void documents.delete(objectId),
    stop,
  };

  function note(touched: readonly TouchedRecord[]): void {
    for (const { dataset, object, recordId, doc } of touched) {
      const document = dataset === EDITOR_DATASET ? documents.get(object) : undefined;
      document?.note(recordId, doc);
      if (document && document.noted() > MAX_NOTED) documents.delete(object);
    }
  }
}
