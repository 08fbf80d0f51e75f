import { SvcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { compileFilter } from "../../query/filter/filter-match.ts";
import { type Filter, isMatchAll } from "../../query/filter/filter-types.ts";
import type { QueryRequest, QueryResult } from "../../query/run/run-query.ts";
import { compareEntries, type SortEntry, type SortKey, toSortEntry } from "../../query/value/sort.ts";
import { type CollectionReader, type RawTerms, ReadTooLong } from "./collection-reader.ts";
import type { LiveEntry, LiveItem, RemovalReason } from "./live-entry.ts";
import { type LiveRecord, RecordPart } from "./live-record.ts";
import type { LiveSnapshot } from "./live-request.ts";
import { MOST_STEPS } from "./pattern-shelf.ts";
import { SortedHead } from "./sorted-head.ts";
import { withTouched } from "./with-touched.ts";

/** How many rows are held behind a window, to replace rows that leave without reading the store. */
export interface Reserve {
  /** Half of what the window needs, within these bounds. */
  readonly min: number;
  readonly max: number;
  /** The reserve where reading the store proved too slow to do within a commit. */
  readonly wide: number;
}

export const DEFAULT_RESERVE: Reserve = { min: 8, max: 256, wide: 1_024 };

export interface WindowQuery {
  readonly filter: Filter;
  readonly sort: readonly SortKey[];
  /** Infinity: all. */
  readonly limit: number;
  readonly offset: number;
}

interface WholeRead {
  /** Set once they were read. */
  texts?: readonly string[];
  readonly touched: Map<string, LiveRecord>;
  readonly read: Promise<void>;
}

/** What is asked of a snapshot. */
export interface SnapshotAsked {
  readonly includeTotal: boolean;
  /** How many records match in all; only a window with a limit has to be told. */
  readonly total: number | undefined;
  /** How long reading a window without a limit may take. */
  readonly maxMs: number;
}

/**
 * Whether a record matches cannot be said without holding the event loop for long: the window has to begin anew, on a reader.
 * Subscribers that wait for it to open are answered with this.
 */
export class MatchTooLong extends SvcError {
  constructor() {
    super("server.unavailable", { refusal: refusal("query.match_too_long") });
  }
}

function refuseLong(steps: number): void {
  if (steps > MOST_STEPS) throw new MatchTooLong();
}

/** One commit, or one refill, on its way through a window. */
export interface WindowStep {
  readonly records: readonly LiveRecord[];
  /** The records whose visibility may change, and whether each was visible. */
  readonly wasVisible: Map<string, boolean>;
}

/**
 * Holds the records at [offset, offset + limit) of a query's sorted matches, kept in step with the store commit by commit.
 *
 * A bounded window holds ids and sort values of the first offset + limit matches and of a reserve behind them. An unbounded one
 * holds only those of the first `offset`, so nothing at all without an offset: whether a record was in it follows from the
 * record's text before the commit.
 */
export class LiveWindow {
  /** How long the last read of the store took, in milliseconds; Infinity after one that was given up. */
  readMs = 0;
  /** Rises with every commit that may concern the window. */
  stamp = 0;
  readonly #query: WindowQuery;
  readonly #terms: RawTerms;
  readonly #reader: CollectionReader;
  readonly #reserve: Reserve;
  /** Undefined: everything matches, so that nothing has to be parsed. */
  readonly #match: ((doc: JsonObject) => boolean) | undefined;
  /** Undefined where nothing has to be held. */
  readonly #head: SortedHead | undefined;
  /** Whether matches behind the held ones are in the window. */
  readonly isUnbounded: boolean;
  /** While a reader reads: the last state of every record that a commit has touched since it began. */
  #touchedMeanwhile: Map<string, LiveRecord> | undefined;
  /** All matches as a reader reads them or has just read them, and what commits have touched since it began. */
  #whole: WholeRead | undefined;
  #lastVersionId = "";
  /** How many records it showed when it was last complete. */
  #fullCount = 0;
  /** How often it was found to show as many records as its limit allows. */
  timesFull = 0;

  constructor(query: WindowQuery, terms: RawTerms, reader: CollectionReader, reserve: Reserve) {
    const { filter, sort, limit, offset } = query;
    this.#query = query;
    this.#terms = terms;
    this.#reader = reader;
    this.#reserve = reserve;
    this.#match = isMatchAll(filter) ? undefined : compileFilter(filter, refuseLong);
    this.isUnbounded = !Number.isFinite(limit);
    const needed = this.isUnbounded ? offset : offset + limit;
    const held = Math.min(reserve.max, Math.max(reserve.min, Math.ceil(needed / 2)));
    if (needed > 0) this.#head = new SortedHead(compareEntries(sort), needed, held);
  }

  /** Whether rows have left, or were never read, so that the rows that follow are not known. */
  get isShort(): boolean {
    return this.#head?.isShort ?? false;
  }

  get isFull(): boolean {
    return !this.isUnbounded && this.#visibleCount() === this.#query.limit;
  }

  /**
   * Returns which percentage of the window has left and was not replaced. While rows are still to be read, it is the percentage
   * of what the window showed when it was last complete. Once the matches have run out, it is that of the whole limit, for a
   * member that has seen the window full.
   */
  missingPercent(seenFull: boolean): number {
    if (this.isUnbounded) return 0;
    const whole = this.isShort ? this.#fullCount : seenFull ? this.#query.limit : 0;
    return whole === 0 ? 0 : ((whole - this.#visibleCount()) / whole) * 100;
  }

  /**
   * The window as it is now, in order. It must not be short. Undefined where there is no limit and reading takes longer than
   * `maxMs`: `readWhole`, then ask again in the same turn of the event loop.
   */
  snapshot({ includeTotal, total, maxMs }: SnapshotAsked): LiveSnapshot | undefined {
    const { filter, sort, offset } = this.#query;
    if (this.isUnbounded) {
      const all = this.#wholeNow() ?? this.#readNow({ filter, sort }, maxMs)?.records;
      if (!all) return undefined;
      const records = offset > 0 ? all.slice(offset) : all;
      return includeTotal ? { records, total: all.length, hasNext: false } : { records };
    }
    const records = this.#visibleIds().map((id) => this.#reader.text(id));
    return total === undefined ? { records } : { records, total, hasNext: offset + records.length < total };
  }

  /** Reads a window without a limit off the event loop, once for all who wait for it. */
  readWhole(): Promise<void> {
    if (this.#whole) return this.#whole.read;
    const read = async (): Promise<void> => {
      try {
        const { records } = await this.#reader.aside(this.#terms, 0, false);
        whole.texts = records;
      } catch (error) {
        this.#whole = undefined;
        throw error;
      }
      // Whoever waits for it takes it before that.
      setImmediate(() => {
        this.#whole = undefined;
      });
    };
    const whole: WholeRead = { touched: new Map(), read: Promise.resolve().then(read) };
    this.#whole = whole;
    return whole.read;
  }

  #wholeNow(): readonly string[] | undefined {
    const { texts, touched } = this.#whole ?? {};
    if (!texts || !touched) return undefined;
    return withTouched(texts, touched, this.#query.sort, this.#matches);
  }

  /** How many records match in all, or undefined if that takes longer than `maxMs`. */
  count(maxMs: number): number | undefined {
    return this.#readNow({ filter: this.#query.filter, sort: [], limit: 1, includeTotal: true }, maxMs)?.total;
  }

  /** Counts off the event loop; the result is right as long as `stamp` stays the same. */
  async countAside(): Promise<number | undefined> {
    return (await this.#reader.aside({ ...this.#terms, sort: undefined }, 1, true)).total;
  }

  /** Whether a record that a commit has touched matters here: it matches, or did, or is held. */
  concerns(record: LiveRecord): boolean {
    try {
      return this.#matches(record) || this.#matchedBefore(record) || (this.#head?.has(record.id) ?? false);
    } catch (error) {
      if (error instanceof MatchTooLong) return true;
      throw error;
    }
  }

  /**
   * Takes in what a commit did to the records that concern the window. If the window is short then, the caller uses `refill` or
   * `refillAside`; `finish` returns what changed.
   * @throws MatchTooLong
   */
  begin(records: readonly LiveRecord[]): WindowStep {
    const wasVisible = new Map<string, boolean>();
    const head = this.#head;
    if (head) {
      // Rows that no write touched move by no more places than there are writes, so only those near an edge can cross it.
      const { limit, offset } = this.#query;
      for (const edge of this.isUnbounded ? [offset] : [offset, offset + limit]) {
        const end = Math.min(head.length, edge + records.length);
        for (let at = Math.max(0, edge - records.length); at < end; at++)
          wasVisible.set(head.idAt(at), this.#showsPosition(at));
      }
    }
    for (const record of records)
      if (!wasVisible.has(record.id)) wasVisible.set(record.id, this.#shows(record, this.#matchedBefore));
    for (const record of records) {
      this.#touchedMeanwhile?.set(record.id, record);
      this.#whole?.touched.set(record.id, record);
      head?.remove(record.id);
      this.#offer(record);
    }
    head?.trim();
    if (records.length > 0) this.stamp++;
    this.#lastVersionId = records.at(-1)?.versionId ?? this.#lastVersionId;
    return { records, wasVisible };
  }

  /** Reads the rows that follow the held ones. Returns whether that was done within `maxMs`; `readMs` then holds what it cost. */
  refill(step: WindowStep, maxMs: number): boolean {
    const head = this.#head;
    if (!head?.isShort) return true;
    const { filter, sort } = this.#query;
    const limit = head.capacity - head.length;
    const found = this.#readNow({ filter, sort, offset: head.length, limit }, maxMs);
    this.readMs = found?.stats.ms ?? Number.POSITIVE_INFINITY;
    if (!found) return false;
    const entries = found.records.map(this.#entryOf);
    for (const { id } of entries) if (!step.wasVisible.has(id)) step.wasVisible.set(id, this.isUnbounded);
    head.append(entries, entries.length < limit);
    this.#noteFull();
    return true;
  }

  /**
   * Reads the first rows anew, off the event loop, and calls `read` when they have replaced the held ones. The window may be
   * short again then, because of other writes.
   */
  async refillAside(read: (step: WindowStep) => void): Promise<void> {
    const head = this.#head;
    if (!head?.isShort) return;
    head.widen(this.#reserve.wide);
    const touched = new Map<string, LiveRecord>();
    this.#touchedMeanwhile = touched;
    const limit = head.capacity;
    const { records, stats } = await this.#reader.aside(this.#terms, limit, false).finally(() => {
      this.#touchedMeanwhile = undefined;
    });
    this.readMs = stats.ms;
    // Another refill was done, or the object was deleted.
    if (!head.isShort) return;
    // It does not matter which commit the reader saw: untouched records are the same in all of them, and touched ones are known
    // here.
    const entries = records.map(this.#entryOf);
    const untouched = entries.filter(({ id }) => !touched.has(id));
    const matching = [...touched.values()].filter(this.#matches);
    const step = this.begin([]);
    for (let at = 0; at < head.length; at++) step.wasVisible.set(head.idAt(at), this.#showsPosition(at));
    for (const { id } of [...untouched, ...matching])
      if (!step.wasVisible.has(id)) step.wasVisible.set(id, this.isUnbounded);
    head.replace(untouched, entries.at(-1), entries.length < limit);
    for (const record of matching) this.#offer(record);
    head.trim();
    this.#noteFull();
    read(step);
  }

  /** Returns what the step has changed, one entry per write. Rows that moved because of other rows belong to the last write. */
  finish({ records, wasVisible }: WindowStep): LiveEntry[] {
    this.#noteFull();
    const itemsByVersion = new Map<string, LiveItem[]>();
    const put = (versionId: string, item: LiveItem): void => {
      const items = itemsByVersion.get(versionId);
      if (items) items.push(item);
      else itemsByVersion.set(versionId, [item]);
    };
    for (const record of records) {
      const item = this.#itemOf(record, wasVisible.get(record.id) ?? false);
      if (item) put(record.versionId, item);
      wasVisible.delete(record.id);
    }
    for (const [id, before] of wasVisible) {
      const position = this.#head?.positionOf(id) ?? -1;
      const after = position < 0 ? this.isUnbounded : this.#showsPosition(position);
      if (after && !before)
        put(this.#lastVersionId, { kind: "added", part: new RecordPart(id, this.#reader.text(id), []) });
      else if (before && !after) put(this.#lastVersionId, { kind: "removed", id, reason: "displaced" });
    }
    return [...itemsByVersion].map(([versionId, items]) => ({ versionId, items }));
  }

  /** Removes all records, because the object that holds the collection was deleted. */
  deleteAll(): LiveEntry[] {
    const items: LiveItem[] = this.#visibleIds().map((id) => ({ kind: "removed", id, reason: "deleted" }));
    this.#head?.clear();
    this.#fullCount = 0;
    return items.length === 0 ? [] : [{ versionId: "", items }];
  }

  #itemOf(record: LiveRecord, before: boolean): LiveItem | undefined {
    const after = this.#shows(record, this.#matches);
    if (after) return { kind: before ? "updated" : "added", part: record.part };
    return before ? { kind: "removed", id: record.id, reason: this.#reasonOf(record) } : undefined;
  }

  #reasonOf(record: LiveRecord): RemovalReason {
    if (record.doc === null) return "deleted";
    return this.#matches(record) ? "displaced" : "filtered-out";
  }

  #offer(record: LiveRecord): void {
    const { parsed } = this.#head && this.#matches(record) ? record : {};
    if (parsed) this.#head?.offer(toSortEntry(this.#query.sort, parsed));
  }

  /** Whether the window shows a record, by the rows held now; `matches` judges a record that is not held. */
  #shows(record: LiveRecord, matches: (record: LiveRecord) => boolean): boolean {
    const position = this.#head?.positionOf(record.id) ?? -1;
    return position >= 0 ? this.#showsPosition(position) : this.isUnbounded && matches(record);
  }

  #showsPosition(position: number): boolean {
    return position >= this.#query.offset && position < this.#query.offset + this.#query.limit;
  }

  #visibleCount(): number {
    const { limit, offset } = this.#query;
    return Math.max(0, Math.min(this.#head?.length ?? 0, offset + limit) - offset);
  }

  #noteFull(): void {
    if (this.isShort) return;
    this.#fullCount = this.#visibleCount();
    if (this.isFull) this.timesFull++;
  }

  #visibleIds(): string[] {
    const { filter, sort, offset } = this.#query;
    const head = this.#head;
    if (head && !this.isUnbounded)
      return Array.from({ length: this.#visibleCount() }, (_, at) => head.idAt(offset + at));
    const hidden = Math.min(offset, head?.length ?? 0);
    return this.#reader.now({ filter, sort, offset: hidden }).records.map((text) => this.#entryOf(text).id);
  }

  #readNow(request: QueryRequest, maxMs: number): QueryResult | undefined {
    try {
      return this.#reader.now(request, maxMs);
    } catch (error) {
      if (error instanceof ReadTooLong) return undefined;
      throw error;
    }
  }

  readonly #matches = (record: LiveRecord): boolean =>
    record.doc !== null && (!this.#match || (record.parsed !== undefined && this.#match(record.parsed)));

  readonly #matchedBefore = (record: LiveRecord): boolean =>
    record.before !== null && (!this.#match || (record.parsedBefore !== undefined && this.#match(record.parsedBefore)));

  readonly #entryOf = (text: string): SortEntry => toSortEntry(this.#query.sort, JSON.parse(text) as JsonObject);
}
