import { SPACES_RULES } from "../account/own-space/tech-datasets.ts";
import type { TechSpace } from "../account/own-space/tech-space.ts";
import type { Clock } from "../base/clock.ts";
import { versionOf } from "../change/codec/version.ts";
import type { Effect } from "../change/fold/apply-op.ts";
import type { TouchedRecord } from "../change/fold/commit-batch.ts";
import type { ChangeEngine } from "../change/space-engine.ts";
import { digestOfCid } from "../crypto/cid.ts";
import { svcError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import { parseFilter } from "../query/filter/filter-parse.ts";
import type { ReaderPool } from "../query/readers/reader-pool.ts";
import { runQuery } from "../query/run/run-query.ts";
import { parseSort } from "../query/value/sort.ts";
import { createOneSpaceEvents } from "../space/one-space-events.ts";
import type { AccountStore } from "../store/account-store.ts";
import { IN_MEMORY } from "../store/database/database.ts";
import { ROW_LIVE, ROW_TOMBSTONE } from "../store/rows/row-types.ts";
import { openSpaceStore } from "../store/space-store.ts";

const NO_CHANGE = new Uint8Array(0);

/**
 * The rows of spaces as callers query and watch them: rows that the account's devices share, and rows of spaces that wait for an
 * answer on this device alone. It is a copy in memory that is updated after every commit. It offers the part of an engine on
 * which queries and live windows work.
 */
export function createSpacesListing(deps: { tech: TechSpace; store: AccountStore; clock: Clock }) {
  const { tech, store } = deps;
  const shared = tech.space.engine;
  const listing = openSpaceStore(IN_MEMORY);
  const { rows } = listing;
  const collectionId = rows.collectionId(tech.index.no, listing.datasetNo(SPACES_RULES.name));
  const events = createOneSpaceEvents();

  /**
   * The row that only this device has and shows, unless the account has one by now. No change made it, so it counts as older than
   * all.
   */
  const pendingRow = (spaceId: string): string | null => {
    const text = store.shownPendingSpace(spaceId);
    if (text === undefined) return null;
    const version = versionOf(1, digestOfCid(spaceId)!);
    const row = { _ver: { id: version, "*": version }, ownRole: "none", ...(JSON.parse(text) as JsonObject) };
    return JSON.stringify(row);
  };

  /** Replaces one row; returns the former text. */
  const show = (spaceId: string, doc: string | null): string | null => {
    const known = rows.get(collectionId, spaceId);
    const before = known?.state === ROW_LIVE ? known.doc : null;
    if (before === doc) return before;
    const state = doc === null ? ROW_TOMBSTONE : ROW_LIVE;
    if (known) rows.update(known, doc, state, 0, NO_CHANGE, 0);
    else rows.insert(collectionId, spaceId, doc, state, 0, NO_CHANGE, 0);
    if ((before === null) !== (doc === null)) rows.addLive(collectionId, doc === null ? -1 : 1);
    listing.rowLog.forgetNoted();
    return before;
  };

  let versions = 0;
  /** Sorts after every version of a change; of this device's own rows the later one is the greater. */
  const localVersion = (): string => {
    const stamp = Buffer.alloc(8);
    stamp.writeBigUInt64BE(BigInt(++versions) + (BigInt(deps.clock.nowMs()) << 20n));
    return versionOf(Number.MAX_SAFE_INTEGER, stamp);
  };

  const notify = (touched: TouchedRecord[]): void => {
    if (touched.length > 0) events.emit("committed", { touched, objects: new Set(), localChanges: 0 });
  };

  const touchedRow = (spaceId: string, doc: string | null, of?: TouchedRecord): TouchedRecord[] => {
    const before = show(spaceId, doc);
    if (before === doc) return [];
    // The change explains how the row changed only if both states are the account's.
    const continues = of !== undefined && before !== null && before === of.before;
    const effects: Effect[] = continues
      ? of.effects
      : [{ type: "$set", path: [], payload: doc === null ? {} : (JSON.parse(doc) as JsonObject) }];
    return [
      {
        collectionId,
        object: tech.index.idText,
        dataset: SPACES_RULES.name,
        recordId: spaceId,
        versionId: of?.versionId ?? localVersion(),
        before,
        doc,
        effects,
        synced: of?.synced ?? false,
      },
    ];
  };

  for (const doc of shared.recordTexts(tech.index, SPACES_RULES.name))
    show((JSON.parse(doc) as { id: string }).id, doc);
  for (const text of store.pendingSpaces()) {
    const { id } = JSON.parse(text) as { id: string };
    if (!rows.get(collectionId, id)) show(id, pendingRow(id));
  }

  const stopShared = tech.space.events.on("committed", ({ touched }) => {
    const of = touched.filter(({ dataset }) => dataset === SPACES_RULES.name);
    notify(of.flatMap((one) => touchedRow(one.recordId, one.doc ?? pendingRow(one.recordId), one)));
  });
  const stopPending = store.onPending((spaceId) => {
    const row = shared.record(tech.index, SPACES_RULES.name, spaceId);
    notify(row ? [] : touchedRow(spaceId, pendingRow(spaceId)));
  });

  const engine: Pick<ChangeEngine, "object" | "collectionIdOf" | "isWriting"> = {
    object: (id) => shared.object(id),
    collectionIdOf: (object, dataset) =>
      object.no === tech.index.no && dataset === SPACES_RULES.name ? collectionId : undefined,
    isWriting: () => listing.db.inTransaction,
  };

  /**
   * Another thread cannot read this process's memory, and the listing is small, so reads that would go to another thread run
   * here.
   */
  const readers: Pick<ReaderPool, "run"> = {
    run: async (_path, job) => {
      if (job.kind !== "query") throw svcError("internal");
      const { source, limit, offset, includeTotal } = job;
      const request = { filter: parseFilter(job.filter), sort: parseSort(job.sort), limit, offset, includeTotal };
      return runQuery(listing.db, source, request) as never;
    },
  };

  return {
    engine,
    events,
    tables: listing,
    readers,
    close(): void {
      stopShared();
      stopPending();
      listing.close();
    },
  };
}
