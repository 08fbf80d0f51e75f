import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { CloseReason } from "../../protocol/sse-frames.ts";
import { parseFilter } from "../../query/filter/filter-parse.ts";
import type { Filter } from "../../query/filter/filter-types.ts";
import { parseSort, type SortKey } from "../../query/value/sort.ts";
import type { RawTerms } from "./collection-reader.ts";

/** What is watched: the collection of all objects of the space, or a dataset of one object. */
export type LiveCollection = "objects" | { readonly objectId: string; readonly dataset: string };

/** A windowed subscription as its caller asks for it (LIVE-3). */
export interface LiveBody {
  /** Mongo-style filter; absent or null matches all. */
  readonly filter?: unknown;
  /** Dotted paths, `-` in front descends. */
  readonly sort?: unknown;
  /** Records of the window; absent, 0 or negative is all of them. */
  readonly limit?: number | undefined;
  /** Matches before the window; 0 and negative are none. */
  readonly offset?: number | undefined;
  /** Adds `total` and `hasNext` to the snapshot; they are not maintained afterwards. */
  readonly includeTotal?: boolean | undefined;
  /** Entries kept while they cannot be sent, before the subscription ends with `overflow`. */
  readonly mailboxCapacity?: number | undefined;
  /** Percentage of the window that may be missing while its refill is postponed, before it ends with `drifted`. */
  readonly driftBudgetPercent?: number | undefined;
}

/** The window that a body asks for. */
export interface LiveRequest {
  readonly collection: LiveCollection;
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  /** Infinity: all. */
  readonly limit: number;
  readonly offset: number;
  /** Filter and sort as the caller wrote them. */
  readonly terms: RawTerms;
}

/**
 * Reads a body. `declaredKind` says which paths of a dataset are declared datetimes.
 * @throws SvcError filter.*, request.schema and request.invalid_field for sort, request.missing_field for a limit
 *   without a sort
 */
export function parseLiveBody(
  collection: LiveCollection,
  { filter, sort, limit = 0, offset = 0 }: LiveBody,
  declaredKind: (dataset: string, path: string) => "datetime" | undefined,
): LiveRequest {
  const dataset = collection === "objects" ? OBJECTS_DATASET : collection.dataset;
  const request: LiveRequest = {
    collection,
    filter: parseFilter(filter, { declared: (path) => declaredKind(dataset, path) }),
    sort: parseSort(sort),
    limit: limit > 0 ? limit : Number.POSITIVE_INFINITY,
    offset: Math.max(0, offset),
    terms: { filter, sort },
  };
  if (limit > 0 && request.sort.length === 0)
    throw refusedAs("request.missing_field", { field: "sort" }, refusal("window.no_sort"));
  return request;
}

/** Why a subscription was ended by the server. */
export type LiveEnd = Extract<CloseReason, "overflow" | "drifted" | "sdk_closed">;

/** The subscriber. Neither call comes before `subscribe` has returned, nor after `close`. */
export interface LiveSink {
  /** There is something to `take`. Called once; again only after a `take`. */
  changed(): void;
  /** The subscription is over; nothing more can be taken. `last` is what was not taken yet. */
  ended(reason: LiveEnd, last?: LiveChanges): void;
}

export interface LiveSnapshot {
  /** The JSON text of each record of the window, in order, as stored. */
  readonly records: readonly string[];
  readonly total?: number;
  readonly hasNext?: boolean;
}

export interface LiveSubscription {
  /** Returns everything since the snapshot or the last take; undefined when there is nothing. */
  take(): LiveChanges | undefined;
  /** Idempotent. */
  close(): void;
}

/** The payload of one `changes` frame; shared by all subscribers that lag equally. */
export interface LiveChanges {
  /** `[{versionId, added?, updated?, removed?}]` as JSON text. */
  readonly json: string;
  /** The whole SSE frame. */
  readonly frame: Uint8Array;
}
