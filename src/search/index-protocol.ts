/** Messages between the server and the process that owns the indexes. */
import type { SearchHit } from "../protocol/search.ts";
import type { SearchConfig } from "./search-config.ts";
import type { SearchFilter } from "./text-search.ts";

export interface IndexPlace {
  readonly spaceId: string;
  /** The space's own database; read alone. */
  readonly source: string;
  readonly index: string;
}

export interface IndexQuery extends SearchFilter {
  readonly query: string;
  readonly limit: number;
  /** Code points of text a hit shows; -1: all. */
  readonly maxData: number;
  readonly mode: "fts" | "vector" | "hybrid";
}

export interface IndexAnswer {
  readonly hits: readonly SearchHit[];
  readonly incomplete: boolean;
}

export type IndexRequest =
  /** Something was committed, or the space was opened: its index is brought in step. */
  | { readonly kind: "follow"; readonly place: IndexPlace; readonly config: SearchConfig }
  /** Answers whether the index lacks anything; makes and changes nothing. */
  | { readonly kind: "isCurrent"; readonly place: IndexPlace }
  | { readonly kind: "search"; readonly place: IndexPlace; readonly config: SearchConfig; readonly query: IndexQuery }
  /** The files of an index are removed. */
  | { readonly kind: "drop"; readonly place: IndexPlace };

export type IndexReport =
  /** How far the log of a space was followed, durably. */
  | { readonly kind: "followed"; readonly spaceId: string; readonly cursor: number }
  | {
      readonly kind: "progress";
      readonly spaceId: string;
      readonly done: number;
      readonly total: number;
      readonly over: boolean;
    };
