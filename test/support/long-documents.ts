import { LIMITS } from "../../src/protocol/limits.ts";
import type { Rng } from "./rng.ts";

const CONTROLS = codesOf('\u0000\u0001\t\r\u001f\u007f"\\aé');
const LETTERS = codesOf("ab");

/** Code points, drawn one at a time: a document of one block has millions of them. */
const ALPHABETS: Readonly<Record<string, (rng: Rng) => number>> = {
  ascii: (rng) => rng.int(0x20, 0x7e),
  unicode: (rng) => {
    switch (rng.int(0, 3)) {
      case 0:
        return rng.int(0x21, 0x7e);
      case 1:
        return rng.int(0xa1, 0x7ff);
      case 2:
        return rng.int(0x800, 0xd7ff);
      default:
        return rng.int(0x10000, 0x10ffff);
    }
  },
  controls: (rng) => rng.pick(CONTROLS),
  letters: (rng) => rng.pick(LETTERS),
};

function codesOf(text: string): number[] {
  return Array.from(text, (character) => character.codePointAt(0)!);
}

/** Markdown that is one block, however long, of the lines that it is given. */
const BLOCKS: Readonly<Record<string, (lines: readonly string[], rng: Rng) => string>> = {
  "a paragraph": (lines) => lines.map((line) => `x${line}`).join("\n"),
  "a paragraph of one line": (lines) => `x${lines.join(" ")}`,
  "a heading": (lines) => `## x${lines.join(" ")}`,
  "an underlined heading": (lines) => `x${lines.join(" ")}x\n===`,
  "fenced code": (lines) => `\`\`\`\`ts\n${lines.join("\n")}\n\`\`\`\``,
  "code without an end": (lines) => `~~~~~~~~\n${lines.map((line) => `${line}.`).join("\n")}`,
  "code of a long language": (lines) => `~~~ ${lines.join(" ")}\ncode\n~~~`,
  "a quote": (lines, rng) => lines.map((line) => `${rng.pick([">", "> ", "  >  "])}${line}`).join("\n"),
  "an item": (lines, rng) =>
    `* x${lines.map((line) => `${rng.pick(["\n  ", "\n\n   ", "\n \n\t"])}x${line}`).join("")}`,
  "a checked item": (lines) => `- [X]  x${lines.map((line) => `\n   x${line}`).join("")}`,
  "raw HTML": (lines) => `<div>\n${lines.map((line) => `x${line}`).join("\n")}`,
  "a table": (lines) => `| a | b |\n|--|--|\n${lines.map((line) => `|${line}`).join("\n")}`,
};

export const LONG_BLOCKS: readonly string[] = Object.keys(BLOCKS);

/** How long a text is as the body of a PUT. */
export const bodyBytes = (content: string): number => Buffer.byteLength(JSON.stringify({ content }));

/** How many bytes JSON takes for each code point below 0x80. */
const ASCII_BYTES = Uint8Array.from(
  { length: 0x80 },
  (_, code) => JSON.stringify(String.fromCharCode(code)).length - 2,
);

/** How many bytes a character takes within JSON. */
const jsonBytes = (code: number): number =>
  code < 0x80 ? ASCII_BYTES[code]! : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

/** One block of random text, whose PUT has about so many bytes and no more. */
export function longBlock(rng: Rng, kind: string, bytes: number): string {
  const alphabet = ALPHABETS[rng.pick(Object.keys(ALPHABETS))]!;
  const lineChars = rng.pick([1, 60, 5_000, 2_000_000]);
  const lines: string[] = [];
  const line = new Uint16Array(2 * Math.min(lineChars, bytes));
  let left = bytes;
  while (left > 0) {
    let end = 0;
    let taken = 0;
    for (let length = rng.int(1, lineChars); length > 0 && taken < left; length--) {
      const code = alphabet(rng);
      taken += jsonBytes(code);
      if (code >= 0x10000) line[end++] = 0xd7c0 + (code >> 10);
      line[end++] = code < 0x10000 ? code : 0xdc00 | (code & 0x3ff);
    }
    lines.push(Buffer.from(line.buffer, 0, 2 * end).toString("utf16le"));
    left -= taken + 2;
  }
  // The markers take room too.
  for (;;) {
    const markdown = BLOCKS[kind]!(lines, rng);
    const over = bodyBytes(markdown) - bytes;
    if (over <= 0) return markdown;
    const last = [...lines.pop()!];
    // The last line may be most of the text.
    if (last.length > over) lines.push(last.slice(0, -over).join(""));
    else if (lines.length > 100) lines.length -= Math.floor((lines.length * over) / (bytes + over));
  }
}

export const BODY_BYTES = LIMITS.bodyBytes;
