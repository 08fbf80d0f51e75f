import { expect, test } from "bun:test";
import { createFrameParser, type Frame } from "./frame-parser.ts";

const STREAM = ': keepalive\n\nevent: ready\ndata: {}\n\nevent: snapshot\r\ndata: {"records":\r\ndata: [1]}\r\n\r\n';
const FRAMES: Frame[] = [
  { event: "ready", data: {} },
  { event: "snapshot", data: { records: [1] } },
];

test("frames come out whole wherever the text is cut", () => {
  for (let size = 1; size <= STREAM.length; size++) {
    const parse = createFrameParser();
    const frames: Frame[] = [];
    for (let at = 0; at < STREAM.length; at += size) frames.push(...parse(STREAM.slice(at, at + size)));
    expect(frames).toEqual(FRAMES);
  }
});

test("a frame that has not ended is not given", () => {
  const parse = createFrameParser();
  expect(parse("event: ready\ndata: {}\n")).toEqual([]);
  expect(parse("\n")).toEqual([{ event: "ready", data: {} }]);
});
