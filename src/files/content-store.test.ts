/** Contents that are fetched, on a store whose only source is another store. */
import { expect, test } from "bun:test";
import { until } from "../../test/support/client.ts";
import { bytesOf } from "../../test/support/files.ts";
import { scratchDir } from "../../test/support/scratch.ts";
import { systemClock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { silentLog } from "../base/log.ts";
import { randomBytes } from "../base/random.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import { openBlobStore } from "./blob-store.ts";
import { createChunkSources } from "./chunk-sources.ts";
import { type Content, contentOf } from "./content.ts";
import { createContentSealer } from "./content-sealer.ts";
import { createContentStore, type StoredContent } from "./content-store.ts";

const SIZE = 1_300_000;

async function openStore(dir: string) {
  const lies: string[] = [];
  const arrived: Content[] = [];
  const sources = createChunkSources((source) => void lies.push(source));
  const store = createContentStore({
    blobs: await openBlobStore(dir, systemClock),
    sources,
    sealer: createContentSealer(),
    log: silentLog,
    arrived: (content) => void arrived.push(content),
    gone: () => {},
  });
  return { store, sources, lies, arrived, [Symbol.asyncDispose]: () => store.close() };
}

test("[files] a row with a false hash over somebody's root fails alone: who reads the true one beside it gets the bytes", async () => {
  using dir = scratchDir("svc-contents");
  await using holder = await openStore(`${dir.path}/holder`);
  await using reader = await openStore(`${dir.path}/reader`);
  const spaceId = cidFromDigest(randomBytes(32)) as SpaceId;
  const epoch = { id: randomBytes(16), key: randomBytes(32) };
  const bytes = bytesOf(SIZE);
  const received = (await holder.store.receive(spaceId, new Blob([bytes as BlobPart]).stream())) as StoredContent;
  const genuine = await holder.store.settle(spaceId, epoch, received);
  const forged = contentOf(spaceId, epoch, { rootCid: genuine.rootCid, size: SIZE, hash: randomBytes(32) });
  reader.sources.add({
    name: "holder",
    mayHave: () => true,
    get: ({ place }) => holder.store.sealed(genuine, place),
  });

  const read = async (content: Content): Promise<Uint8Array> =>
    new Response((await reader.store.read(content, 0, SIZE - 1)) as BodyInit).bytes();
  for (let round = 0; round < 3; round++) {
    const [wrong, right] = await Promise.allSettled([read(forged), read(genuine)]);
    if (round === 0) expect(wrong).toMatchObject({ status: "rejected", reason: { code: "file.not_available" } });
    expect(right.status === "fulfilled" && Buffer.compare(right.value, bytes)).toBe(0);
  }
  expect([reader.store.isRefuted(forged), reader.store.isRefuted(genuine)]).toEqual([true, false]);
  await until(() => reader.arrived.length > 0, "the content to be whole");
  // Whoever gave the bytes gave the true ones, and is not blamed for what the row says.
  expect([reader.lies, reader.arrived.map(({ hash }) => hash)]).toEqual([[], [genuine.hash]]);
});
