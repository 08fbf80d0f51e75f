import { describe, expect, test } from "bun:test";
import { packedBytes, paidBytes } from "../../../test/support/hostile/forged-change.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type ChangeBody, decodeBody, encodeBody } from "./change-body.ts";

const set = (id: string, value: string) => ({ id, upsert: true, ops: [{ type: "$set" as const, path: "v", value }] });
const many = (count: number): ChangeBody => ({
  dataset: "items",
  records: Array.from({ length: count }, (_, i) => set(`r${i}`, "")),
});

describe("the body of a change", () => {
  test("[CHANGE-3] says no more than fits into 2 MiB of JSON, whoever writes it", () => {
    const body = (chars: number): ChangeBody => ({ dataset: "items", records: [set("a", "x".repeat(chars))] });
    const beyond = body(LIMITS.openedChangeBytes);
    expect(encodeBody(beyond)).toBeUndefined();
    expect(decodeBody(paidBytes(JSON.stringify(beyond)))).toBeUndefined();
    const within = body(LIMITS.openedChangeBytes - 200);
    expect(decodeBody(encodeBody(within)!)?.body).toEqual(within);
  });

  const repeated: Record<string, ChangeBody> = {
    "a text of a million times the same": { dataset: "items", records: [set("a", "x".repeat(1_000_000))] },
    "records by the thousand that say nothing": many(10_000),
    "trace ids on many records": {
      ...many(500),
      traceIds: Array.from({ length: LIMITS.traceIds }, () => "t".repeat(LIMITS.traceIdChars)),
    },
  };
  for (const [name, body] of Object.entries(repeated))
    test(`[CHANGE-3] ${name}: what it makes others store is paid for, or it is no body`, () => {
      const encoded = encodeBody(body)!;
      const text = JSON.stringify(body);
      expect(encoded.length).toBeGreaterThan(text.length / 33);
      expect(encoded.length).toBeLessThan(LIMITS.sealedChangeBytes);
      expect(decodeBody(encoded)?.body).toEqual(body);
      expect(decodeBody(packedBytes(text))).toBeUndefined();
    });

  test("what is written every day is packed as small as it gets", () => {
    const words = (i: number) => `the text of record ${i * 7919} of ${Math.sin(i)}`;
    const body = { dataset: "items", records: Array.from({ length: 500 }, (_, i) => set(`r${i}`, words(i))) };
    const text = Buffer.from(JSON.stringify(body));
    expect(encodeBody(body)!.length).toBe(1 + Bun.zstdCompressSync(text, { level: 1 }).length);
  });

  test("[CHANGE-3] more than 10,000 records, or more trace ids than 4 MiB in all of them, are refused", () => {
    const traced = { ...many(1_000), traceIds: Array.from({ length: 32 }, () => "t".repeat(256)) };
    for (const body of [many(10_001), traced])
      expect(decodeBody(paidBytes(JSON.stringify(body), 16 << 20))).toBeUndefined();
  });
});
