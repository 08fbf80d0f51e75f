import { expect, test } from "bun:test";
import { countTurns } from "../../../test/support/loop-turns.ts";
import { createRng } from "../../../test/support/rng.ts";
import { PIECE_CHARS, packRecords } from "../../protocol/packed-records.ts";
import { recordsResponse, textOfRecords } from "./records-response.ts";
import { JsonRecords } from "./reply.ts";

const texts = ["", "x", '"\\', "é中😀", "\ud7ff", "a".repeat(1_000), "é".repeat(PIECE_CHARS + 1)];

/** Records of about so many characters together. */
function recordsOf(seed: number, chars: number): string[] {
  const rng = createRng(seed);
  const records: string[] = [];
  for (let left = chars; left > 0; left -= records.at(-1)!.length)
    records.push(JSON.stringify({ id: `r${records.length}`, text: rng.pick(texts) }));
  return records;
}

for (const seed of [1, 2, 3])
  for (const chars of [0, 500, PIECE_CHARS - 1, 5 * PIECE_CHARS])
    test(`[API-18] ${chars} characters of records (seed ${seed}) arrive as they are, packed or not`, async () => {
      const records = recordsOf(seed, chars);
      const tail = ',"total":7,"hasNext":true';
      const whole = `{"records":[${records.join(",")}]${tail}}`;
      const packed = packRecords([...records]);
      expect(packed.count).toBe(records.length);
      for (const reply of [new JsonRecords(records, tail), new JsonRecords(packed, tail)]) {
        const response = recordsResponse(200, reply);
        expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
        expect((await response.text()) === whole).toBe(true);
        expect(textOfRecords(reply) === whole).toBe(true);
      }
    });

test("[API-18] a long reply is made a piece at a time, as its reader takes it, with turns for others between", async () => {
  const size = 40 * PIECE_CHARS;
  const records = Array.from({ length: size / 128 }, () => JSON.stringify("r".repeat(126)));
  let asked = 0;
  const watched = new Proxy(records, {
    get(list, key) {
      const at = typeof key === "string" ? Number(key) : Number.NaN;
      if (at > asked) asked = at;
      return Reflect.get(list, key) as unknown;
    },
  });
  const response = recordsResponse(200, new JsonRecords(watched, ""));
  const reader = response.body!.getReader();
  const first = await reader.read();
  const second = await reader.read();
  for (const { value } of [first, second]) expect(value!.length).toBeLessThan(2 * PIECE_CHARS);
  expect(asked).toBeLessThan(records.length / 4);
  const turns = countTurns();
  let bytes = first.value!.length + second.value!.length;
  for (let next = await reader.read(); !next.done; next = await reader.read()) bytes += next.value.length;
  const waited = turns();
  expect(bytes).toBe(`{"records":[${records.join(",")}]}`.length);
  expect(waited).toBeGreaterThan(30);
});
