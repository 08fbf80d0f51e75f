/** Parses Server-Sent Events in the server's spelling from text that arrives in arbitrary pieces. */
import type { Json } from "../../src/protocol/json.ts";

export interface Frame {
  event: string;
  data: Json;
}

/** Returns a function that takes the next piece of text and returns the frames it completes. Comments are dropped. */
export function createFrameParser(): (text: string) => Frame[] {
  let rest = "";
  return (text) => {
    rest += text;
    // A CR at the end may be the first half of a CRLF.
    const usable = rest.endsWith("\r") ? rest.slice(0, -1) : rest;
    const blocks = usable.replaceAll("\r\n", "\n").split("\n\n");
    rest = (blocks.pop() ?? "") + rest.slice(usable.length);
    return blocks.flatMap(parseBlock);
  };
}

function parseBlock(block: string): Frame[] {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trimStart();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length === 0 ? [] : [{ event, data: JSON.parse(data.join("\n")) as Json }];
}
