import type { Json } from "../../src/protocol/json.ts";
import { UsageError } from "../io/exit.ts";
import { parseJson } from "../io/input-reader.ts";

/**
 * Reads records written as one JSON array or as lines of JSON, one at a time, however long the input is: memory holds one
 * record, not the file. `label` names the input in errors, which count records from 1.
 */
export async function* readRecords(label: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Json> {
  let count = 0;
  for await (const text of recordTexts(label, texts(chunks))) yield parseJson(`${label}, record ${++count},`, text);
}

async function* texts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8");
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

async function* recordTexts(label: string, parts: AsyncGenerator<string>): AsyncGenerator<string> {
  // Blanks may precede the first record, and a chunk may be empty.
  let head = "";
  for await (const part of parts) {
    head = (head + part).trimStart();
    if (head === "") continue;
    if (head.startsWith("[")) yield* elements(label, head.slice(1), parts);
    else yield* lines(head, parts);
    return;
  }
}

async function* lines(head: string, parts: AsyncGenerator<string>): AsyncGenerator<string> {
  let rest = "";
  for (let part = head; ; ) {
    const split = (rest + part).split("\n");
    rest = split.pop() as string;
    for (const line of split) if (line.trim() !== "") yield line;
    const next = await parts.next();
    if (next.done) break;
    part = next.value;
  }
  if (rest.trim() !== "") yield rest;
}

/** The elements of an array whose `[` was already consumed. */
async function* elements(label: string, head: string, parts: AsyncGenerator<string>): AsyncGenerator<string> {
  const scanner = new ElementScanner();
  for (let part = head; ; ) {
    yield* scanner.take(part);
    const next = await parts.next();
    if (next.done) break;
    part = next.value;
  }
  if (!scanner.ended) throw new UsageError(`${label} ends before its array does`);
  if (scanner.rest.trim() !== "") throw new UsageError(`${label} goes on after its array`);
}

/** Cuts the text of an array at its own commas and closing bracket. */
class ElementScanner {
  ended = false;
  /** The text of the current element; after the end, what follows the array. */
  rest = "";
  #depth = 0;
  #inText = false;
  #escaped = false;
  #any = false;

  *take(part: string): Generator<string> {
    let from = 0;
    for (let at = 0; at < part.length && !this.ended; at++) {
      const end = this.#step(part.charCodeAt(at));
      if (end === "none") continue;
      const element = this.rest + part.slice(from, at);
      this.rest = "";
      from = at + 1;
      this.ended = end === "array";
      // `[]` has no element; the JSON parser refuses a blank one beside a comma.
      if (!this.ended || this.#any || element.trim() !== "") yield element;
      this.#any = true;
    }
    this.rest += part.slice(from);
  }

  /** What ends at this character. */
  #step(code: number): "none" | "element" | "array" {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false;
      else if (code === BACKSLASH) this.#escaped = true;
      else if (code === QUOTE) this.#inText = false;
      return "none";
    }
    if (code === QUOTE) this.#inText = true;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) this.#depth++;
    else if (code === CLOSE_BRACE) this.#depth--;
    else if (code === CLOSE_BRACKET) {
      if (this.#depth === 0) return "array";
      this.#depth--;
    } else if (code === COMMA && this.#depth === 0) return "element";
    return "none";
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
