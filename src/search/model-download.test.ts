/** [search model] A mirror that is slow, cuts short, lies about sizes and digests, answers 404 and 500. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { downloadModel } from "./model-download.ts";
import { findModel, findSpoiltFile } from "./model-place.ts";

const MODEL = "org/tiny";
const FILES: Record<string, Buffer> = {
  "config.json": Buffer.from('{"model_type":"bert"}'),
  "tokenizer.json": Buffer.from('{"version":"1.0"}'),
  "tokenizer_config.json": Buffer.from("{}"),
  "onnx/model_quantized.onnx": randomBytes(300_000),
};
const scratch = mkdtempSync(join(tmpdir(), "svc-models-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Behaviour {
  /** Bytes of the weights after which the line breaks; once. */
  breakAfter?: number;
  status?: number;
  statedSize?: number;
  statedDigest?: string;
  ignoresRange?: boolean;
  withoutQuantised?: boolean;
}
let behaviour: Behaviour = {};
let requests: { path: string; range: string | null }[] = [];

const gitBlob = (bytes: Buffer) => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

/** As the hub does: small files with a git digest, large ones by way of a redirect that states size and SHA-256. */
const mirror = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    const url = new URL(request.url);
    const range = request.headers.get("range");
    requests.push({ path: url.pathname, range });
    if (behaviour.status) return new Response("no", { status: behaviour.status });
    const large = url.pathname.startsWith("/lfs/");
    const name = url.pathname.replace(large ? "/lfs/" : `/${MODEL}/resolve/main/`, "");
    const bytes = behaviour.withoutQuantised && name.includes("quantized") ? undefined : FILES[name];
    if (!bytes) return new Response("Entry not found", { status: 404 });
    const sha256 = behaviour.statedDigest ?? createHash("sha256").update(bytes).digest("hex");
    if (name.startsWith("onnx/") && !large)
      return new Response(null, {
        status: 302,
        headers: {
          location: `/lfs/${name}`,
          "x-linked-size": String(behaviour.statedSize ?? bytes.length),
          "x-linked-etag": `"${sha256}"`,
        },
      });
    const from = range && !behaviour.ignoresRange ? Number(/bytes=(\d+)-/.exec(range)?.[1]) : 0;
    if (from > 0 && from >= bytes.length) return new Response(null, { status: 416 });
    const part = bytes.subarray(from);
    const headers: Record<string, string> = {
      etag: `"${large ? sha256 : gitBlob(bytes)}"`,
      "content-length": String(part.length),
      ...(from > 0 ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
    };
    const cut = large ? behaviour.breakAfter : undefined;
    if (cut === undefined) return new Response(new Uint8Array(part), { status: from > 0 ? 206 : 200, headers });
    behaviour.breakAfter = undefined as never;
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(new Uint8Array(part.subarray(0, cut)));
        await Bun.sleep(50);
        controller.close();
      },
    });
    return new Response(body, { status: from > 0 ? 206 : 200, headers });
  },
});
afterAll(() => mirror.stop(true));

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(scratch, "m-"));
  behaviour = {};
  requests = [];
});
const progress: [string, number, number][] = [];
const fetchOnce = () =>
  downloadModel({
    host: `http://127.0.0.1:${mirror.port}`,
    modelsDir: dir,
    model: MODEL,
    signal: new AbortController().signal,
    onBytes: (file, done, total) => void progress.push([file, done, total]),
  });
const weights = () => join(dir, MODEL, "onnx/model_quantized.onnx");
const parts = () =>
  readdirSync(join(dir, MODEL), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".part"));

describe("[search model] a model that is fetched", () => {
  test("is whole, in its place, and told in bytes", async () => {
    await fetchOnce();
    for (const [name, bytes] of Object.entries(FILES))
      expect(readFileSync(join(dir, MODEL, name)).equals(bytes)).toBe(true);
    expect(parts()).toEqual([]);
    expect(findModel(dir, undefined)).toBe(MODEL);
    expect(await findSpoiltFile(dir, MODEL)).toBeUndefined();
    expect(progress.at(-1)).toEqual(["onnx/model_quantized.onnx", 300_000, 300_000]);
  });

  test("goes on where the line broke", async () => {
    behaviour = { breakAfter: 100_000 };
    expect(await fetchOnce().catch((error: unknown) => error)).toBeInstanceOf(Error);
    expect(existsSync(weights())).toBe(false);
    const come = statSync(`${weights()}.part`).size;
    expect(come).toBeGreaterThan(0);
    requests = [];
    await fetchOnce();
    expect(requests.find(({ path }) => path.startsWith("/lfs/"))?.range).toBe(`bytes=${come}-`);
    expect(readFileSync(weights()).equals(FILES["onnx/model_quantized.onnx"]!)).toBe(true);
  });

  test("is begun anew where the mirror takes no ranges, and where more is here than there is", async () => {
    behaviour = { breakAfter: 100_000 };
    await fetchOnce().catch(() => undefined);
    behaviour = { ignoresRange: true };
    await fetchOnce();
    expect(readFileSync(weights()).equals(FILES["onnx/model_quantized.onnx"]!)).toBe(true);
    rmSync(weights());
    writeFileSync(`${weights()}.part`, randomBytes(400_000));
    behaviour = {};
    await fetchOnce();
    expect(readFileSync(weights()).equals(FILES["onnx/model_quantized.onnx"]!)).toBe(true);
  });

  test("has no name while it is not what the mirror says it is, and none of it stays", async () => {
    behaviour = { statedDigest: "ab".repeat(32) };
    expect(String(await fetchOnce().catch((error: unknown) => error))).toContain("digest");
    expect(existsSync(weights())).toBe(false);
    expect(parts()).toEqual([]);
    for (const statedSize of [299_999, 300_001]) {
      behaviour = { statedSize };
      expect(await fetchOnce().catch((error: unknown) => error)).toBeInstanceOf(Error);
      expect(existsSync(weights())).toBe(false);
    }
    expect(findModel(dir, undefined)).toBeUndefined();
    behaviour = {};
    await fetchOnce();
    expect(findModel(dir, MODEL)).toBe(MODEL);
  });

  test("is refused by name on 404 and 500; the plain weights are taken where there are no quantised ones", async () => {
    for (const status of [404, 500]) {
      behaviour = { status };
      expect(await fetchOnce().catch((error: unknown) => error)).toBeInstanceOf(Error);
    }
    FILES["onnx/model.onnx"] = randomBytes(1_000);
    behaviour = { withoutQuantised: true };
    await fetchOnce();
    expect(existsSync(join(dir, MODEL, "onnx/model.onnx"))).toBe(true);
    delete FILES["onnx/model.onnx"];
  });

  test("that was changed afterwards is found out before it is loaded", async () => {
    await fetchOnce();
    const bytes = readFileSync(weights());
    bytes[1_000]! ^= 1;
    writeFileSync(weights(), bytes);
    expect(await findSpoiltFile(dir, MODEL)).toBe("onnx/model_quantized.onnx");
    await fetchOnce();
    expect(await findSpoiltFile(dir, MODEL)).toBeUndefined();
  });
});
