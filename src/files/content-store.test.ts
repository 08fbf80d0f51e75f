import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type ScratchDir, scratchDir } from "../../test/support/scratch.ts";
import { systemClock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { silentLog } from "../base/log.ts";
import { cidOf } from "../crypto/cid.ts";
import { sha256 } from "../crypto/hash.ts";
import { openBlobStore } from "./blob-store.ts";
import { createChunkSources } from "./chunk-sources.ts";
import { CHUNK_BYTES } from "./content-seal.ts";
import { createContentSealer } from "./content-sealer.ts";
import { type ContentStore, createContentStore } from "./content-store.ts";

const SPACE = cidOf(new Uint8Array(8)) as SpaceId;
const EPOCH = { id: new Uint8Array(32).fill(1), key: new Uint8Array(32).fill(2) };

describe("a content that is dropped while others ask for it", () => {
  let directory: ScratchDir;
  const opened: ContentStore[] = [];
  const openStore = async (name: string): Promise<ContentStore> => {
    const blobs = await openBlobStore(join(directory.path, name), systemClock);
    const sources = createChunkSources(() => {});
    const deps = {
      blobs,
      sources,
      sealer: createContentSealer(),
      log: silentLog,
      isBusy: () => false,
      arrived() {},
      gone() {},
    };
    opened.push(createContentStore(deps));
    return opened.at(-1)!;
  };
  beforeAll(() => {
    directory = scratchDir("content-store");
  });
  afterAll(async () => {
    for (const store of opened) await store.close();
    directory[Symbol.dispose]();
  });

  test("[FILE-11] is fetched anew by every reader, byte for byte", async () => {
    const [keeper, store] = [await openStore("keeper"), await openStore("reader")];
    const plain = new Uint8Array(CHUNK_BYTES + 1_000).map((_, at) => at % 251);
    const received = await keeper.receive(SPACE, new Response(plain).body);
    if (received.kind !== "stored") throw new Error(received.kind);
    const content = await keeper.seal(SPACE, EPOCH, received);
    store.sources.add({ name: "keeper", mayHave: () => true, get: ({ position }) => keeper.sealed(content, position) });
    const digest = sha256(plain);
    for (let round = 0; round < 150; round++) {
      await store.complete(content);
      const dropped = store.drop(SPACE, content.rootCid);
      for (let turn = round % 12; turn > 0; turn--) await Promise.resolve();
      if (round % 3 === 0) await Bun.sleep(0);
      const whole = await store.complete(content);
      await dropped;
      expect(whole).toBe(true);
      const body = await store.read(content, 0, content.size - 1);
      expect(sha256(new Uint8Array(await new Response(body).arrayBuffer()))).toEqual(digest);
    }
  });
});
