/** Messages between the server and the process that owns the indexes. */
import type { SearchHit } from "../protocol/search.ts";
import type { PackedVector, PendingText, VectorModel } from "../store/search/vector-table.ts";
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
  /** The query as a vector; with it goes the side that made it. */
  readonly vector?: PackedVector | undefined;
}

/** What embeds texts now, and where its native parts are put. */
export interface VectorSide {
  readonly model: VectorModel;
  readonly nativeDir: string;
}

export interface PendingTexts {
  readonly texts: readonly PendingText[];
  /** How many wait in all. */
  readonly left: number;
  /** Why this machine cannot search vectors. */
  readonly unsupported?: string;
}

export interface IndexState {
  readonly isCurrent: boolean;
  readonly lacksVectors: boolean;
}

export interface IndexAnswer {
  readonly hits: readonly SearchHit[];
  readonly incomplete: boolean;
  /** Why this machine cannot search vectors, when it was to. */
  readonly unsupported?: string;
}

export type IndexRequest =
  /** Something was committed, or the space was opened: its index is brought in step. */
  | { readonly kind: "follow"; readonly place: IndexPlace; readonly config: SearchConfig }
  /** Answers what the index lacks (IndexState); makes and changes nothing. */
  | { readonly kind: "isCurrent"; readonly place: IndexPlace }
  | {
      readonly kind: "search";
      readonly place: IndexPlace;
      readonly config: SearchConfig;
      readonly query: IndexQuery;
      readonly side?: VectorSide | undefined;
    }
  /** Texts that wait for their vectors. */
  | { readonly kind: "pending"; readonly place: IndexPlace; readonly side: VectorSide; readonly limit: number }
  | {
      readonly kind: "keep";
      readonly place: IndexPlace;
      readonly side: VectorSide;
      readonly texts: readonly { readonly hash: string; readonly vectors: readonly PackedVector[] }[];
    }
  /** A text ended the process that was to embed it; answers how often. */
  | { readonly kind: "fault"; readonly place: IndexPlace; readonly side: VectorSide; readonly hash: string }
  /** Goes over all of an index; one that is damaged is made anew. Answers whether it was. */
  | { readonly kind: "check"; readonly place: IndexPlace }
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
      /** Texts wait for their vectors. */
      readonly lacksVectors: boolean;
    };
