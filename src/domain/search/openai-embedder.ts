import { createEvents } from "../../base/events.ts";
import type { Log } from "../../base/log.ts";
import { packVector } from "../../search/model/packed-vector.ts";
import type { Embedder } from "./embedder.ts";

const BATCH = 32;
const REQUEST_MS = 30_000;
const QUERY_MS = 8_000;
/** Waits between tries of one batch. */
const RETRY_MS = [500, 2_000, 8_000] as const;
/** How long it is said to be out of reach after it was. */
const DOWN_MS = 15_000;

export interface OpenAiEmbedderDeps {
  readonly baseUrl: string;
  readonly model: string;
  /** The key, read when it is needed; it stands in no log. */
  key(): string | undefined;
  readonly log: Log;
}

/** Embeds by an HTTP endpoint that speaks as OpenAI's does. Texts leave the machine. */
export function createOpenAiEmbedder(deps: OpenAiEmbedderDeps): Embedder {
  const { baseUrl, model, log } = deps;
  const stopping = new AbortController();
  const events = createEvents<{ ready: [] }>();
  let downUntil = 0;
  let isDown = false;

  const ready = (): void => {
    events.emit("ready");
  };
  const fail = (error: unknown): void => {
    downUntil = performance.now() + DOWN_MS;
    if (isDown || stopping.signal.aborted) return;
    isDown = true;
    const reason = error instanceof Error ? error.message : String(error);
    log.warn("the embedding endpoint cannot be used; full-text search goes on", { reason });
    setTimeout(ready, DOWN_MS).unref();
  };

  const request = async (texts: readonly string[], timeoutMs: number): Promise<Float32Array[]> => {
    const key = deps.key();
    const response = await fetch(`${baseUrl.replace(/\/+$/, "")}/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
      body: JSON.stringify({ model, input: texts, encoding_format: "float" }),
      signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw Object.assign(new Error(`it answered ${response.status}`), {
        mayPass: response.status === 429 || response.status >= 500,
      });
    }
    return readVectors(await response.json(), texts.length);
  };

  const patiently = async (texts: readonly string[]): Promise<Float32Array[]> => {
    for (let tries = 0; ; tries++) {
      try {
        return await request(texts, REQUEST_MS);
      } catch (error) {
        const waitMs = RETRY_MS[tries];
        const mayPass = (error as { mayPass?: boolean }).mayPass !== false;
        if (waitMs === undefined || !mayPass || stopping.signal.aborted) throw error;
        await Bun.sleep(waitMs);
      }
    }
  };

  return {
    name: "embedder",
    onReady: (listener) => void events.on("ready", listener),
    state: () => (isDown && performance.now() < downUntil ? "unavailable" : "ready"),
    async embed(texts, use) {
      try {
        const vectors: Float32Array[] = [];
        if (use === "query") vectors.push(...(await request(texts, QUERY_MS)));
        else
          for (let at = 0; at < texts.length; at += BATCH)
            vectors.push(...(await patiently(texts.slice(at, at + BATCH))));
        isDown = false;
        const dimension = vectors[0]?.length ?? 0;
        return {
          model: { id: `${baseUrl} ${model}`, dimension },
          vectors: vectors.map((vector) => [packVector(vector, undefined)]),
        };
      } catch (error) {
        fail(error);
        throw error;
      }
    },
    start: ready,
    async stop() {
      stopping.abort();
    },
  };
}

/** The answer's vectors in the order of the texts. Bounded and checked: it came over the network. */
function readVectors(answer: unknown, count: number): Float32Array[] {
  const data = (answer as { data?: unknown }).data;
  if (!Array.isArray(data) || data.length !== count) throw new Error("its answer holds another number of vectors");
  const vectors = new Array<Float32Array>(count);
  for (const each of data as { index?: unknown; embedding?: unknown }[]) {
    const { index, embedding } = each;
    if (typeof index !== "number" || !(index in data) || !Array.isArray(embedding))
      throw new Error("its answer is none");
    vectors[index] = Float32Array.from(embedding as number[], Number);
  }
  const dimension = vectors[0]?.length ?? 0;
  // A vector is stored as bits, which have to fill whole bytes.
  const isGood = dimension > 0 && dimension <= 8_192 && dimension % 8 === 0;
  if (
    !isGood ||
    vectors.some((vector) => vector?.length !== dimension || vector.some((value) => !Number.isFinite(value)))
  )
    throw new Error("its vectors are not numbers of one length, a multiple of 8 up to 8192");
  return vectors;
}
