import { expect, test } from "bun:test";
import { join } from "node:path";

const SOURCES = join(import.meta.dir, "../..");

/** What a start does without: code of other processes, and what is loaded when it is first needed. */
const NOT_LOADED =
  /src\/(?:search\/(?:index\/(?:index-child|index-tokens|space-index)|model\/embed-child)|sandbox\/program-child|sync\/lan\/link-manager|sync\/network\/network-store|http\/openapi\/openapi-document)\.ts$|node_modules\/(?:@huggingface|onnxruntime-node|quickjs-wasi|@nats-io|multicast-dns|yaml|@elysiajs)\//;

test("a server loads no code of other processes, and no transport that is not configured", async () => {
  const loading = `
    await import(${JSON.stringify(join(SOURCES, "serve.ts"))});
    await import(${JSON.stringify(join(SOURCES, "engine/boot/boot.ts"))});
    console.log(JSON.stringify(Object.keys(require.cache)));
  `;
  const child = Bun.spawn([process.execPath, "-e", loading], { stdout: "pipe", stderr: "inherit" });
  const loaded = JSON.parse(await new Response(child.stdout).text()) as string[];
  expect(loaded.filter((file) => file.endsWith("src/change/space-engine.ts"))).toHaveLength(1);
  expect(loaded.filter((file) => NOT_LOADED.test(file))).toEqual([]);
});
