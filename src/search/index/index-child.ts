/**
 * The process that owns the indexes of an account: it follows what is committed, a slice at a time, and answers searches in
 * between. It is a separate process because SQLite keeps a closed file open as long as another connection in the same process
 * holds it, and because a fault in its native code then ends only this process.
 */
import { existsSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { svcError } from "../../protocol/errors.ts";
import { isDamage } from "../../store/database/database.ts";
import { checkIndex } from "../../store/search/index-check.ts";
import { removeIndexFiles } from "../../store/search/index-store.ts";
import { SourceDamagedError } from "../../store/search/space-source.ts";
import { type ChildAnswer, failureOf, sendToParent } from "../child-process.ts";
import type { IndexAnswer, IndexFiles, IndexReport, IndexRequest } from "./index-protocol.ts";
import { indexTokens } from "./index-tokens.ts";
import type { SearchConfig } from "./search-config.ts";
import { openSpaceIndex, type SpaceIndex } from "./space-index.ts";

const SLICE_MS = 25;
/** How many indexes are open at once; each holds a handful of files. Other spaces wait, however many are behind. */
const MAX_OPEN = 16;
/** While more indexes than that are behind, each is worked on for this long before another takes its place. */
const TURN_MS = 500;
/** An index that nobody used for this long is closed; the space's database is closed as soon as there is nothing to do. */
const IDLE_MS = 20_000;
const LOG_REST_MS = 1_500;
const RETRY_MS = 5_000;
/** How often the progress of longer work is reported. */
const REPORT_MS = 300;
/** The pause between two steps of checking an index. */
const CHECK_REST_MS = 20;

interface OpenIndex {
  readonly index: SpaceIndex;
  usedAt: number;
  /** Something was written: the file's write-ahead log has to be emptied when there is time. */
  logDue: boolean;
}

/** An index that has to be brought in step with its space. */
interface Task {
  readonly files: IndexFiles;
  /** What is to be indexed, where the request changed it. */
  config: SearchConfig | undefined;
  /** How many entries and rows were left when this stretch of work began. */
  begunWith: number | undefined;
  reportedAt: number;
}

/** The open indexes by space; the one used last comes last. */
const open = new Map<string, OpenIndex>();
/** The waiting work by space, in its order. */
const queue = new Map<string, Task>();
/** The work that is being done. */
let current: Task | undefined;
let running = false;
let closed = false;

const send = (report: IndexReport | ChildAnswer): void => sendToParent(report);

function indexAt(files: IndexFiles): OpenIndex {
  const known = open.get(files.spaceId);
  if (known) {
    known.usedAt = performance.now();
    open.delete(files.spaceId);
    open.set(files.spaceId, known);
    return known;
  }
  makeRoom();
  const index = openSpaceIndex(files);
  if (index.reason !== undefined && index.reason !== "new")
    send({
      kind: "log",
      level: "warn",
      message: "the search index is made anew",
      fields: { spaceId: files.spaceId, reason: index.reason },
    });
  const one = { index, usedAt: performance.now(), logDue: false };
  open.set(files.spaceId, one);
  return one;
}

/**
 * Before another index is opened, closes those that have no work, and otherwise the one used longest ago, which is opened again
 * in its turn.
 */
function makeRoom(): void {
  for (const isWaited of [false, true])
    for (const [spaceId, one] of [...open]) {
      if (open.size < MAX_OPEN) return;
      if (isWaited || !queue.has(spaceId)) closeIndex(spaceId, one);
    }
}

/** Closes an index's files, even if its last writes fail. */
function closeIndex(spaceId: string, one: OpenIndex): void {
  open.delete(spaceId);
  try {
    one.index.close();
  } catch (error) {
    reportFault(one.index.files, error);
  }
}

function reportFault(files: IndexFiles, error: unknown): void {
  if (mendDamage(files, error)) return;
  send({
    kind: "log",
    level: "warn",
    message: "an index could not be put in order",
    fields: { spaceId: files.spaceId, err: describe(error) },
  });
}

/** Removes damaged files; they are made anew when they are next asked for. Nothing else removes an index because of an error. */
function mendDamage(files: IndexFiles, error: unknown): boolean {
  if (error instanceof SourceDamagedError || !isDamage(error)) return false;
  const one = open.get(files.spaceId);
  open.delete(files.spaceId);
  try {
    one?.index.close();
  } catch {
    // Closing a damaged index may fail; its files are removed either way.
  }
  removeIndexFiles(files.index);
  send({
    kind: "log",
    level: "warn",
    message: "the search index is damaged: it is made anew",
    fields: { spaceId: files.spaceId, err: describe(error) },
  });
  return true;
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function work(): Promise<void> {
  if (running) return;
  running = true;
  while (!closed) {
    const [task] = queue.values();
    if (!task) break;
    const { spaceId } = task.files;
    queue.delete(spaceId);
    current = task;
    const until = queue.size < MAX_OPEN ? 0 : performance.now() + TURN_MS;
    let isMore = step(task);
    await aTurn();
    while (isMore && !closed && current === task && performance.now() < until) {
      isMore = step(task);
      await aTurn();
    }
    // Goes to the end of the queue, so that others have their turn.
    if (isMore && current === task) enqueue(task.files, task.config, task);
    current = undefined;
  }
  running = false;
}

const aTurn = (): Promise<void> => new Promise((turn) => setImmediate(turn));

/** Puts an index into the queue; one that is already there keeps its place. */
function enqueue(files: IndexFiles, config: SearchConfig | undefined, begun?: Task): void {
  if (closed) return;
  const waiting = queue.get(files.spaceId);
  if (waiting) waiting.config = config ?? waiting.config;
  else queue.set(files.spaceId, begun ?? { files, config, begunWith: undefined, reportedAt: 0 });
  void work();
}

/** Does a slice of a space's work. Returns whether there is more. */
function step(task: Task): boolean {
  const { files } = task;
  // The space has left this device, and its index is about to be dropped.
  if (!existsSync(files.source)) return false;
  try {
    const one = indexAt(files);
    if (task.config) one.index.setConfig(task.config);
    task.config = undefined;
    if (task.begunWith === undefined) {
      task.begunWith = one.index.state().left;
      task.reportedAt = performance.now();
    }
    const isMore = one.index.step(SLICE_MS);
    one.logDue = true;
    one.usedAt = performance.now();
    if (!isMore || one.usedAt - task.reportedAt > REPORT_MS) report(one.index, task, !isMore);
    return isMore;
  } catch (error) {
    if (!mendDamage(files, error)) {
      if (!existsSync(files.source)) return false;
      send({
        kind: "log",
        level: "error",
        message: "indexing failed; it is tried again",
        fields: { spaceId: files.spaceId, err: describe(error) },
      });
    }
    setTimeout(() => {
      if (existsSync(files.source)) enqueue(files, task.config);
    }, RETRY_MS);
    return false;
  }
}

function report(index: SpaceIndex, task: Task, over: boolean): void {
  task.reportedAt = performance.now();
  const { spaceId } = index.files;
  const { left } = index.state();
  send({ kind: "followed", spaceId, cursor: index.cursor() });
  const total = Math.max(task.begunWith ?? 0, left);
  send({ kind: "progress", spaceId, done: total - left, total, over, lacksVectors: index.lacksVectors() });
}

/** Closes the files of idle indexes, and removes deleted content from the files of the others. */
function rest(): void {
  const now = performance.now();
  for (const [spaceId, one] of [...open]) {
    if (queue.has(spaceId) || current?.files.spaceId === spaceId) continue;
    const idleMs = now - one.usedAt;
    try {
      if (one.logDue && idleMs > LOG_REST_MS) {
        one.logDue = !one.index.dropDeleted();
        if (!one.logDue) one.index.releaseSource();
      }
    } catch (error) {
      reportFault(one.index.files, error);
    }
    if (idleMs > IDLE_MS && open.get(spaceId) === one) closeIndex(spaceId, one);
  }
}

/** What is answered at once; a check and a search take more than one turn. */
type BriefRequest = Exclude<IndexRequest, { kind: "check" | "search" }>;
type SearchRequest = Extract<IndexRequest, { kind: "search" }>;

function answer(request: BriefRequest): unknown {
  const { files } = request;
  switch (request.kind) {
    case "follow":
      enqueue(files, request.config);
      return true;
    case "isCurrent": {
      if (!open.has(files.spaceId) && !existsSync(files.index)) return { isCurrent: false, lacksVectors: false };
      const { index } = indexAt(files);
      const isCurrent = index.reason === undefined && index.state().left === 0;
      index.releaseSource();
      return { isCurrent, lacksVectors: index.lacksVectors() };
    }
    case "pending": {
      const { index } = indexToWrite(files);
      const { table, unsupported } = index.vectors(request.side);
      if (!table) return { texts: [], left: 0, unsupported };
      return { texts: table.pending(request.limit), left: table.pendingCount() };
    }
    case "keep": {
      const { table } = indexToWrite(files).index.vectors(request.side);
      table?.keep(request.texts);
      return table?.pendingCount() ?? 0;
    }
    case "fault":
      return indexToWrite(files).index.vectors(request.side).table?.noteFault(request.hash) ?? 0;
    case "drop": {
      const one = open.get(files.spaceId);
      queue.delete(files.spaceId);
      if (current?.files.spaceId === files.spaceId) current = undefined;
      if (one) closeIndex(files.spaceId, one);
      removeIndexFiles(files.index);
      return true;
    }
  }
}

/** Returns an index that is about to be written to. */
function indexToWrite(files: IndexFiles): OpenIndex {
  const one = indexAt(files);
  one.logDue = true;
  return one;
}

/**
 * Answers a search. What may be due before one (an index or its vectors made anew) counts for nobody's deadline, so the server is
 * told when that is done; the message leaves before the search keeps this process from sending anything (SEARCH-7).
 */
async function search(request: SearchRequest): Promise<IndexAnswer> {
  const { files, side } = request;
  mending(files, () => {
    const { index } = indexToWrite(files);
    if (side) index.vectors(side);
  });
  send({ kind: "searching", spaceId: files.spaceId });
  await aTurn();
  return mending(files, () => {
    const answered = indexToWrite(files).index.search(request.query, side, request.config);
    if (answered.incomplete) enqueue(files, request.config);
    return answered;
  });
}

/** Does something with an index; if that is damaged, makes it anew and does it once more. */
function mending<T>(files: IndexFiles, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!mendDamage(files, error)) throw error;
    return work();
  }
}

/** Checks a whole index while other work goes on, and makes it anew if it is damaged. Returns whether it was. */
async function check({ files }: IndexRequest): Promise<boolean> {
  if (!existsSync(files.index)) return false;
  const begun = checkIndex(files.index, indexTokens);
  try {
    // Each step is short, and waiting requests go first.
    for (; !closed && !begun.next().done; ) await new Promise((turn) => setTimeout(turn, CHECK_REST_MS));
    return false;
  } catch (error) {
    if (mendDamage(files, error)) return true;
    throw error;
  } finally {
    begun.return();
    const one = open.get(files.spaceId);
    if (one) one.logDue = true; // the log could not be emptied of what was written meanwhile
  }
}

/**
 * Owns the indexes of the server that started this process, until the server's end of the channel closes. Resolves with the exit
 * code.
 */
export function runIndexChild(): Promise<number> {
  // Indexing must not take processor time from requests; a search is short.
  setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
  const { promise, resolve } = Promise.withResolvers<number>();
  const resting = setInterval(rest, 500);
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  process.on("message", (request: IndexRequest & { id?: number }) => {
    const { id } = request;
    const reply = (result: unknown): void => {
      if (id !== undefined) sendToParent({ kind: "reply", id, result });
    };
    const fail = (error: unknown): void => {
      // Nobody waits for a request without an id, so its failure is not answered but thrown.
      if (id === undefined) throw error;
      const isGone = request.kind !== "check" && !existsSync(request.files.source);
      sendToParent(failureOf(id, isGone ? svcError("server.unavailable") : error));
    };
    if (request.kind === "check") return void check(request).then(reply).catch(fail);
    if (request.kind === "search") return void search(request).then(reply).catch(fail);
    try {
      reply(mending(request.files, () => answer(request)));
    } catch (error) {
      fail(error);
    }
  });
  process.on("disconnect", () => {
    closed = true;
    clearInterval(resting);
    for (const [spaceId, one] of [...open]) closeIndex(spaceId, one);
    resolve(0);
  });
  return promise;
}
