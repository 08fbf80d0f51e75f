/**
 * The live windows of one space (LIVE-2). After each commit every touched record is offered to the windows of its collection that
 * it may concern; the changes of a window are coalesced until its subscribers take them.
 *
 * Windows are brought up to date after the writers of a commit were answered, and before anything reads the store for them;
 * commits in between count as one. A snapshot and its registration happen in one turn of the event loop, so nothing is missed or
 * given twice. A write costs one look at each path that guards windows of its collection, plus the windows found.
 */
import type { Log } from "../../base/log.ts";
import { createLoopBudget } from "../../base/loop-budget.ts";
import type { CommitBatch, TouchedRecord } from "../../change/fold/commit-batch.ts";
import { DELETIONS_DATASET } from "../../change/fold/deletion-log.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import { svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import type { ReaderPool } from "../../query/readers/reader-pool.ts";
import type { OneSpaceEvents } from "../../space/one-space-events.ts";
import { OBJECTS_COLLECTION } from "../../store/rows/row-table.ts";
import type { Member } from "./audience.ts";
import {
  type CollectionReader,
  type CollectionTables,
  createCollectionReader,
  ReadTooLong,
} from "./collection-reader.ts";
import type { LiveEntry } from "./live-entry.ts";
import { groupTouched } from "./live-record.ts";
import {
  type LiveBody,
  type LiveCollection,
  type LiveEnd,
  type LiveRequest,
  type LiveSink,
  type LiveSnapshot,
  type LiveSubscription,
  parseLiveBody,
} from "./live-request.ts";
import { DEFAULT_RESERVE, MatchTooLong, type Reserve, type WindowStep } from "./live-window.ts";
import {
  collectionKey,
  createWatchedCollection,
  dropWindow,
  recordsByWindow,
  touchedKey,
  type WatchedCollection,
  type WatchedWindow,
  windowOf,
} from "./watched-collection.ts";
import { createWholeWindows } from "./whole-window.ts";
import { createRefills } from "./window-refill.ts";
import { createSnapshots } from "./window-snapshot.ts";

/** How long windows may read the store on the server's event loop before a reader takes over. */
export interface ReadTimes {
  /** For one window. */
  readonly windowMs: number;
  /** For all windows that one commit has made short. */
  readonly commitMs: number;
  /** For all windows that are asked for together; those that find it spent wait for the next turn of the loop. */
  readonly turnMs: number;
}

const READ_TIMES: ReadTimes = { windowMs: 10, commitMs: 20, turnMs: 10 };
export interface LiveQueriesDeps {
  readonly engine: Pick<ChangeEngine, "object" | "collectionIdOf" | "isWriting">;
  readonly tables: CollectionTables;
  readonly events: OneSpaceEvents;
  readonly readers: Pick<ReaderPool, "run">;
  readonly log: Log;
  /** Which paths of a dataset are declared datetimes; none are by default. */
  readonly declaredKind?: (dataset: string, path: string) => "datetime" | undefined;
  readonly readTimes?: ReadTimes;
  readonly reserve?: Reserve;
  /** Runs a function after the writers of a commit were answered. */
  readonly soon?: (run: () => void) => void;
}

export interface LiveQueries {
  /** How many subscriptions are open or opening. A space with any is not idle. */
  readonly size: number;
  /**
   * Reads a window and watches it from that version on. The caller must close the subscription, unless its sink was notified that
   * it ended.
   * @throws SvcError the faults of `parseLiveBody`, object.not_found for an unknown or deleted object, server.unavailable when
   *   the space is closed
   */
  subscribe(
    collection: LiveCollection,
    body: LiveBody,
    sink: LiveSink,
  ): Promise<{ snapshot: LiveSnapshot; subscription: LiveSubscription }>;
  /** Ends every subscription with `sdk_closed`. */
  close(): void;
}

/** Live windows over an open space. */
export function createLiveQueries(deps: LiveQueriesDeps): LiveQueries {
  const { engine, readers, log, readTimes = READ_TIMES, reserve = DEFAULT_RESERVE } = deps;
  const { soon = setImmediate, declaredKind = () => undefined } = deps;
  const collectionByKey = new Map<string, WatchedCollection>();
  /** What commits have changed since windows were last brought up to date. */
  let touched: TouchedRecord[] = [];
  let scheduled = false;
  let informed: Member[] = [];
  let size = 0;
  let closed = false;
  const snapshots = createSnapshots();
  const refills = createRefills({ maxMs: readTimes.windowMs, finish, inform, failed: endFailed });
  const budget = createLoopBudget(readTimes.turnMs);
  const whenWhole = createWholeWindows({ readMs: readTimes.windowMs, open, drop, refills, snapshots, budget });

  const stopListening = deps.events.on("committed", onCommit);

  function onCommit(batch: CommitBatch): void {
    if (collectionByKey.size === 0) return;
    for (const one of batch.touched) touched.push(one);
    if (scheduled) return;
    scheduled = true;
    soon(() => {
      scheduled = false;
      catchUp();
    });
  }

  /** Brings every window to the version of the store. Code that reads the store for a window calls this first. */
  function catchUp(): void {
    if (touched.length === 0) return;
    const news = touched;
    touched = [];
    const byCollection = groupTouched(news, (one) => collectionByKey.get(touchedKey(one)));
    let msLeft = readTimes.commitMs;
    for (const [collection, records] of byCollection) {
      if (collection.deleted && isObjectGone(collection.id)) continue;
      collection.deleted = false;
      for (const [watched, concerned] of recordsByWindow(collection, records.values())) {
        guarded(watched, () => {
          const step = watched.window.begin(concerned);
          msLeft -= refills.within(watched, step, Math.min(msLeft, readTimes.windowMs));
          finish(watched, step);
          endDrifted(watched);
        });
      }
    }
    for (const { dataset, doc, recordId } of news)
      if (dataset === DELETIONS_DATASET && doc !== null) deleteCollectionsOf(recordId);
    inform();
  }

  function finish(watched: WatchedWindow, step: WindowStep): void {
    if (watched.audience.size > 0) publish(watched, watched.window.finish(step));
  }

  function publish(watched: WatchedWindow, entries: readonly LiveEntry[]): void {
    if (entries.length === 0) return;
    const published = watched.audience.publish(entries);
    for (const member of published.informed) informed.push(member);
    for (const member of published.overflowed) end(watched, member, "overflow");
  }

  function inform(): void {
    const members = informed;
    informed = [];
    for (const member of members) if (!member.left) member.sink.changed();
  }

  function endDrifted(watched: WatchedWindow): void {
    const { window } = watched;
    if (window.missingPercent(true) === 0) return;
    for (const member of [...watched.audience.members]) {
      const missing = window.missingPercent(window.timesFull > member.timesFullBefore);
      if (missing > member.driftBudgetPercent) end(watched, member, "drifted");
    }
  }

  function deleteCollectionsOf(objectId: string): void {
    if (!engine.object(objectId)?.deleted) return;
    for (const collection of collectionByKey.values()) {
      if (collection.id === "objects" || collection.id.objectId !== objectId || collection.deleted) continue;
      collection.deleted = true;
      for (const watched of [...collection.windowByKey.values()])
        guarded(watched, () => publish(watched, watched.window.deleteAll()));
    }
  }

  /** Ends a window that cannot go on for its subscribers; the commit and the other windows are not affected. */
  function guarded(watched: WatchedWindow, run: () => void): void {
    try {
      run();
    } catch (error) {
      endFailed(watched, error);
    }
  }

  function endFailed(watched: WatchedWindow, error: unknown): void {
    const isTooLong = error instanceof MatchTooLong || error instanceof ReadTooLong;
    if (!closed && !isTooLong)
      log.error("a live window failed", { err: error, collection: collectionKey(watched.collection.id) });
    for (const member of [...watched.audience.members]) end(watched, member, isTooLong ? "drifted" : "sdk_closed");
    drop(watched);
  }

  function end(watched: WatchedWindow, member: Member, reason: LiveEnd): void {
    // A window that drifted sends its last changes before its end; an overflowing mailbox drops what it holds.
    const last = reason === "drifted" ? watched.audience.take(member) : undefined;
    leave(watched, member);
    member.sink.ended(reason, last);
  }

  function leave(watched: WatchedWindow, member: Member): void {
    if (member.left) return;
    member.left = true;
    size--;
    watched.audience.leave(member);
    if (watched.audience.size === 0) drop(watched);
  }

  function drop(watched: WatchedWindow): void {
    const { collection } = watched;
    dropWindow(watched);
    snapshots.forget(watched);
    const key = collectionKey(collection.id);
    if (collection.windowByKey.size === 0 && collectionByKey.get(key) === collection) collectionByKey.delete(key);
  }

  /** Returns the window of a request, which is watched from now on. */
  function open(request: LiveRequest): WatchedWindow {
    const id = request.collection;
    if (closed) throw svcError("server.unavailable");
    catchUp();
    if (id !== "objects" && isObjectGone(id)) throw svcError("object.not_found", { objectId: id.objectId });
    const key = collectionKey(id);
    const collection = collectionByKey.get(key) ?? createWatchedCollection(id, readerOf(id), reserve);
    collectionByKey.set(key, collection);
    return windowOf(collection, request);
  }

  function isObjectGone(id: LiveCollection): boolean {
    return id !== "objects" && (engine.object(id.objectId)?.deleted ?? true);
  }

  function readerOf(id: LiveCollection) {
    let collectionId: number | undefined;
    const reader = createCollectionReader(deps.tables, readers, () => {
      collectionId ??= collectionIdIn(id);
      return collectionId;
    });
    const aside: CollectionReader["aside"] = async (...args) => {
      const result = await reader.aside(...args);
      catchUp();
      return result;
    };
    return { ...reader, aside };
  }

  /** Returns the number of a collection once something was written there; it never changes then. */
  function collectionIdIn(id: LiveCollection): number | undefined {
    if (id === "objects") return OBJECTS_COLLECTION;
    const object = engine.object(id.objectId);
    return object && engine.collectionIdOf(object, id.dataset);
  }

  return {
    get size() {
      return size;
    },

    async subscribe(collection, body, sink) {
      const request = parseLiveBody(collection, body, declaredKind);
      if (engine.isWriting()) throw new Error("a subscription cannot begin within a write");
      const member: Member = {
        sink,
        capacity: body.mailboxCapacity ?? LIMITS.mailboxCapacityDefault,
        driftBudgetPercent: body.driftBudgetPercent ?? LIMITS.driftBudgetPercentDefault,
        timesFullBefore: 0,
        left: false,
      };
      size++;
      try {
        return await whenWhole(request, body.includeTotal === true, (watched, snapshot) => {
          const { timesFull, isFull } = watched.window;
          member.timesFullBefore = isFull ? timesFull - 1 : timesFull;
          watched.audience.join(member);
          const subscription: LiveSubscription = {
            take() {
              catchUp();
              return watched.audience.take(member);
            },
            close: () => leave(watched, member),
          };
          return { snapshot, subscription };
        });
      } catch (error) {
        size--;
        throw error;
      }
    },

    close() {
      closed = true;
      stopListening();
      for (const collection of [...collectionByKey.values()])
        for (const watched of [...collection.windowByKey.values()]) {
          for (const member of [...watched.audience.members]) end(watched, member, "sdk_closed");
          drop(watched);
        }
    },
  };
}
