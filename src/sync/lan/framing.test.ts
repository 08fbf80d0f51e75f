import { describe, expect, test } from "bun:test";
import { concatBytes, writeUint32 } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { createFrameReader, encodeFrame, FRAGMENT_BYTES, FRAME, type Frame } from "./framing.ts";

const readAll = (bytes: Uint8Array, cut: number): Frame[] | undefined => {
  const reader = createFrameReader(FRAGMENT_BYTES);
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; at += cut) {
    const some = reader.push(bytes.slice(at, at + cut));
    if (!some) return undefined;
    frames.push(...some.map((frame) => ({ ...frame, payload: frame.payload.slice() })));
  }
  return frames;
};

describe("frames", () => {
  const sent = [
    { type: FRAME.request, more: false, id: 7, payload: randomBytes(10) },
    { type: FRAME.response, more: true, id: 0xffff_ffff, payload: randomBytes(FRAGMENT_BYTES) },
    { type: FRAME.ping, more: false, id: 0, payload: new Uint8Array(0) },
    { type: FRAME.notice, more: false, id: 8, payload: randomBytes(300) },
  ];
  const stream = concatBytes(...sent.map((frame) => encodeFrame(frame.type, frame.id, frame.payload, frame.more)));

  test.each([1, 2, 3, 8, 9, 10, 1000, stream.length])("come back however the stream is cut: every %d bytes", (cut) => {
    expect(readAll(stream, cut)).toEqual(sent);
  });

  test("a frame that comes byte by byte is kept in one piece, and its bytes are its own", () => {
    const reader = createFrameReader(FRAGMENT_BYTES);
    const byte = new Uint8Array(1);
    const frames: Frame[] = [];
    for (const each of stream) {
      byte[0] = each; // the same memory every time
      frames.push(...reader.push(byte)!);
    }
    expect(frames).toEqual(sent);
  });

  test("a truncated frame is waited for, not delivered", () => {
    const reader = createFrameReader(FRAGMENT_BYTES);
    expect(reader.push(stream.slice(0, 12))).toEqual([]);
  });

  test.each([
    ["longer than the limit", 5 + FRAGMENT_BYTES + 1],
    ["of four gigabytes", 0xffff_ffff],
    ["shorter than a header", 4],
  ])("a frame %s is refused by its length alone, and nothing after it is read", (_name, length) => {
    const header = new Uint8Array(9);
    writeUint32(header, 0, length);
    const reader = createFrameReader(FRAGMENT_BYTES);
    expect(reader.push(header)).toBeUndefined();
    expect(reader.push(stream)).toBeUndefined();
  });

  test("the limit of a handshake gives way to that of the link", () => {
    const reader = createFrameReader(2 * FRAGMENT_BYTES);
    const large = encodeFrame(FRAME.handshake, 0, randomBytes(2 * FRAGMENT_BYTES));
    expect(reader.push(large)).toHaveLength(1);
    reader.setLimit(FRAGMENT_BYTES);
    expect(reader.push(large)).toBeUndefined();
  });
});
