import { expect, test } from "bun:test";
import type { Json } from "../../protocol/json.ts";
import { canonicalInstants } from "./canonical-instants.ts";

const CANONICAL = { $date: "2026-01-31T09:30:00.000Z" };

test("[API-7] every well-formed instant, however deep, becomes UTC with milliseconds", () => {
  for (const given of ["2026-01-31T09:30:00Z", "2026-01-31T10:30:00+01:00", Date.UTC(2026, 0, 31, 9, 30)]) {
    const value: Json = { at: { $date: given }, list: [1, { $date: given }, { deep: { $date: given } }] };
    expect(canonicalInstants(value)).toEqual({ at: CANONICAL, list: [1, CANONICAL, { deep: CANONICAL }] });
  }
});

test("[API-7] what looks like an instant and is none stays as it is, and so does everything without one", () => {
  const values: Json[] = [
    null,
    5,
    "2026-01-31T09:30:00Z",
    { $date: "yesterday" },
    { $date: 1.5 },
    { $date: "2026-01-31T09:30:00Z", more: 1 },
    { a: [{ b: null }] },
    CANONICAL,
  ];
  for (const value of values) expect(canonicalInstants(value)).toBe(value);
});

test("keys named like prototypes are plain keys", () => {
  const value = JSON.parse('{"__proto__": {"$date": 0}, "constructor": 1}') as Json;
  expect(JSON.stringify(canonicalInstants(value))).toBe(
    '{"__proto__":{"$date":"1970-01-01T00:00:00.000Z"},"constructor":1}',
  );
});
