/** Gives the texts of the indexes their vectors, one space after the other, with lower priority than everything else. */
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { IndexFiles, IndexRequest, PendingTexts, VectorSide } from "../../search/index/index-protocol.ts";
import { MOST_TRIES, type PendingText, type VectorModel } from "../../store/search/vector-table.ts";
import type { LongWork, StartLongWork } from "../process/port.ts";
import { type EmbeddedTexts, type Embedder, EmbedderLost } from "./embedder.ts";

const TEXTS_A_ROUND = 32;
const HARMLESS = ".";
/**
 * After a failure that is not the embedder's (an index's process was lost, the disk is full), this is the wait before the next
 * attempt.
 */
const RETRY_MS = 2_000;

export interface EmbedLoopDeps {
  readonly embedder: Embedder;
  readonly nativeDir: string;
  filesOf(spaceId: SpaceId): IndexFiles;
  ask<T>(request: IndexRequest): Promise<T>;
  /** This machine cannot search vectors. */
  onUnsupported(reason: string): void;
  readonly startLongWork: StartLongWork;
  readonly log: Log;
  /** For tests. */
  readonly retryMs?: number;
}

export function createEmbedLoop(deps: EmbedLoopDeps) {
  const { embedder, ask, log } = deps;
  const waiting = new Set<SpaceId>();
  let working: Promise<void> | undefined;
  let closed = false;
  let retry: ReturnType<typeof setTimeout> | undefined;
  /** What the embedder was when it last answered; until it has, nothing can be asked of the indexes. */
  let model: VectorModel | undefined;

  const sideOf = (of: VectorModel): VectorSide => ({ model: of, nativeDir: deps.nativeDir });

  const work = async (): Promise<void> => {
    for (let [spaceId] = waiting; spaceId !== undefined && !closed; [spaceId] = waiting) {
      if (embedder.state() !== "ready") break;
      try {
        await embedSpace(spaceId);
        waiting.delete(spaceId);
      } catch (error) {
        if (closed) break;
        log.debug("embedding stopped; it goes on in a moment, or when the embedder answers", { err: error, spaceId });
        clearTimeout(retry);
        retry = setTimeout(begin, deps.retryMs ?? RETRY_MS);
        retry.unref();
        break;
      }
    }
  };

  const begin = (): void => {
    working ??= work().finally(() => {
      working = undefined;
    });
  };

  const embedSpace = async (spaceId: SpaceId): Promise<void> => {
    const files = deps.filesOf(spaceId);
    model ??= (await embedder.embed([HARMLESS], "passage")).model;
    let done = 0;
    let work: LongWork | undefined;
    try {
      for (; !closed; ) {
        const side = sideOf(model);
        const pending = await ask<PendingTexts>({ kind: "pending", files, side, limit: TEXTS_A_ROUND });
        if (pending.unsupported !== undefined) return deps.onUnsupported(pending.unsupported);
        if (pending.texts.length === 0 && pending.left === 0) break;
        work ??= deps.startLongWork({ kind: "index.embed", title: "Embedding text", target: spaceId });
        work.progress(done, done + pending.left);
        if (pending.texts.length > 0) done += await embedTexts(files, side, pending.texts);
      }
      work?.end();
    } catch (error) {
      work?.end(error);
      throw error;
    }
  };

  /** Answers how many were embedded. A text that ends the embedder twice is skipped for good. */
  const embedTexts = async (files: IndexFiles, side: VectorSide, texts: readonly PendingText[]): Promise<number> => {
    try {
      await keep(
        files,
        texts,
        await embedder.embed(
          texts.map(({ text }) => text),
          "passage",
        ),
      );
    } catch (error) {
      if (!(error instanceof EmbedderLost) || closed) throw error;
      if (texts.length > 1) for (const one of texts) await embedTexts(files, side, [one]);
      else if (await isAlive()) await noteFault(files, side, texts[0]!);
      else throw error;
    }
    return texts.length;
  };

  /** Where the embedder dies over any text (for lack of memory, say), no single text is the reason. */
  const isAlive = (): Promise<boolean> =>
    embedder.embed([HARMLESS], "passage").then(
      () => true,
      () => false,
    );

  const keep = async (files: IndexFiles, texts: readonly PendingText[], embedded: EmbeddedTexts): Promise<void> => {
    model = embedded.model;
    await ask({
      kind: "keep",
      files,
      side: sideOf(embedded.model),
      texts: texts.map(({ hash }, index) => ({ hash, vectors: embedded.vectors[index] ?? [] })),
    });
  };

  const noteFault = async (files: IndexFiles, side: VectorSide, { hash, text }: PendingText): Promise<void> => {
    const tries = await ask<number>({ kind: "fault", files, side, hash });
    if (tries >= MOST_TRIES)
      log.warn("a text ends the process that embeds it: it is found by its words alone", {
        spaceId: files.spaceId,
        hash,
        characters: text.length,
      });
  };

  embedder.onReady(() => {
    if (!closed && waiting.size > 0) begin();
  });

  return {
    sideOf,
    /** Texts of a space may wait. */
    wake(spaceId: SpaceId): void {
      if (closed) return;
      waiting.add(spaceId);
      begin();
    },
    forget: (spaceId: SpaceId): void => void waiting.delete(spaceId),
    async close(): Promise<void> {
      closed = true;
      clearTimeout(retry);
      await working;
    },
  };
}
