/** Files on one device: attaching, reading, listing, variants, deleting. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type Client, type SpaceInfo, until } from "../support/server/client.ts";
import {
  type AttachOptions,
  attach,
  attachFails,
  attachPath,
  bytesOf,
  content,
  type FileInfo,
  filesPath,
} from "../support/server/files.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

const root = scratchDir("svc-files");
let server: RunningServer;
let client: Client;
let space: SpaceInfo;
let objectId: string;

beforeAll(async () => {
  server = await startServer({ dataDir: root.path });
  client = server.client;
  space = await createSpace(client);
  objectId = (await createObject(client, space.id)).id;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  root[Symbol.dispose]();
});

const put = (bytes: Uint8Array | ReadableStream<Uint8Array>, options: AttachOptions = {}, owner = objectId) =>
  attach(client, space.id, owner, bytes, options);
const read = (fileId: string, options: Parameters<typeof content>[3] = {}) =>
  content(client, space.id, fileId, options);
const file = (fileId: string) => `${filesPath(space.id)}/${fileId}`;
const rows = (owner: string, body: object = {}) =>
  client.post<{ records: Record<string, unknown>[]; total?: number }>(`${attachPath(space.id, owner)}/query`, body);
/** The folder that holds the space's contents. */
const folder = (): string => {
  const account = readdirSync(server.dataDir).find((name) => existsSync(join(server.dataDir, name, "files")));
  return join(server.dataDir, account ?? "", "files", space.id);
};
const onDisk = (): string[] => (existsSync(folder()) ? readdirSync(folder()).sort() : []);

describe("attaching", () => {
  for (const size of [0, 1, 4095]) {
    rule(`[FILE-1] ${size} bytes lie in the row: no rootCid, cached, and given back`, async () => {
      const info = await put(bytesOf(size), { name: "short.bin" });
      expect(info).toMatchObject({ objectId, size, inline: true, cached: true, durable: false, name: "short.bin" });
      expect(info.rootCid).toBeUndefined();
      const got = await read(info.fileId);
      expect([got.status, got.bytes]).toEqual([200, bytesOf(size)]);
    });
  }

  for (const size of [4096, (512 << 10) - 1, 512 << 10, (512 << 10) + 1, 5_000_000]) {
    rule(`[FILE-1] ${size} bytes lie in a file of their own and are given back`, async () => {
      const info = await put(bytesOf(size));
      expect(info).toMatchObject({ size, inline: false, cached: true, durable: false });
      expect(info.rootCid).toMatch(/^bafyrei/);
      const got = await read(info.fileId);
      expect(Buffer.compare(got.bytes, bytesOf(size))).toBe(0);
      expect(got.headers.get("etag")).toBe(`"${info.rootCid}"`);
    });
  }

  rule(
    "[FILE-4] the same bytes share their rootCid within a space and are kept once; other spaces name them otherwise",
    async () => {
      const bytes = bytesOf(70_000, 7);
      const [first, second] = [await put(bytes), await put(bytes)];
      expect(second.rootCid).toBe(first.rootCid!);
      expect(second.fileId).not.toBe(first.fileId);
      const other = await createSpace(client);
      const there = (await createObject(client, other.id)).id;
      expect((await attach(client, other.id, there, bytes)).rootCid).not.toBe(first.rootCid);
      await client.del(file(first.fileId));
      expect((await read(second.fileId)).bytes).toEqual(bytes);
    },
  );

  rule("[FILE-10] a form is no file: 415 says how to send one", async () => {
    for (const type of ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]) {
      const refusal = await attachFails(client, attachPath(space.id, objectId), bytesOf(10), { "Content-Type": type });
      expect(refusal).toMatchObject({ status: 415, code: "request.unsupported_media_type" });
      expect(refusal.message).toContain("--data-binary");
    }
  });

  rule("[FILE-10] an unknown or deleted object takes no file", async () => {
    const gone = (await createObject(client, space.id)).id;
    await client.del(`/v1/spaces/${space.id}/objects/${gone}`);
    for (const owner of ["bafyreinowhere", gone]) {
      const refusal = await attachFails(client, attachPath(space.id, owner), bytesOf(10), {});
      expect(refusal).toMatchObject({ status: 404, code: "file.not_found" });
    }
  });

  rule("[FILE-4] a body that breaks off leaves nothing", async () => {
    const before = onDisk();
    const { files } = await client.get<{ files: FileInfo[] }>(filesPath(space.id));
    const abort = new AbortController();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytesOf(300_000, 9)); // and nothing more
      },
    });
    const sent = fetch(client.base + attachPath(space.id, objectId), { method: "POST", body, signal: abort.signal });
    await until(() => onDisk().some((name) => name.startsWith("tmp-")), "the upload to be on the disk");
    abort.abort();
    await sent.catch(() => undefined);
    await until(() => onDisk().length === before.length, "nothing to be left");
    expect(onDisk()).toEqual(before);
    expect((await client.get<{ files: FileInfo[] }>(filesPath(space.id))).files).toEqual(files);
  });
});

describe("ranges and conditions (RFC 9110 § 13, § 14)", () => {
  const SIZE = 1_200_000;
  const RANGES: [header: string, status: number, from?: number, to?: number][] = [
    ["bytes=0-0", 206, 0, 0],
    ["bytes=0-499", 206, 0, 499],
    ["bytes=524287-524289", 206, 524287, 524289],
    ["bytes=1199999-", 206, 1199999, 1199999],
    ["bytes=-1", 206, 1199999, 1199999],
    ["bytes=-500", 206, SIZE - 500, SIZE - 1],
    ["bytes=-9999999", 206, 0, SIZE - 1],
    ["bytes=100-9999999", 206, 100, SIZE - 1],
    ["BYTES=5-6", 206, 5, 6],
    ["bytes=1200000-", 416],
    ["bytes=9999999-99999999", 416],
    ["bytes=-0", 416],
    ["bytes=5-4", 200],
    ["bytes=", 200],
    ["bytes=a-b", 200],
    ["bytes=-", 200],
    ["lines=0-1", 200],
    ["bytes=0-0,5-6", 200],
    ["bytes=0-1, 9999999-", 200],
    ["bytes=9999999-,8888888-", 416],
  ];
  let big: FileInfo;
  let small: FileInfo;
  beforeAll(async () => {
    big = await put(bytesOf(SIZE, 21), { name: "big.bin" });
    small = await put(bytesOf(100, 22), { name: "small.bin" });
  });

  for (const [range, status, from, to] of RANGES) {
    rule(`[FILE-5] Range: ${range} of ${SIZE} bytes is ${status}`, async () => {
      const got = await read(big.fileId, { headers: { range } });
      expect(got.status).toBe(status);
      expect(got.headers.get("accept-ranges") ?? "bytes").toBe("bytes");
      if (status === 206) {
        expect(got.headers.get("content-range")).toBe(`bytes ${from}-${to}/${SIZE}`);
        expect(Buffer.compare(got.bytes, bytesOf(SIZE, 21).subarray(from, to! + 1))).toBe(0);
      } else if (status === 416) expect(got.headers.get("content-range")).toBe(`bytes */${SIZE}`);
      else expect(got.bytes.length).toBe(SIZE);
    });
  }

  rule("[FILE-5] ranges of bytes that lie in the row are the same", async () => {
    const got = await read(small.fileId, { headers: { range: "bytes=10-19" } });
    expect([got.status, got.headers.get("content-range")]).toEqual([206, "bytes 10-19/100"]);
    expect(got.bytes).toEqual(bytesOf(100, 22).slice(10, 20));
    const empty = await put(new Uint8Array(0));
    const none = await read(empty.fileId, { headers: { range: "bytes=0-" } });
    expect([none.status, none.headers.get("content-range")]).toEqual([416, "bytes */0"]);
  });

  rule("[FILE-5] If-None-Match answers 304, weak or strong, alone or in a list", async () => {
    const tag = `"${big.rootCid}"`;
    for (const value of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
      const got = await read(big.fileId, { headers: { "if-none-match": value } });
      expect([value, got.status, got.bytes.length, got.headers.get("etag")]).toEqual([value, 304, 0, tag]);
    }
    expect((await read(big.fileId, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  rule("[FILE-5] If-Range takes the range only for the very tag", async () => {
    const range = "bytes=0-9";
    const tag = `"${big.rootCid}"`;
    const statusOf = async (ifRange: string) =>
      (await read(big.fileId, { headers: { range, "if-range": ifRange } })).status;
    expect(await statusOf(tag)).toBe(206);
    for (const other of [`W/${tag}`, '"other"', "Wed, 21 Oct 2015 07:28:00 GMT"])
      expect(await statusOf(other)).toBe(200);
  });

  rule("[FILE-5] HEAD says what GET would, without a body, and knows no ranges", async () => {
    const head = await read(big.fileId, { method: "HEAD", headers: { range: "bytes=0-9" } });
    expect([head.status, head.bytes.length, head.headers.get("content-length")]).toEqual([200, 0, String(SIZE)]);
    expect(head.headers.get("etag")).toBe(`"${big.rootCid}"`);
    const [, tag] = /^"(.+)"$/.exec((await read(small.fileId)).headers.get("etag")!)!;
    expect(tag).toMatch(/^bafyrei/);
  });
});

describe("variants", () => {
  rule(
    "[FILE-9] [FILE-1] a variant belongs to its original: found by its tag from either, listed as a file, gone with it",
    async () => {
      const original = await put(bytesOf(9_000, 31), { name: "photo.jpg" });
      const thumb = await put(bytesOf(5_000, 32), { variant: "thumb", variantOf: original.fileId });
      expect(thumb).toMatchObject({ variant: "thumb", variantOf: original.fileId });
      const tiny = await put(bytesOf(10, 33), { variant: "tiny", variantOf: original.fileId });
      for (const asked of [original, thumb, tiny])
        expect((await read(asked.fileId, { query: "?variant=thumb" })).bytes).toEqual(bytesOf(5_000, 32));
      await client.fails("GET", `${file(original.fileId)}/content?variant=large`, undefined, 404, "file.not_found");
      const { files } = await client.get<{ files: FileInfo[] }>(`${filesPath(space.id)}?objectId=${objectId}&limit=3`);
      expect(files.map(({ fileId }) => fileId)).toEqual([tiny.fileId, thumb.fileId, original.fileId]);
      await client.del(file(original.fileId));
      for (const { fileId } of [original, thumb, tiny])
        await client.fails("GET", file(fileId), undefined, 404, "file.not_found");
      await client.fails("DELETE", file(original.fileId), undefined, 404, "file.not_found");
    },
  );

  rule("[FILE-9] variant and variantOf go together, on one object, one deep", async () => {
    const original = await put(bytesOf(10));
    const variant = await put(bytesOf(11), { variant: "thumb", variantOf: original.fileId });
    const elsewhere = (await createObject(client, space.id)).id;
    const wrong: [string, AttachOptions][] = [
      [objectId, { variant: "thumb" }],
      [objectId, { variantOf: original.fileId }],
      [objectId, { variant: "thumb", variantOf: "nowhere" }],
      [elsewhere, { variant: "thumb", variantOf: original.fileId }],
      [objectId, { variant: "thumb", variantOf: variant.fileId }],
      [objectId, { variant: "a/b", variantOf: original.fileId }],
    ];
    for (const [owner, options] of wrong) {
      const refusal = await attachFails(client, attachPath(space.id, owner, options), bytesOf(5), {});
      expect([options, refusal.status, refusal.code]).toEqual([options, 400, "file.variant_invalid"]);
    }
  });
});

describe("rows and listings", () => {
  rule("[FILE-1] rows are found, filtered and counted per object; before the first file there are none", async () => {
    const owner = (await createObject(client, space.id)).id;
    await client.fails("POST", `${attachPath(space.id, owner)}/query`, {}, 404, "file.not_found");
    for (let i = 0; i < 5; i++)
      await put(bytesOf(10 + i), { name: `f${i}`, mime: i % 2 ? "text/plain" : "image/png" }, owner);
    const page = await rows(owner, { filter: { mime: "image/png" }, sort: ["-size"], limit: 2, includeTotal: true });
    expect(page.records.map(({ name }) => name)).toEqual(["f4", "f2"]);
    expect(page.total).toBe(3);
    expect(page.records[0]).toMatchObject({ objectId: owner, size: 14, durable: false, mime: "image/png" });
    expect((await rows(owner, { filter: { durable: true } })).records).toEqual([]);
  });

  rule("[LIVE-2] a window over the rows tells of files that come and go", async () => {
    const owner = (await createObject(client, space.id)).id;
    const first = await put(bytesOf(10), { name: "first" }, owner);
    const stream = await client.stream("POST", `${attachPath(space.id, owner)}/query/subscribe`, { sort: ["name"] });
    const snapshot = await stream.snapshot();
    expect(snapshot.records.map(({ id }) => id)).toEqual([first.fileId]);
    const second = await put(bytesOf(6_000), { name: "second" }, owner);
    await client.del(file(first.fileId));
    const seen = { added: [] as string[], removed: [] as string[] };
    while (seen.removed.length === 0) {
      const changes = await stream.changes();
      for (const { added = [], removed = [] } of changes) {
        seen.added.push(...added.map(({ id }) => id));
        seen.removed.push(...removed.map(({ id }) => id));
      }
    }
    expect(seen).toEqual({ added: [second.fileId], removed: [first.fileId] });
    await stream.close();
  });

  rule("[API-5] [FILE-1] a listing takes objectId and limit, 0 for all; a broken limit is refused", async () => {
    for (const limit of ["-1", "1.5", "x"]) {
      const path = `${filesPath(space.id)}?limit=${limit}`;
      const refusal = await client.fails("GET", path, undefined, 400, "request.invalid_field");
      expect(refusal.details).toMatchObject({ field: "limit" });
    }
    const { files } = await client.get<{ files: FileInfo[] }>(`${filesPath(space.id)}?limit=0`);
    expect(files.length).toBeGreaterThan(1);
    expect((await client.get<{ files: FileInfo[] }>(`${filesPath(space.id)}?limit=1`)).files).toEqual([files[0]!]);
    expect((await client.get<{ files: FileInfo[] }>(`${filesPath(space.id)}?objectId=nowhere`)).files).toEqual([]);
  });

  rule("[FILE-10] rows cannot be written by hand", async () => {
    const { records } = await rows(objectId, { limit: 1 });
    const { id } = records[0] as { id: string };
    const write = { objectId, dataset: "files", records: [{ id, ops: [{ type: "$set", path: "name", value: "x" }] }] };
    await client.fails("POST", `/v1/spaces/${space.id}/modify`, write, 400, "dataset.validation");
  });

  rule("[FILE-3] status and stats say where the backup stands; the stream opens", async () => {
    const before = await client.get<Record<string, number>>(`${filesPath(space.id)}/stats`);
    const { fileId } = await put(bytesOf(8_000, 41));
    expect(await client.get<unknown>(`${file(fileId)}/status`)).toEqual({
      fileId,
      objectId,
      state: "inflight",
      cached: true,
    });
    const after = await client.get<Record<string, number>>(`${filesPath(space.id)}/stats`);
    expect(after).toEqual({
      ...before,
      total: before["total"]! + 1,
      inflight: before["inflight"]! + 1,
      oneCopy: before["oneCopy"]! + 1,
    });
    const stream = await client.stream("GET", `${filesPath(space.id)}/subscribe`);
    await stream.expect("ready");
    await client.del(file(fileId));
    await stream.close();
  });

  rule("[FILE-10] what does not exist is file.not_found everywhere", async () => {
    const missing = file("nowhere");
    for (const [method, path] of [
      ["GET", missing],
      ["GET", `${missing}/content`],
      ["GET", `${missing}/status`],
      ["POST", `${missing}/pin`],
      ["POST", `${missing}/retry`],
      ["POST", `${missing}/offload`],
      ["DELETE", missing],
    ] as const)
      await client.fails(method, path, undefined, 404, "file.not_found");
  });
});

describe("the cache", () => {
  rule("[FILE-4] the only copy is never dropped: not by offload, not to make room", async () => {
    const { fileId } = await put(bytesOf(50_000, 51));
    await client.fails("POST", `${file(fileId)}/offload`, undefined, 409, "file.not_durable");
    expect(await client.post<unknown>("/v1/files/cache/free", { bytes: 1e12 })).toEqual({ freed: 0 });
    await client.post("/v1/files/cache/sweep", undefined, 204);
    expect((await read(fileId)).bytes).toEqual(bytesOf(50_000, 51));
    const inline = await put(bytesOf(5));
    await client.post(`${file(inline.fileId)}/offload`, undefined, 204);
    expect((await read(inline.fileId)).bytes).toEqual(bytesOf(5));
    await client.post(`${file(fileId)}/pin`, undefined, 204);
    await client.post(`${file(fileId)}/retry`, undefined, 204);
    for (const bytes of [0, -5]) {
      const refusal = await client.fails("POST", "/v1/files/cache/free", { bytes }, 400, "request.invalid_field");
      expect(refusal.details).toMatchObject({ field: "bytes" });
    }
  });

  rule("[FILE-4] deleting a file, its object or its space drops the bytes that nothing else names", async () => {
    const sizeOf = async () => (await client.get<{ size: number }>("/v1/files/cache")).size;
    const before = await sizeOf();
    const lone = await put(bytesOf(60_000, 61));
    expect(await sizeOf()).toBe(before + 60_000);
    await client.del(file(lone.fileId));
    expect(await sizeOf()).toBe(before);

    const owner = (await createObject(client, space.id)).id;
    const owned = await put(bytesOf(61_000, 62), {}, owner);
    await client.del(`/v1/spaces/${space.id}/objects/${owner}`);
    await client.fails("GET", file(owned.fileId), undefined, 404, "file.not_found");
    await until(async () => (await sizeOf()) === before, "the bytes of the object's file to go");

    const other = await createSpace(client);
    const there = (await createObject(client, other.id)).id;
    await attach(client, other.id, there, bytesOf(62_000, 63));
    await client.del(`/v1/spaces/${other.id}`);
    await until(async () => (await sizeOf()) === before, "the bytes of the space to go");
  });

  rule("[FILE-4] what was attached survives a restart, half an upload does not, a whole one stays a day", async () => {
    const { fileId } = await put(bytesOf(90_000, 71), { name: "kept" });
    const dir = folder();
    await Bun.write(join(dir, "tmp-1-1-abc"), "half an upload");
    await Bun.write(join(dir, space.id), "a whole one under its content's id, whose row never came");
    await server.stop();
    server = await startServer({ dataDir: root.path });
    client = server.client;
    const got = await read(fileId);
    expect(got.bytes).toEqual(bytesOf(90_000, 71));
    expect(readdirSync(dir).filter((name) => name.startsWith("tmp-"))).toEqual([]);
    await client.post("/v1/files/cache/sweep", undefined, 204);
    expect(readdirSync(dir)).toContain(space.id);
  });

  rule(
    "[FILE-3] [FILE-11] a copy that was taken from the disk is no longer cached, and says so when it is asked for",
    async () => {
      const { fileId, rootCid } = await put(bytesOf(80_000, 81));
      await Bun.file(join(folder(), rootCid!)).delete();
      await client.fails("GET", `${file(fileId)}/content`, undefined, 409, "file.not_available");
      expect((await client.get<FileInfo>(file(fileId))).cached).toBe(false);
    },
  );
});
