/** A mirror that is slow, cuts short, lies about sizes and digests, answers 404 and 500. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startModelMirror } from "../../../test/support/models/model-mirror.ts";
import { downloadModel } from "./model-download.ts";
import { findModel, findSpoiltFile } from "./model-files.ts";

const MODEL = "org/tiny";
const FILES: Record<string, Buffer> = {
  "config.json": Buffer.from('{"model_type":"bert"}'),
  "tokenizer.json": Buffer.from('{"version":"1.0"}'),
  "tokenizer_config.json": Buffer.from("{}"),
  "onnx/model_quantized.onnx": randomBytes(300_000),
};
const scratch = mkdtempSync(join(tmpdir(), "svc-models-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const mirror = startModelMirror(MODEL, (name) => FILES[name]);
afterAll(() => mirror[Symbol.asyncDispose]());

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(scratch, "m-"));
  mirror.behaviour = {};
  mirror.requests = [];
});
const progress: [string, number, number][] = [];
const fetchOnce = () =>
  downloadModel({
    host: mirror.host,
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

describe("[SEARCH-6] a model that is fetched", () => {
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
    mirror.behaviour = { breakAfter: 100_000 };
    expect(await fetchOnce().catch((error: unknown) => error)).toBeInstanceOf(Error);
    expect(existsSync(weights())).toBe(false);
    const come = statSync(`${weights()}.part`).size;
    expect(come).toBeGreaterThan(0);
    mirror.requests = [];
    await fetchOnce();
    expect(mirror.requests.find(({ path }) => path.startsWith("/lfs/"))?.range).toBe(`bytes=${come}-`);
    expect(readFileSync(weights()).equals(FILES["onnx/model_quantized.onnx"]!)).toBe(true);
  });

  test("is begun anew where the mirror takes no ranges, and where more is here than there is", async () => {
    mirror.behaviour = { breakAfter: 100_000 };
    await fetchOnce().catch(() => undefined);
    mirror.behaviour = { ignoresRange: true };
    await fetchOnce();
    expect(readFileSync(weights()).equals(FILES["onnx/model_quantized.onnx"]!)).toBe(true);
    rmSync(weights());
    writeFileSync(`${weights()}.part`, randomBytes(400_000));
    mirror.behaviour = {};
    await fetchOnce();
    expect(readFileSync(weights()).equals(FILES["onnx/model_quantized.onnx"]!)).toBe(true);
  });

  test("has no name while it is not what the mirror says it is, and none of it stays", async () => {
    mirror.behaviour = { statedDigest: "ab".repeat(32) };
    expect(String(await fetchOnce().catch((error: unknown) => error))).toContain("digest");
    expect(existsSync(weights())).toBe(false);
    expect(parts()).toEqual([]);
    for (const statedSize of [299_999, 300_001]) {
      mirror.behaviour = { statedSize };
      expect(await fetchOnce().catch((error: unknown) => error)).toBeInstanceOf(Error);
      expect(existsSync(weights())).toBe(false);
    }
    expect(findModel(dir, undefined)).toBeUndefined();
    mirror.behaviour = {};
    await fetchOnce();
    expect(findModel(dir, MODEL)).toBe(MODEL);
  });

  test("is refused by name on 404 and 500; the plain weights are taken where there are no quantised ones", async () => {
    for (const status of [404, 500]) {
      mirror.behaviour = { status };
      expect(await fetchOnce().catch((error: unknown) => error)).toBeInstanceOf(Error);
    }
    FILES["onnx/model.onnx"] = randomBytes(1_000);
    mirror.behaviour = { withoutQuantised: true };
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
