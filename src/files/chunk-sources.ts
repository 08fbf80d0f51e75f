import { equalBytes } from "../base/bytes.ts";
import { createEvents } from "../base/events.ts";
import { sha256 } from "../crypto/hash.ts";
import type { Content } from "./content.ts";
import { type ChunkPosition, SEALED_CHUNK_BYTES_MAX } from "./content-seal.ts";

/** One sealed chunk or page that is needed. */
interface ChunkWanted {
  readonly content: Content;
  readonly position: ChunkPosition;
  readonly digest: Uint8Array;
}

/** A source that may have chunks: the network's store, or a device on the LAN. Everything it gives is verified. */
interface ChunkSource {
  readonly name: string;
  /** Whether it can be reached now and may have chunks of this content. */
  mayHave(content: Content): boolean;
  /** The sealed bytes, or undefined when it has none. Rejects when it cannot be asked. */
  get(wanted: ChunkWanted): Promise<Uint8Array | undefined>;
}

/** The sources of chunks, and how fast and how honest each has been. */
export interface ChunkSources {
  add(source: ChunkSource): () => void;
  /** A source appeared or has something new, so waiting requests are tried again. */
  changed(): void;
  onChange(listener: () => void): () => void;
  anyFor(content: Content): boolean;
  /**
   * Asks the source that should be fastest, and others when it fails, stalls or lies. Resolves to undefined when no
   * source that is reachable has the chunk.
   */
  fetch(wanted: ChunkWanted): Promise<Uint8Array | undefined>;
}

interface Standing {
  readonly source: ChunkSource;
  inFlight: number;
  /** Moving average of the time it takes to answer, in milliseconds. */
  answerMs: number;
  /** Until then it is not asked, because it lied or failed. Monotonic clock. */
  restUntilMs: number;
  faults: number;
}

const FIRST_GUESS_MS = 100;
const PER_SOURCE = 6;
/** When an answer takes this many times the usual time, another source is asked too. */
const STALL_FACTOR = 4;
const STALL_MIN_MS = 1_500;
const REST_MS = 5_000;
const REST_MAX_MS = 60_000;
const TURN_MS = 10;

export function createChunkSources(onLie: (source: string, content: Content) => void): ChunkSources {
  const standings = new Map<ChunkSource, Standing>();
  const events = createEvents<{ changed: [] }>();

  const usable = (content: Content, asked: ReadonlySet<Standing>): Standing[] => {
    const now = performance.now();
    return [...standings.values()]
      .filter((one) => !asked.has(one) && one.restUntilMs <= now && one.source.mayHave(content))
      .sort((a, b) => (a.inFlight + 1) * a.answerMs - (b.inFlight + 1) * b.answerMs);
  };

  const fault = (one: Standing): void => {
    one.faults++;
    one.restUntilMs = performance.now() + Math.min(REST_MAX_MS, REST_MS * 2 ** (one.faults - 1));
  };

  /**
   * Resolves to the bytes if they are the right ones. Otherwise resolves to undefined and lowers the source's standing.
   */
  const ask = async (one: Standing, wanted: ChunkWanted): Promise<Uint8Array | undefined> => {
    const startedMs = performance.now();
    one.inFlight++;
    try {
      const sealed = await one.source.get(wanted);
      one.answerMs = 0.7 * one.answerMs + 0.3 * (performance.now() - startedMs);
      if (sealed === undefined) return undefined;
      if (sealed.length <= SEALED_CHUNK_BYTES_MAX && equalBytes(sha256(sealed), wanted.digest)) {
        one.faults = 0;
        return sealed;
      }
      onLie(one.source.name, wanted.content);
      fault(one);
    } catch {
      // The source is gone or refuses: others are asked, and this one is left alone for a while.
      fault(one);
    } finally {
      one.inFlight--;
    }
    return undefined;
  };

  const fetch = async (wanted: ChunkWanted): Promise<Uint8Array | undefined> => {
    const asked = new Set<Standing>();
    const running = new Set<Promise<Uint8Array | undefined>>();
    for (;;) {
      const free = usable(wanted.content, asked);
      const next = free.find(({ inFlight }) => inFlight < PER_SOURCE);
      if (!next) {
        if (running.size === 0 && free.length === 0) return undefined;
        if (running.size === 0) {
          await Bun.sleep(TURN_MS); // all sources that could have it are busy
          continue;
        }
        const sealed = await firstGood(running);
        if (sealed) return sealed;
        continue;
      }
      asked.add(next);
      const answer: Promise<Uint8Array | undefined> = ask(next, wanted).finally(() => running.delete(answer));
      running.add(answer);
      const stallMs = Math.max(STALL_MIN_MS, STALL_FACTOR * next.answerMs);
      const sealed = await Promise.race([firstGood(running), Bun.sleep(stallMs)]);
      if (sealed) return sealed;
    }
  };

  return {
    add(source) {
      const standing = { source, inFlight: 0, answerMs: FIRST_GUESS_MS, restUntilMs: 0, faults: 0 };
      standings.set(source, standing);
      events.emit("changed");
      return () => void standings.delete(source);
    },
    changed() {
      for (const standing of standings.values()) standing.restUntilMs = 0;
      events.emit("changed");
    },
    onChange: (listener) => events.on("changed", listener),
    anyFor: (content) => [...standings.keys()].some((source) => source.mayHave(content)),
    fetch,
  };
}

/** The first answer with bytes; undefined once all running requests gave none. */
function firstGood(running: ReadonlySet<Promise<Uint8Array | undefined>>): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    let left = running.size;
    if (left === 0) resolve(undefined);
    for (const one of running)
      void one.then((sealed) => {
        left--;
        if (sealed || left === 0) resolve(sealed);
      });
  });
}
