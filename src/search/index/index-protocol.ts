/**
 * Messages between the server and the process that owns the indexes. Only this file is the server's too: loading the process's
 * code, the server would hold 9 MiB of its buffers.
 */
import type { SearchHit } from "../../protocol/search.ts";
import type { PackedVector, PendingText, VectorModel } from "../../store/search/vector-table.ts";
import type { SearchFilter } from "../text/text-search.ts";
import type { SearchConfig } from "./search-config.ts";

/** The command-line argument that makes the executable run as this process. */
export const INDEX_CHILD = "__index";

export interface IndexFiles {
  readonly spaceId: string;
  /** The space's own database; the process only reads it. */
  readonly source: string;
  readonly index: string;
}

export interface IndexQuery extends SearchFilter {
  readonly query: string;
  readonly limit: number;
  /** How many code points of text a hit shows; -1: all. */
  readonly maxData: number;
  readonly mode: "fts" | "vector" | "hybrid";
  /** The query as a vector, together with the model that made it. */
  readonly vector?: PackedVector | undefined;
}

/** The model that embeds texts now, and the directory for its native parts. */
export interface VectorSide {
  readonly model: VectorModel;
  readonly nativeDir: string;
}

export interface PendingTexts {
  readonly texts: readonly PendingText[];
  /** How many texts wait in all. */
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
  /** Why this machine cannot search vectors, when it was asked to. */
  readonly unsupported?: string;
}

export type IndexRequest =
  /** Something was committed, or the space was opened: the process brings its index in step. */
  | { readonly kind: "follow"; readonly files: IndexFiles; readonly config: SearchConfig }
  /** Answers what the index lacks (IndexState); makes and changes nothing. */
  | { readonly kind: "isCurrent"; readonly files: IndexFiles }
  | {
      readonly kind: "search";
      readonly files: IndexFiles;
      readonly config: SearchConfig;
      readonly query: IndexQuery;
      readonly side?: VectorSide | undefined;
    }
  /** Returns texts that wait for their vectors. */
  | { readonly kind: "pending"; readonly files: IndexFiles; readonly side: VectorSide; readonly limit: number }
  | {
      readonly kind: "keep";
      readonly files: IndexFiles;
      readonly side: VectorSide;
      readonly texts: readonly { readonly hash: string; readonly vectors: readonly PackedVector[] }[];
    }
  /** Reports that a text ended the process that had to embed it; returns how often that happened. */
  | { readonly kind: "fault"; readonly files: IndexFiles; readonly side: VectorSide; readonly hash: string }
  /** Checks a whole index and makes a damaged one anew. Returns whether it was damaged. */
  | { readonly kind: "check"; readonly files: IndexFiles }
  /** Removes the files of an index. */
  | { readonly kind: "drop"; readonly files: IndexFiles };

export type IndexReport =
  /** A space's index is open, and the search that was asked for begins. */
  | { readonly kind: "searching"; readonly spaceId: string }
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
