import { type SplitBlock, splitBlockAt } from "./block-split.ts";

/** What a piece of markdown is when parsed by itself. */
interface ParsedPiece {
  /** Its first block; the only one when it ends where the piece does. */
  readonly head: SplitBlock;
  /** Its last block. */
  readonly tail: SplitBlock;
}

export interface ParseCache {
  /** Parses a non-empty piece, or remembers having done so. */
  parse(piece: string): ParsedPiece;
}

/** Remembers by content, in two generations of `limitChars / 2` each: what was used since the last turn survives one. */
export function createParseCache(limitChars: number): ParseCache {
  let young = new Map<string, ParsedPiece>();
  let old = new Map<string, ParsedPiece>();
  let youngChars = 0;
  return {
    parse(piece) {
      const known = young.get(piece);
      if (known) return known;
      const parsed = old.get(piece) ?? parsePiece(piece);
      youngChars += piece.length;
      if (youngChars > limitChars / 2) {
        old = young;
        young = new Map();
        youngChars = piece.length;
      }
      young.set(piece, parsed);
      return parsed;
    },
  };
}

function parsePiece(piece: string): ParsedPiece {
  const head = splitBlockAt(piece, 0);
  let tail = head;
  while (tail.end < piece.length) tail = splitBlockAt(piece, tail.end);
  return { head, tail };
}
