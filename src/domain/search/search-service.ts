import { mkdirSync, readdirSync } from "node:fs";
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
import { INDEX_CHILD } from "../../search/index-child.ts";
import type { IndexAnswer, IndexPlace, IndexReport, IndexRequest } from "../../search/index-protocol.ts";
import { isScope, readSearchConfig } from "../../search/search-config.ts";
import type { LongWork, StartLongWork } from "../process/port.ts";
import type { SearchableSpace } from "./port.ts";

/** Writes that follow each other closely are indexed together (SEARCH-1). */
const DEBOUNCE_MS = 250;
/** The process that indexes ends after so long without work: it takes memory of its own. */
const CHILD_IDLE_MS = 30_000;
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
  readonly startLongWork: StartLongWork;
  readonly log: Log;
}

/** Finds content of spaces. Indexing goes on behind the requests, in a process of its own. */
export interface SearchService extends Service {
  search(spaceId: SpaceId, body: SearchBody): Promise<SearchReply>;
  /** Something was committed in a space. */
  committed(spaceId: SpaceId): void;
  /** A space has left this device: so does its index. */
  ended(spaceId: SpaceId): void;
}

export function createSearchService(deps: SearchDeps): SearchService {
  const { enabled, log } = deps;
  const timers = new Map<SpaceId, ReturnType<typeof setTimeout>>();
  const works = new Map<string, LongWork>();
  /** Up to where the log of a space was shortened. */
  const trimmed = new Map<string, number>();
  let stopped = false;
  const child = createChildClient<IndexRequest, IndexReport>({
    mode: INDEX_CHILD,
    log,
    idleMs: CHILD_IDLE_MS,
    onReport,
    onLost: () => {
      for (const spaceId of busy) committed(spaceId);
    },
  });
  /** Spaces whose indexes are not known to be in step. */
  const busy = new Set<SpaceId>();
  if (enabled) mkdirSync(deps.directory, { recursive: true, mode: 0o700 });

  const placeOf = (spaceId: SpaceId): IndexPlace => ({
    spaceId,
    source: deps.databaseOf(spaceId),
    index: join(deps.directory, `${spaceId}.db`),
  });

  function onReport(report: IndexReport): void {
    if (report.kind === "progress") showProgress(report);
    else void trim(report.spaceId as SpaceId, report.cursor);
  }

  function showProgress({ spaceId, done, total, over }: Extract<IndexReport, { kind: "progress" }>): void {
    let work = works.get(spaceId);
    if (!work && !over) {
      work = deps.startLongWork({ kind: "index.fts", title: "Indexing text", target: spaceId });
      works.set(spaceId, work);
    }
    work?.progress(done, total);
    if (!over) return;
    busy.delete(spaceId as SpaceId);
    work?.end();
    works.delete(spaceId);
  }

  /** Work behind requests: what fails is logged and comes again with the next commit. */
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

  const follow = (spaceId: SpaceId): Promise<void> =>
    behind(spaceId, async () => {
      const space = await deps.open(spaceId);
      if (stopped) return;
      busy.add(spaceId);
      if (enabled) child.send({ kind: "follow", place: placeOf(spaceId), config: readSearchConfig(space.types) });
      else await trim(spaceId, space.logHead());
    });

  const committed = (spaceId: SpaceId): void => {
    if (stopped || timers.has(spaceId)) return;
    const timer = setTimeout(() => {
      timers.delete(spaceId);
      void follow(spaceId);
    }, DEBOUNCE_MS);
    timer.unref();
    timers.set(spaceId, timer);
  };

  /** Files of spaces that are no longer here, from before a crash. */
  const dropStrangers = async (active: ReadonlySet<string>): Promise<void> => {
    for (const name of readdirSync(deps.directory)) {
      const spaceId = name.endsWith(".db") ? name.slice(0, -3) : undefined;
      if (spaceId === undefined || active.has(spaceId) || stopped) continue;
      await child.ask({ kind: "drop", place: placeOf(spaceId as SpaceId) });
    }
  };

  /** A child that died under a search is not the search's fault: it is asked once more. */
  const askTwice = async (request: IndexRequest): Promise<IndexAnswer> => {
    try {
      return await child.ask<IndexAnswer>(request);
    } catch (error) {
      if (!(error instanceof ChildLost) || stopped) throw error;
      return child.ask<IndexAnswer>(request);
    }
  };

  return {
    name: "search",
    async start() {
      if (!enabled) return;
      const ids = deps.activeIds();
      await dropStrangers(new Set(ids));
      for (const spaceId of ids) {
        if (stopped) return;
        await behind(spaceId, async () => {
          if (!(await child.ask<boolean>({ kind: "isCurrent", place: placeOf(spaceId) }))) await follow(spaceId);
        });
      }
    },
    async stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
      for (const work of works.values()) work.end();
      await child.close();
    },
    committed,
    ended(spaceId) {
      clearTimeout(timers.get(spaceId));
      timers.delete(spaceId);
      trimmed.delete(spaceId);
      if (enabled && !stopped) void behind(spaceId, () => child.ask({ kind: "drop", place: placeOf(spaceId) }));
    },
    async search(spaceId, body) {
      const mode = modeOf(body.mode);
      const bad = body.scopes?.find((scope) => !isScope(scope));
      if (bad !== undefined) throw svcError("search.bad_scope", { scope: bad });
      const space = await deps.open(spaceId);
      if (!enabled) throw svcError("index.disabled");
      if (mode === "vector") throw svcError("index.no_embedder");
      const answer = await askTwice({
        kind: "search",
        place: placeOf(spaceId),
        config: readSearchConfig(space.types),
        query: {
          query: body.query,
          limit: body.limit ?? DEFAULT_HITS,
          maxData: body.maxData ?? DEFAULT_DATA_CHARS,
          mode: "fts",
          scopes: body.scopes,
          objectId: body.objectId,
          dataset: body.dataset,
          require: body.require,
          exclude: body.exclude,
        },
      });
      return {
        hits: [...answer.hits],
        mode: "fts",
        vectorStatus: mode === "fts" ? "skipped" : "disabled",
        ...(answer.incomplete ? { incomplete: true as const } : {}),
      };
    },
  };
}

function modeOf(mode: string | undefined): SearchMode {
  const known = SEARCH_MODES.find((each) => each === (mode ?? "hybrid"));
  if (!known) throw svcError("search.bad_mode", { mode: mode ?? "" });
  return known;
}
