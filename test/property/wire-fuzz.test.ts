/**
 * Bytes of others, made by somebody who knows their structure: reading them never throws but the refusal that is meant, ends
 * soon, and what is read has one form only. `FUZZ_CASES` says how many; `SEED` repeats a run, whose seed is drawn anew each time.
 */
import { describe, expect } from "bun:test";
import { fuzzCases } from "../support/hostile/fuzz-cases.ts";
import type { WireCodec } from "../support/hostile/wire-codec.ts";
import { WIRE_CODECS } from "../support/hostile/wire-codecs.ts";
import { createRng, exploringSeeds, type Rng } from "../support/rng.ts";
import { rule } from "../support/rule.ts";

/** What found something once goes here, as bytes below where they can be had. */
const KEPT_SEEDS = {};
const seeds = exploringSeeds("wire-fuzz", KEPT_SEEDS);
/** Processor time that the reading of one message may take: far above what any does, far below what anybody would notice. */
const SLOW_MS = 500;
/** What reading all of them may leave behind. */
const LEFT_BYTES = 300 << 20;
const POOL = 16;

/** Bytes that were read wrongly once, by the codec they were meant for. */
const KEPT: readonly { name: string; codec: string; hex: string }[] = [
  { name: "a header that is nothing at all", codec: "header of a space", hex: "f6" },
  { name: "an ACL record that is a number", codec: "ACL record", hex: "00" },
  { name: "a message of nothing", codec: "log message", hex: "" },
];

const totalWeight = WIRE_CODECS.reduce((sum, { weight }) => sum + weight, 0);

/** Calls of `run` are quick: the errors that refuse are made without their stack. */
function withoutStacks<T>(run: () => T): T {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** What reading these bytes takes of a processor, which is asked for only where a clock says that it was long. */
function processorMsOf(codec: WireCodec, bytes: Uint8Array): number {
  const before = process.cpuUsage().user;
  try {
    codec.decode(bytes);
  } catch {
    // That it is refused was seen before.
  }
  return (process.cpuUsage().user - before) / 1000;
}

/** What is wrong with how a codec takes these bytes. */
function faultOf(codec: WireCodec, bytes: Uint8Array): string | undefined {
  const before = performance.now();
  let value: unknown;
  let refusal: unknown;
  try {
    value = codec.decode(bytes);
  } catch (error) {
    refusal = error;
  }
  if (performance.now() - before > SLOW_MS) {
    const ms = processorMsOf(codec, bytes);
    if (ms > SLOW_MS) return `takes ${Math.round(ms)} ms`;
  }
  if (refusal !== undefined) return codec.refuses(refusal) ? undefined : `throws ${refusal}`;
  if (value === undefined || !codec.encode) return undefined;
  const again = new Uint8Array(codec.encode(value as never));
  if (!/^(session|body)/.test(codec.name))
    return Buffer.compare(again, bytes) === 0 ? undefined : "is read although it is not canonical";
  const third = codec.encode(codec.decode(again) as never);
  return Buffer.compare(again, third) === 0 ? undefined : "reads its own encoding otherwise";
}

/** The same of many, with the bytes and, where it throws, from where. */
function expectNoFault(codec: WireCodec, cases: Iterable<Uint8Array>): void {
  for (const bytes of cases) {
    const fault = withoutStacks(() => faultOf(codec, bytes));
    if (fault === undefined) continue;
    const said = `${codec.name} ${fault}\nbytes: ${Buffer.from(bytes).toString("hex").slice(0, 4000)}`;
    if (!fault.startsWith("throws")) throw new Error(said);
    try {
      codec.decode(bytes);
    } catch (cause) {
      throw new Error(said, { cause });
    }
  }
}

describe("bytes of others", () => {
  for (const { name, codec, hex } of KEPT)
    rule(`[SYNC-4] ${name} is refused`, () => {
      const meant = WIRE_CODECS.find((one) => one.name === codec)!;
      expect(faultOf(meant, Buffer.from(hex, "hex"))).toBeUndefined();
    });

  rule("[SYNC-4] good bytes are read", () => {
    const rng = createRng(seeds[0]!.seed);
    for (const codec of WIRE_CODECS) {
      for (let i = 0; i < POOL; i++)
        expect([codec.name, faultOf(codec, codec.make(rng))]).toEqual([codec.name, undefined]);
    }
  });

  for (const [index, { name, seed }] of seeds.entries())
    for (const codec of WIRE_CODECS) {
      const cases = fuzzCases(codec.weight / totalWeight, index > 0);
      rule(
        `[SYNC-4] ${codec.name}, ${name}: ${cases} spoilt ones are read or refused, soon, and have one form`,
        () => {
          const rng = createRng(seed).fork(codec.name);
          const pool = Array.from({ length: POOL }, () => codec.make(rng));
          const before = process.memoryUsage().rss;
          expectNoFault(codec, spoiltOnes(codec, rng, pool, cases));
          expect(process.memoryUsage().rss - before).toBeLessThan(LEFT_BYTES);
        },
        600_000,
      );
    }
});

function* spoiltOnes(codec: WireCodec, rng: Rng, pool: readonly Uint8Array[], count: number): Generator<Uint8Array> {
  for (let i = 0; i < count; i++) yield codec.spoil(rng, rng.pick(pool));
}
