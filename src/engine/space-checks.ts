import { equalBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { CHECK_BEGIN, type CheckCursor, POINTERS_BEFORE } from "../change/check/space-check.ts";
import { sha256 } from "../crypto/hash.ts";
import type { ReaderPool } from "../query/readers/reader-pool.ts";
import type { Space } from "../space/space.ts";
import type { AccountStore } from "../store/account-store.ts";
import type { RepairLog } from "./repair-log.ts";

/**
 * How long one slice of checking takes, and how many times longer the pause after it is: together a tenth of a processor at most.
 */
const SLICE_MS = 2;
const REST_TIMES = 9;
const LEAST_REST_MS = 10;
/** How often the service looks whether a space is due, and how often the progress of a pass is stored. */
const LOOK_MS = 60 * 60 * 1000;
const NOTE_MS = 10_000;
/** The key of the place from which an unfinished pass over a space continues. */
const CURSOR_KEY = "check";

interface SpaceChecksDeps {
  /** How many milliseconds after its last pass a space is checked again. */
  everyMs: number;
  /** The spaces that are kept here. */
  ids(): SpaceId[];
  /** Runs something over a space that stays open meanwhile. */
  use(spaceId: SpaceId, run: (space: Space) => Promise<void>): Promise<void>;
  /** Checks the search index of a space. */
  checkIndex(spaceId: SpaceId): Promise<void>;
  account: Pick<AccountStore, "checkedMs" | "setCheckedMs" | "mend">;
  readers: Pick<ReaderPool, "run">;
  repairs: Pick<RepairLog, "note">;
  clock: Clock;
  log: Log;
}

/**
 * Checks what is stored of each space, slowly and from time to time, so that damage is found while other replicas still have the
 * original, whether or not anybody reads it. Data that follows from other data is made anew; the log names the rest.
 */
export function createSpaceChecks(deps: SpaceChecksDeps): Service {
  const { everyMs, account, readers, repairs, clock, log } = deps;
  let stopped = false;
  const isStopped = (): boolean => stopped;
  /** Ends the current pause. */
  let wake = (): void => {};
  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (isStopped()) return resolve();
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(end, ms);
      wake = end;
    });
  let running = Promise.resolve();

  const pass = async (): Promise<void> => {
    await account.mend();
    for (const spaceId of deps.ids()) {
      if (isStopped()) return;
      const checkedMs = account.checkedMs(spaceId);
      // One that is met for the first time was just made, or fetched: nothing of it has lain on the disk for long.
      if (checkedMs === 0) account.setCheckedMs(spaceId, clock.nowMs());
      if (checkedMs === 0 || clock.nowMs() - checkedMs < everyMs) continue;
      try {
        await deps.use(spaceId, (space) => checkSpace(space));
        await deps.checkIndex(spaceId);
      } catch (err) {
        log.error("what is stored of a space could not be gone over", { spaceId, err });
      }
      if (!isStopped()) account.setCheckedMs(spaceId, clock.nowMs());
    }
  };

  const checkSpace = async (space: Space): Promise<void> => {
    await checkTypes(space);
    mendRecords(space);
    // What is set right below is found by indexes, and changes their entries.
    const left = await checkTables(space, space.store.tables());
    await checkRows(space);
    for (const table of await checkTables(space, left))
      repairs.note(space.id, "space.database", { table, path: space.store.path });
    await checkCounts(space);
  };

  /** Finds values of another type than their columns. */
  const checkTypes = async ({ engine, store }: Space): Promise<void> => {
    const { path, mistypedTables } = store;
    if (isStopped() || engine.closing()) return;
    const [found] = await readers.run(path, { kind: "search", statements: [mistypedTables()] });
    if (found!.length > 0 && !engine.closing()) await engine.mendTypes();
  };

  /** Finds rows that point to nothing, sums that are wrong, and copies that differ. */
  const checkPointers = async ({ engine, store }: Space): Promise<void> => {
    const { path, derived, keptDifferences } = store;
    if (isStopped() || engine.closing()) return;
    const found = await readers.run(path, { kind: "search", statements: derived.searches });
    if (derived.isFound(found) && !engine.closing()) await engine.mendFound(found);
    const differing = await readers.run(path, { kind: "search", statements: keptDifferences });
    if (differing.some((rows) => rows.length > 0) && !engine.closing()) await engine.mendKept();
  };

  /** Repairs damaged ACL records from the log that is held in memory. */
  const mendRecords = ({ id, acl, store }: Space): void => {
    const held = acl.records();
    for (const stored of store.aclRecords()) {
      const record = held[stored.pos];
      if (!record || (equalBytes(stored.id, record.id) && equalBytes(sha256(stored.bytes), record.id))) continue;
      store.mendAclRecord(stored.pos, record.id, record.bytes);
      repairs.note(id, "acl.record", { position: stored.pos });
    }
  };

  /** Checks changes and what follows from them, a slice at a time. */
  const checkRows = async (space: Space): Promise<void> => {
    const { engine, store } = space;
    let notedMs = performance.now();
    let cursor: CheckCursor | undefined = cursorIn(store.meta(CURSOR_KEY));
    while (cursor && !isStopped() && !engine.closing()) {
      const begun = performance.now();
      const { part }: CheckCursor = cursor;
      while (cursor && performance.now() - begun < SLICE_MS && cursor.part === part) cursor = engine.check(cursor);
      if (cursor?.part === POINTERS_BEFORE && cursor.part !== part) await checkPointers(space);
      if (cursor && begun - notedMs > NOTE_MS) {
        notedMs = begun;
        await note(space, cursor);
      }
      await rest(Math.max(LEAST_REST_MS, (performance.now() - begun) * REST_TIMES));
    }
    if (!engine.closing()) await note(space, cursor);
  };

  const note = ({ engine, store }: Space, cursor: CheckCursor | undefined): Promise<void> =>
    engine.background(() =>
      cursor ? store.putMeta(CURSOR_KEY, Buffer.from(JSON.stringify(cursor))) : store.dropMeta(CURSOR_KEY),
    );

  /** Checks SQLite's own structure of tables. Answers those that are to be looked at again once their rows are right. */
  const checkTables = async (space: Space, tables: readonly string[]): Promise<string[]> => {
    const again: string[] = [];
    for (const table of tables) {
      if (isStopped() || space.engine.closing()) return [];
      if ((await checkTable(space, table)) === "again") again.push(table);
    }
    return again;
  };

  const checkTable = async ({ id, engine, store }: Space, table: string): Promise<"again" | undefined> => {
    const look = () => readers.run(store.path, { kind: "tableCheck", table });
    const faults = await look();
    if (faults.length === 0 || engine.closing()) return undefined;
    if ((await store.reindex(table)) === "twins") return "again";
    const left = await look();
    if (left.length === 0)
      repairs.note(id, "space.indexes", {
        table,
        faults,
      });
    else repairs.note(id, "space.database", { table, faults: left, path: store.path });
    return undefined;
  };

  const checkCounts = async ({ id, engine, store }: Space): Promise<void> => {
    if (isStopped() || engine.closing()) return;
    const { collections, indexes } = await readers.run(store.path, { kind: "countCheck" });
    if (collections.length + indexes.length === 0 || engine.closing()) return;
    await engine.background(() => {
      for (const no of collections) store.rows.recount(no);
      for (const no of indexes) {
        const index = store.queryIndexes.byNo(no);
        if (index) store.queryIndexes.retire(index);
      }
    });
    repairs.note(id, "space.counts", {
      collections,
      indexes,
    });
  };

  return {
    name: "space checks",
    start() {
      running = (async () => {
        for (; !isStopped(); await rest(Math.min(everyMs, LOOK_MS))) await pass();
      })().catch((err: unknown) => log.error("going over what is stored failed", { err }));
    },
    async stop() {
      stopped = true;
      wake();
      await running;
    },
  };
}

function cursorIn(note: Uint8Array | undefined): CheckCursor {
  if (!note) return CHECK_BEGIN;
  const { part, after } = JSON.parse(Buffer.from(note).toString()) as CheckCursor;
  return { part, after };
}
