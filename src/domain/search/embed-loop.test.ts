import { expect, test } from "bun:test";
import type { SpaceId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { ChildLost } from "../../search/child-process.ts";
import type { IndexRequest, PendingTexts } from "../../search/index/index-protocol.ts";
import { createEmbedLoop } from "./embed-loop.ts";

test("[SEARCH-6] embedding goes on by itself after the process of the index was lost under it", async () => {
  const spaceId = "one" as SpaceId;
  const side = { id: "told", dimension: 8 };
  const vector = { bytes: new Int8Array(8), bits: new Uint8Array(1) };
  const asked: string[] = [];
  const { promise: kept, resolve: keep } = Promise.withResolvers<void>();
  let isKept = false;
  const loop = createEmbedLoop({
    embedder: {
      name: "embedder",
      onReady: () => {},
      state: () => "ready",
      embed: (texts) => Promise.resolve({ model: side, vectors: texts.map(() => [vector]) }),
      start: () => {},
      stop: () => Promise.resolve(),
    },
    nativeDir: "",
    filesOf: () => ({ spaceId, source: "", index: "" }),
    ask<T>(request: IndexRequest): Promise<T> {
      asked.push(request.kind);
      if (asked.filter((kind) => kind === "keep").length === 1 && request.kind === "keep")
        return Promise.reject(new ChildLost("killed"));
      if (request.kind === "keep") {
        isKept = true;
        keep();
      }
      const texts = isKept ? [] : [{ hash: "00", text: "a text" }];
      const answer: PendingTexts = { texts, left: texts.length };
      return Promise.resolve(answer as T);
    },
    onUnsupported: () => {},
    startLongWork: () => ({ progress: () => {}, end: () => {} }),
    log: silentLog,
    retryMs: 1,
  });
  loop.wake(spaceId);
  await kept;
  await loop.close();
  expect(asked.slice(0, 4)).toEqual(["pending", "keep", "pending", "keep"]);
});
