import { describe, expect, test } from "bun:test";
import { readSse, type SseFrame } from "./sse-reader.ts";

async function* chunksOf(bytes: Uint8Array, sizes: (index: number) => number): AsyncGenerator<Uint8Array> {
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const size = sizes(index);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function framesOf(text: string, sizes: (index: number) => number = () => 1 << 20): Promise<SseFrame[]> {
  return Array.fromAsync(readSse(chunksOf(new TextEncoder().encode(text), sizes)));
}

describe("events of a stream", () => {
  test.each([
    ["event: ready\ndata: {}\n\n", [{ event: "ready", data: "{}" }]],
    ["data:x\n\n", [{ event: "message", data: "x" }]],
    ["data:  two spaces\n\n", [{ event: "message", data: " two spaces" }]],
    ["data: a\ndata: b\ndata\n\n", [{ event: "message", data: "a\nb\n" }]],
    [": keepalive\n\nevent: a\n: note\ndata: 1\n\n", [{ event: "a", data: "1" }]],
    ["id: 7\nretry: 10\nother: x\nevent: a\ndata: 1\n\n", [{ event: "a", data: "1" }]],
    ["event: a\n\ndata: 1\n\n", [{ event: "message", data: "1" }]],
    [
      "event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r",
      [
        { event: "a", data: "1" },
        { event: "b", data: "2" },
      ],
    ],
    ["\ufeffdata: bom\n\n", [{ event: "message", data: "bom" }]],
    ["data: ends here\n", []],
    ["data: cut", []],
    ["\n\n\n", []],
    ['data: {"a":"b:c"}\n\n', [{ event: "message", data: '{"a":"b:c"}' }]],
  ])("%p", async (text, frames) => {
    expect(await framesOf(text)).toEqual(frames);
  });

  const text =
    ': hello\r\nevent: changes\r\ndata: ["ünïcödé 👍"]\r\n\r\nevent: x\ndata: 1\ndata: 2\n\n\r\revent: closed\rdata: {}\r\r';

  test("are the same however the bytes are cut", async () => {
    const whole = await framesOf(text);
    expect(whole).toEqual([
      { event: "changes", data: '["ünïcödé 👍"]' },
      { event: "x", data: "1\n2" },
      { event: "closed", data: "{}" },
    ]);
    for (const size of [1, 2, 3, 5, 7]) expect(await framesOf(text, () => size)).toEqual(whole);
    for (let first = 1; first < text.length; first++) {
      expect(await framesOf(text, (index) => (index === 0 ? first : 1 << 20))).toEqual(whole);
    }
  });

  test("a line end cut between CR and LF is one line end, and the LF after it another", async () => {
    expect(await framesOf("data: 1\r\n\ndata: 2\r\n\n", () => 1)).toEqual([
      { event: "message", data: "1" },
      { event: "message", data: "2" },
    ]);
  });

  test("a line of many chunks costs what it weighs", async () => {
    const long = "x".repeat(4 << 20);
    const [frame] = await framesOf(`data: ${long}\n\n`, () => 4096);
    expect(frame?.data).toHaveLength(long.length);
  });
});
