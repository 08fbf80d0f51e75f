import type { SearchHit } from "../../src/protocol/search.ts";

export interface Piece {
  text: string;
  /** Whether the piece matches the query. */
  marked: boolean;
}

/** A hit's text in pieces; its highlights count in code points. */
export function highlighted({ data, highlights }: Pick<SearchHit, "data" | "highlights">): Piece[] {
  const points = [...data];
  const pieces: Piece[] = [];
  const add = (from: number, to: number, marked: boolean) => {
    if (to > from) pieces.push({ text: points.slice(from, to).join(""), marked });
  };
  let at = 0;
  for (const [start = 0, end = 0] of highlights) {
    add(at, start, false);
    add(Math.max(at, start), end, true);
    at = Math.max(at, end);
  }
  add(at, points.length, false);
  return pieces;
}
