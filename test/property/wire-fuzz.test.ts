/**
 * Bytes of others, made by somebody who knows their structure: reading them never throws but the refusal that is meant, ends
 * soon, and what is read has one form only. `FUZZ_CASES=1000000` by hand; `SEED` repeats a run.
 */
import { describe, expect } from "bun:test";
import type { WireCodec } from "../support/hostile/wire-codec.ts";
import { WIRE_CODECS } from "../support/hostile/wire-codecs.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rule } from "../support/rule.ts";

const CASES = Number(process.env["FUZZ_CASES"] ?? 100_000);
const firstSeed = runSeed("wire-fuzz");
/** Processor time that the reading of one message may take: far above what any does, far below what anybody would notice. */
const SLOW_MS = 500;
/** What reading all of them may leave behind. */
const LEFT_BYTES = 300 << 20;
const POOL = 16;

/** Bytes that were read wrongly once, by the codec they were meant for. */
const KEPT: readonly { name: string; codec: string; hex: string }[] = [
  { name: "a header that is nothing at all", codec: "header of a space", hex: "f6" },
  { name: "an ACL record that is a number", codec: "ACL record", hex: "00" },
  { name: "a bundle of nothing", codec: "network bundle", hex: "" },
];

const totalWeight = WIRE_CODECS.reduce((sum, { weight }) => sum + weight, 0);

/** What is wrong with how a codec takes these bytes. */
function faultOf(codec: WireCodec, bytes: Uint8Array): string | undefined {
  const before = process.cpuUsage().user;
  let value: unknown;
  try {
    value = codec.decode(bytes);
  } catch (error) {
    return codec.refuses(error) ? undefined : `throws ${error instanceof Error ? error.stack : error}`;
  }
  const ms = (process.cpuUsage().user - before) / 1000;
  if (ms > SLOW_MS) return `takes ${Math.round(ms)} ms`;
  if (value === undefined || !codec.encode) return undefined;
  const again = new Uint8Array(codec.encode(value as never));
  const isStrict = codec.decode(bytes) !== undefined && !/^(session|body)/.test(codec.name);
  if (isStrict) return Buffer.compare(again, bytes) === 0 ? undefined : "is read although it is not canonical";
  const third = codec.encode(codec.decode(again) as never);
  return Buffer.compare(again, third) === 0 ? undefined : "reads its own encoding otherwise";
}

describe("bytes of others", () => {
  for (const { name, codec, hex } of KEPT)
    rule(`[wire] ${name} is refused`, () => {
      const meant = WIRE_CODECS.find((one) => one.name === codec)!;
      expect(faultOf(meant, Buffer.from(hex, "hex"))).toBeUndefined();
    });

  rule("[wire] good bytes are read", () => {
    const rng = createRng(firstSeed);
    for (const codec of WIRE_CODECS) {
      for (let i = 0; i < POOL; i++)
        expect([codec.name, faultOf(codec, codec.make(rng))]).toEqual([codec.name, undefined]);
    }
  });

  for (const codec of WIRE_CODECS) {
    const cases = Math.ceil((CASES * codec.weight) / totalWeight);
    rule(
      `[wire] ${codec.name}: ${cases} spoilt ones are read or refused, soon, and have one form`,
      () => {
        const rng = createRng(firstSeed).fork(codec.name);
        const pool = Array.from({ length: POOL }, () => codec.make(rng));
        const before = process.memoryUsage().rss;
        for (let i = 0; i < cases; i++) {
          const bytes = codec.spoil(rng, rng.pick(pool));
          const fault = faultOf(codec, bytes);
          if (fault)
            throw new Error(`${codec.name} ${fault}\nbytes: ${Buffer.from(bytes).toString("hex").slice(0, 4000)}`);
        }
        expect(process.memoryUsage().rss - before).toBeLessThan(LEFT_BYTES);
      },
      600_000,
    );
  }
});
