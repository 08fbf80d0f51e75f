import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { svcError } from "../../protocol/errors.ts";
import {
  DEFAULT_DATA_CHARS,
  DEFAULT_HITS,
  SEARCH_MODES,
  type SearchBody,
  type SearchMode,
  type SearchReply,
} from "../../protocol/search.ts";
import { ChildLost, createChildClient } from "../../search/child-process.ts";
import {
  INDEX_CHILD,
  type IndexAnswer,
  type IndexFiles,
  type IndexReport,
  type IndexRequest,
  type IndexState,
  type VectorSide,
} from "../../search/index/index-protocol.ts";
import { isScope, readSearchConfig } from "../../search/index/search-config.ts";
import type { PackedVector } from "../../store/search/vector-table.ts";
import type { LongWork, StartLongWork } from "../process/port.ts";
import { createDueSpaces } from "./due-spaces.ts";
import { createEmbedLoop } from "./embed-loop.ts";
import type { Embedder } from "./embedder.ts";
import type { SearchableSpace } from "./port.ts";
import { createSearchTurns } from "./search-turns.ts";

/** Indexes are looked at so long after a start of the server, when what people wait for is done. */
const LOOK_AROUND_MS = 3_000;
/** The process that indexes ends after so long without work: it takes memory of its own. */
const CHILD_IDLE_MS = 30_000;
/** A longer query is searched by words alone: people wait for it, and a single vector would have to stand for it. */
const MOST_MEANT = 1_000;
/** How often a request is asked again whose process was lost. */
const MOST_LOSSES = 4;
/** The log of rows is shortened when so much of it was followed. */
const TRIM_FROM = 5_000;

export interface SearchDeps {
  readonly enabled: boolean;
  /** Where indexes lie: a file a space. */
  readonly directory: string;
  /** The database of a space. */
  databaseOf(spaceId: SpaceId): string;
  /** An active space, opened; fails with the space resolution errors. */
  open(spaceId: SpaceId): Promise<SearchableSpace>;
  activeIds(): SpaceId[];
  /** Makes what embeds texts; undefined where nothing does. */
  embedder(): Embedder | undefined;
  /** Where native libraries are put. */
  readonly nativeDir: string;
  /** Why this machine cannot search vectors, which is logged; undefined where it can. */
  whyNoVectors(): string | undefined;
  readonly startLongWork: StartLongWork;
  readonly log: Log;
}

/** Finds content of spaces. Indexing goes on behind the requests, in a process of its own. */
export interface SearchService extends Service {
  search(spaceId: SpaceId, body: SearchBody): Promise<SearchReply>;
  /** Goes over all of a space's index; one that is damaged is made anew. */
  check(spaceId: SpaceId): Promise<void>;
  /** So many records of a space were changed. */
  committed(spaceId: SpaceId, records: number): void;
  /** A space has left this device: so does its index. */
  ended(spaceId: SpaceId): void;
}

interface Meaning {
  readonly status: "used" | "unavailable" | "disabled";
  readonly vector?: PackedVector;
  readonly side?: VectorSide;
}

export function createSearchService(deps: SearchDeps): SearchService {
  const { enabled, log } = deps;
  const works = new Map<string, LongWork>();
  /** Up to where the log of a space was shortened. */
  const trimmed = new Map<string, number>();
  /** Spaces whose indexes are not known to be in step. */
  const busy = new Set<SpaceId>();
  let stopped = false;
  const due = createDueSpaces((spaceId) => void follow(spaceId));
  const child = createChildClient<IndexRequest, IndexReport>({
    mode: INDEX_CHILD,
    log,
    idleMs: CHILD_IDLE_MS,
    onReport,
    onLost: () => {
      for (const spaceId of busy) due.soon(spaceId);
    },
  });
  const turns = createSearchTurns({
    ask: (request) => child.ask(request),
    kill: () => child.kill(),
    isStopped: () => stopped,
    log,
  });
  const embedder = enabled ? deps.embedder() : undefined;
  /** Why this machine cannot search vectors. */
  let unsupported: string | undefined;
  const noteUnsupported = (reason: string): void => {
    if (unsupported === undefined)
      log.warn("vectors cannot be searched on this machine; full-text search goes on without them", { reason });
    unsupported = reason;
  };
  const embedding = embedder
    ? createEmbedLoop({
        embedder,
        nativeDir: deps.nativeDir,
        filesOf,
        ask: (request) => child.ask(request),
        onUnsupported: noteUnsupported,
        startLongWork: deps.startLongWork,
        log,
      })
    : undefined;
  if (enabled) mkdirSync(deps.directory, { recursive: true, mode: 0o700 });

  function filesOf(spaceId: SpaceId): IndexFiles {
    return { spaceId, source: deps.databaseOf(spaceId), index: join(deps.directory, `${spaceId}.db`) };
  }

  function onReport(report: IndexReport): void {
    if (report.kind === "progress") showProgress(report);
    else if (report.kind === "searching") turns.begun(report.spaceId);
    else void trim(report.spaceId as SpaceId, report.cursor);
  }

  function showProgress({
    spaceId,
    done,
    total,
    over,
    lacksVectors,
  }: Extract<IndexReport, { kind: "progress" }>): void {
    let work = works.get(spaceId);
    if (!work && !over) {
      work = deps.startLongWork({ kind: "index.fts", title: "Indexing text", target: spaceId });
      works.set(spaceId, work);
    }
    work?.progress(done, total);
    if (!over) return;
    busy.delete(spaceId as SpaceId);
    if (lacksVectors) embedding?.wake(spaceId as SpaceId);
    work?.end();
    works.delete(spaceId);
  }

  /** Runs work in the background: a failure is logged, and the work is tried again with the next commit. */
  const behind = (spaceId: SpaceId, work: () => Promise<unknown>): Promise<void> =>
    work().then(
      () => undefined,
      (error: unknown) => {
        const isGone = error instanceof Error && "code" in error && String(error.code).startsWith("space.");
        if (!stopped && !isGone) log.error("indexing failed", { err: error, spaceId });
      },
    );

  const trim = (spaceId: SpaceId, before: number): Promise<void> => {
    if (before - (trimmed.get(spaceId) ?? 0) < TRIM_FROM || stopped) return Promise.resolve();
    trimmed.set(spaceId, before);
    return behind(spaceId, async () => {
      const space = await deps.open(spaceId);
      while (!stopped && (await space.trimLog(before, TRIM_FROM)) > 0);
    });
  };

  function follow(spaceId: SpaceId): Promise<void> {
    return behind(spaceId, async () => {
      const space = await deps.open(spaceId);
      if (stopped) return;
      busy.add(spaceId);
      if (enabled) child.send({ kind: "follow", files: filesOf(spaceId), config: readSearchConfig(space.types) });
      else await trim(spaceId, space.logHead());
    });
  }

  /** Asks what may be asked more than once: a search that is ended takes the process away from others (SEARCH-7). */
  const askAgain = async <T>(request: IndexRequest): Promise<T> => {
    for (let losses = 0; ; losses++)
      try {
        return await child.ask<T>(request);
      } catch (error) {
        if (!(error instanceof ChildLost) || stopped || losses === MOST_LOSSES) throw error;
      }
  };

  /** Removes files of spaces that are no longer here, left from before a crash. */
  const dropStrangers = async (active: ReadonlySet<string>): Promise<void> => {
    for (const name of readdirSync(deps.directory)) {
      const spaceId = name.endsWith(".db") ? name.slice(0, -3) : undefined;
      if (spaceId === undefined || active.has(spaceId) || stopped) continue;
      await askAgain({ kind: "drop", files: filesOf(spaceId as SpaceId) });
    }
  };

  let lookTimer: ReturnType<typeof setTimeout> | undefined;
  let looking: Promise<void> | undefined;
  /** After a start: whether each index is in step with its space. */
  const lookAround = async (ids: readonly SpaceId[]): Promise<void> => {
    await dropStrangers(new Set(ids));
    for (const spaceId of ids) {
      if (stopped) return;
      await behind(spaceId, async () => {
        const state = await askAgain<IndexState>({ kind: "isCurrent", files: filesOf(spaceId) });
        if (!state.isCurrent) await follow(spaceId);
        else if (state.lacksVectors) embedding?.wake(spaceId);
      });
    }
  };

  /** The query as a vector. In mode vector there has to be one; hybrid goes on without. */
  const meaningOf = async (query: string, mode: SearchMode): Promise<Meaning> => {
    const state = embedder?.state() ?? "absent";
    if (state === "absent") {
      if (mode === "vector") throw svcError("index.no_embedder");
      return { status: "disabled" };
    }
    try {
      if (state !== "ready" || unsupported !== undefined) throw new Error(unsupported ?? "the embedder is not ready");
      const { model, vectors } = await embedder!.embed([query.slice(0, MOST_MEANT)], "query");
      const vector = vectors[0]?.[0];
      if (!vector) throw new Error("the query has no vector");
      return { status: "used", vector, side: embedding!.sideOf(model) };
    } catch (error) {
      log.debug("a query could not be embedded", { err: error });
      if (mode === "vector") throw svcError("index.embedder_unavailable");
      return { status: "unavailable" };
    }
  };

  return {
    name: "search",
    async start() {
      if (!enabled) return;
      await embedder?.start();
      // With many spaces this takes long: nothing else waits for it.
      lookTimer = setTimeout(() => {
        unsupported ??= deps.whyNoVectors();
        looking = lookAround(deps.activeIds()).catch((error: unknown) => {
          if (!stopped) log.error("looking for indexes failed", { err: error });
        });
      }, LOOK_AROUND_MS);
      lookTimer.unref();
    },
    async stop() {
      stopped = true;
      clearTimeout(lookTimer);
      due.close();
      for (const work of works.values()) work.end();
      const embedded = embedding?.close();
      await embedder?.stop();
      await embedded;
      await child.close();
      await looking;
    },
    async check(spaceId) {
      if (!enabled || stopped || !deps.activeIds().includes(spaceId)) return;
      const isMadeAnew = await askAgain<boolean>({ kind: "check", files: filesOf(spaceId) });
      if (isMadeAnew) await follow(spaceId);
    },
    committed: (spaceId, records) => due.committed(spaceId, records, child.pid !== undefined),
    ended(spaceId) {
      due.forget(spaceId);
      trimmed.delete(spaceId);
      embedding?.forget(spaceId);
      const files = filesOf(spaceId);
      if (!enabled || stopped || (child.pid === undefined && !existsSync(files.index))) return;
      void behind(spaceId, () => askAgain({ kind: "drop", files }));
    },
    async search(spaceId, body) {
      const mode = modeOf(body.mode);
      const bad = body.scopes?.find((scope) => !isScope(scope));
      if (bad !== undefined) throw svcError("search.bad_scope", { scope: bad });
      const space = await deps.open(spaceId);
      if (!enabled) throw svcError("index.disabled");
      const meaning = mode === "fts" ? undefined : await meaningOf(body.query, mode);
      const request: Extract<IndexRequest, { kind: "search" }> = {
        kind: "search",
        files: filesOf(spaceId),
        config: readSearchConfig(space.types),
        query: {
          query: body.query,
          limit: body.limit ?? DEFAULT_HITS,
          maxData: body.maxData ?? DEFAULT_DATA_CHARS,
          mode: meaning?.side ? mode : "fts",
          vector: meaning?.vector,
          scopes: body.scopes,
          objectId: body.objectId,
          dataset: body.dataset,
          require: body.require,
          exclude: body.exclude,
        },
        side: meaning?.side,
      };
      const answer = await turns.run(request);
      if (answer.unsupported === undefined) {
        // Vectors of another model were dropped, or there are texts that wait: nobody else may have noticed.
        if (answer.incomplete && meaning?.side) embedding?.wake(spaceId);
        const vectorStatus = mode === "fts" ? "skipped" : (meaning?.status ?? "disabled");
        return replyOf(answer, meaning?.side ? mode : "fts", vectorStatus);
      }
      noteUnsupported(answer.unsupported);
      if (mode === "vector") throw svcError("index.embedder_unavailable");
      const words = {
        ...request,
        query: { ...request.query, mode: "fts" as const, vector: undefined },
        side: undefined,
      };
      return replyOf(await turns.run(words), "fts", "unavailable");
    },
  };
}

function replyOf(answer: IndexAnswer, mode: SearchMode, vectorStatus: SearchReply["vectorStatus"]): SearchReply {
  const { hits, incomplete } = answer;
  return { hits: [...hits], mode, vectorStatus, ...(incomplete ? { incomplete: true as const } : {}) };
}

function modeOf(mode: string | undefined): SearchMode {
  const known = SEARCH_MODES.find((each) => each === (mode ?? "hybrid"));
  if (!known) throw svcError("search.bad_mode", { mode: mode ?? "" });
  return known;
}
