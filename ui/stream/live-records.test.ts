import { expect, test } from "bun:test";
import type { AnyRecord } from "../api/api-client.ts";
import { applyChange } from "./live-records.ts";
import { compareRecords } from "./record-order.ts";

const ids = (records: readonly AnyRecord[]) => records.map((record) => record.id);

test("[PAGE-3] added, updated and removed records reach the window", () => {
  const before: AnyRecord[] = [
    { id: "a", n: 1 },
    { id: "b", n: 2 },
  ];
  const after = applyChange(before, {
    added: [{ id: "c", doc: { id: "c", n: 0 } }],
    updated: [{ id: "b", doc: { id: "b", n: 5 } }],
    removed: [{ id: "a" }],
  }).toSorted(compareRecords(["n"]));
  expect(after).toEqual([
    { id: "c", n: 0 },
    { id: "b", n: 5 },
  ]);
  expect(ids(before)).toEqual(["a", "b"]);
});

test("[PAGE-3] mixed types sort as the server sorts them", () => {
  const ascending: AnyRecord[] = [
    { id: "0missing" },
    { id: "1null", v: null },
    { id: "2number", v: -3 },
    { id: "3number", v: 20 },
    { id: "4string", v: "20" },
    { id: "5string", v: "\uffff" },
    { id: "6string", v: "\u{1f600}" },
    { id: "7object", v: { a: 1 } },
    { id: "8false", v: false },
    { id: "9true", v: true },
    { id: "9xdate", v: { $date: "2026-01-31T09:30:00.000Z" } },
    { id: "9ydate", v: { $date: "2026-02-01T00:00:00.000Z" } },
  ];
  const shuffled = ascending.toSorted((a, b) => Bun.hash.crc32(a.id) - Bun.hash.crc32(b.id));
  expect(ids(shuffled)).not.toEqual(ids(ascending));
  expect(ids(shuffled.toSorted(compareRecords(["v"])))).toEqual(ids(ascending));
});

test("[PAGE-3] ties break by id ascending, descending or not; paths reach into objects", () => {
  const records: AnyRecord[] = [
    { id: "b", svc: { name: "x" } },
    { id: "a", svc: { name: "x" } },
    { id: "c", svc: { name: "y" } },
  ];
  expect(ids(records.toSorted(compareRecords(["-svc.name"])))).toEqual(["c", "a", "b"]);
});
