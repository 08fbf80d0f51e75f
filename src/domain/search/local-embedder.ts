import { mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createEvents } from "../../base/events.ts";
import type { Log } from "../../base/log.ts";
import { ChildLost, createChildClient } from "../../search/child-process.ts";
import { EMBED_CHILD, type Embedded, type EmbedRequest, type Loaded } from "../../search/model/embed-protocol.ts";
import { downloadModel } from "../../search/model/model-download.ts";
import { DEFAULT_MODEL, findModel, modelFingerprint, unpackBuiltInModel } from "../../search/model/model-files.ts";
import { packVector } from "../../search/model/packed-vector.ts";
import type { VectorModel } from "../../store/search/vector-table.ts";
import type { LongWork, StartLongWork } from "../process/port.ts";
import { type EmbeddedTexts, type Embedder, EmbedderLost, type EmbedderState } from "./embedder.ts";

/** The process ends after this long without work, because a model takes hundreds of megabytes. */
const IDLE_MS = 60_000;
const LOAD_MS = 120_000;
const PASSAGES_MS = 120_000;
const QUERY_MS = 20_000;
/** A search does not wait longer than this: it goes on by words. */
const PATIENCE_MS = 4_000;
/** The process is ended, and begun anew, when it holds more than this. */
const MOST_RSS_BYTES = 1_600 * 1024 * 1024;
const RETRY_MS = [2_000, 5_000, 15_000, 60_000, 300_000] as const;
/** After this many losses in a row a process is not restarted at once: no single text can be the reason. */
const MOST_LOSSES = 3;
/** How often it is looked whether a person has put a model in its place. */
const LOOK_MS = 5_000;
const MOST_THREADS = 4;

export interface LocalEmbedderDeps {
  /** `<account-dir>/models`. */
  readonly modelsDir: string;
  /** Where native libraries are put. */
  readonly nativeDir: string;
  /** The model asked for; without one what is there, else the default. */
  readonly wanted: string | undefined;
  /** Where a model that is not there is fetched from; without one it is not. */
  readonly host: string | undefined;
  readonly startLongWork: StartLongWork;
  readonly log: Log;
}

interface Ready {
  readonly model: VectorModel;
  readonly center: Float32Array;
}

interface Loading {
  readonly ready: Promise<Ready>;
  /** The child it is loaded in, once it is. */
  pid?: number | undefined;
  isOver: boolean;
}

/** Embeds with a model on the disk, in a process of its own. */
export function createLocalEmbedder(deps: LocalEmbedderDeps): Embedder {
  const { modelsDir, nativeDir, wanted, host, log } = deps;
  const events = createEvents<{ ready: [] }>();
  const child = createChildClient<EmbedRequest, never>({ mode: EMBED_CHILD, log, idleMs: IDLE_MS });
  const stopping = new AbortController();
  let modelDir: string | undefined;
  let loading: Loading | undefined;
  /** Why it cannot be asked now. */
  let fault: string | undefined;
  let faults = 0;
  /** Processes lost since one last embedded anything. */
  let losses = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let retryAt = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let fetching: Promise<void> | undefined;

  /** Finds the model; what is not there is fetched in the background, if it may be. */
  const look = (): string | undefined => {
    if (modelDir !== undefined || performance.now() - lookedAt < LOOK_MS) return modelDir;
    lookedAt = performance.now();
    modelDir = findModel(modelsDir, wanted);
    return modelDir;
  };

  const fail = (error: unknown): void => {
    if (stopping.signal.aborted) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (reason !== fault) log.warn("texts cannot be embedded; full-text search goes on", { reason });
    fault = reason;
    clearTimeout(retry);
    const waitMs = RETRY_MS[Math.min(faults++, RETRY_MS.length - 1)]!;
    retryAt = performance.now() + waitMs;
    retry = setTimeout(prepare, waitMs);
    retry.unref();
  };

  const ready = (): void => events.emit("ready");

  const succeed = (): void => {
    if (fault !== undefined) log.info("texts can be embedded again");
    fault = undefined;
  };

  function prepare(): void {
    if (stopping.signal.aborted || performance.now() < retryAt - 1) return;
    if (look() === undefined && host !== undefined) fetching ??= fetchModel().finally(() => (fetching = undefined));
    else if (modelDir !== undefined) load().then(ready, fail);
  }

  const fetchModel = async (): Promise<void> => {
    const model = wanted ?? DEFAULT_MODEL;
    const works = new Map<string, LongWork>();
    try {
      await downloadModel({
        host: host!,
        modelsDir,
        model,
        signal: stopping.signal,
        onBytes(file, done, total) {
          const target = file.split("/").at(-1)!;
          const work =
            works.get(file) ??
            deps.startLongWork({ kind: "index.model_download", title: `Fetching ${model}: ${file}`, target });
          works.set(file, work);
          work.progress(done, total);
        },
      });
      for (const work of works.values()) work.end();
      log.info("a model was fetched", { model });
      lookedAt = Number.NEGATIVE_INFINITY;
      look();
      await load();
      ready();
    } catch (error) {
      for (const work of works.values()) work.end(error);
      fail(error);
    }
  };

  /** The model in the child's memory; loaded once a child. */
  const load = (): Promise<Ready> => {
    if (loading && (!loading.isOver || (loading.pid !== undefined && loading.pid === child.pid))) return loading.ready;
    const model = modelDir;
    if (model === undefined) return Promise.reject(new Error("there is no model"));
    const one: Loading = { ready: loadModel(model), isOver: false };
    loading = one;
    one.ready
      .then(
        () => (one.pid = child.pid),
        () => undefined, // whoever waits for it hears of it
      )
      .finally(() => (one.isOver = true));
    return one.ready;
  };

  const loadModel = async (model: string): Promise<Ready> => {
    const fingerprint = await modelFingerprint(modelsDir, model);
    if (fingerprint.spoilt !== undefined) {
      modelDir = undefined;
      lookedAt = performance.now();
      throw new Error(`${model}: ${fingerprint.spoilt} is not what it was when it was fetched`);
    }
    const { dimension, center } = await within<Loaded>(
      { kind: "load", modelsDir, model, nativeDir: join(nativeDir, "ort"), threads: threads() },
      LOAD_MS,
    );
    succeed();
    return { model: { id: `${model}@${fingerprint.id}`, dimension }, center };
  };

  /** Resolves with an answer in time, or ends the child, because it does not wait for a child that hangs. */
  const within = <T>(request: EmbedRequest, timeoutMs: number): Promise<T> => {
    const timer = setTimeout(() => child.kill(), timeoutMs);
    return child.ask<T>(request).finally(() => clearTimeout(timer));
  };

  return {
    name: "embedder",
    onReady: (listener) => void events.on("ready", listener),
    state(): EmbedderState {
      if (modelDir === undefined) prepare();
      if (modelDir !== undefined) return fault === undefined ? "ready" : "unavailable";
      return host === undefined ? "absent" : "unavailable";
    },
    async embed(texts, use) {
      const embedding = embed(texts, use);
      if (use === "passage") return embedding;
      embedding.catch(() => undefined); // whoever waits for it no more has been answered
      const patience = Promise.withResolvers<never>();
      const timer = setTimeout(() => patience.reject(new Error("the embedder is busy")), PATIENCE_MS);
      return Promise.race([embedding, patience.promise]).finally(() => clearTimeout(timer));
    },
    start() {
      mkdirSync(modelsDir, { recursive: true, mode: 0o700 });
      unpackBuiltInModel(modelsDir)
        .catch((error: unknown) => log.warn("the built-in model could not be unpacked", { err: error }))
        .then(() => {
          lookedAt = Number.NEGATIVE_INFINITY;
          // A model that is there is loaded when something is to be embedded.
          if (look() === undefined) prepare();
          else ready();
        })
        .catch(fail);
    },
    async stop() {
      stopping.abort();
      clearTimeout(retry);
      await child.close();
      await fetching;
    },
  };

  async function embed(texts: readonly string[], use: "query" | "passage"): Promise<EmbeddedTexts> {
    look();
    let loaded: Ready;
    try {
      loaded = await load();
    } catch (error) {
      fail(error);
      throw error;
    }
    const { model, center } = loaded;
    const { vectors, rssBytes } = await within<Embedded>(
      { kind: "embed", texts, use },
      use === "query" ? QUERY_MS : PASSAGES_MS,
    ).catch((error: unknown) => {
      if (!(error instanceof ChildLost)) throw error;
      if (++losses >= MOST_LOSSES) fail(error);
      throw new EmbedderLost(error.message);
    });
    losses = 0;
    faults = 0;
    if (rssBytes > MOST_RSS_BYTES) await child.rest();
    return { model, vectors: vectors.map((parts) => parts.map((vector) => packVector(vector, center))) };
  }
}

/** Requests keep a processor for themselves. */
function threads(): number {
  return Math.max(1, Math.min(MOST_THREADS, availableParallelism() - 1));
}
