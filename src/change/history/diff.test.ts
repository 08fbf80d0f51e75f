import { expect, test } from "bun:test";
import type { HistoryRecordDiff } from "../../protocol/history.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { ABSENT, type RecordState } from "../fold/record-fold.ts";
import { diffRecord } from "./diff.ts";

const live = (fields: JsonObject): RecordState => ({
  kind: "live",
  doc: { id: "r", _ver: { id: "x" }, ...fields },
  bytesAtMost: 0,
});
const gone: RecordState = { kind: "tombstone", doc: { id: "r", _deletedAt: { $date: "x" } } };

const CASES: [
  what: string,
  before: RecordState,
  after: RecordState,
  diff: Omit<HistoryRecordDiff, "id"> | undefined,
][] = [
  ["nothing and nothing", ABSENT, ABSENT, undefined],
  ["nothing and a tombstone", ABSENT, gone, undefined],
  ["equal records", live({ a: [1, { b: 2 }] }), live({ a: [1, { b: 2 }] }), undefined],
  ["only bookkeeping differs", live({}), live({ _ver: { id: "y" }, _traces: { y: ["t"] } }), undefined],
  ["an empty record appears", ABSENT, live({}), { kind: "added" }],
  ["a record appears", ABSENT, live({ a: 1 }), { kind: "added", fields: [{ path: ["a"], after: 1 }] }],
  ["a record goes", live({ a: 1 }), gone, { kind: "deleted", fields: [{ path: ["a"], before: 1 }] }],
  ["a record was never there", live({ a: 1 }), ABSENT, { kind: "deleted", fields: [{ path: ["a"], before: 1 }] }],
  [
    "leaves below objects",
    live({ o: { a: 1, b: 2, c: { d: 3 } } }),
    live({ o: { a: 1, b: 3, c: { e: null } } }),
    {
      kind: "changed",
      fields: [
        { path: ["o", "b"], before: 2, after: 3 },
        { path: ["o", "c", "d"], before: 3 },
        { path: ["o", "c", "e"], after: null },
      ],
    },
  ],
  [
    "arrays are leaves",
    live({ t: [1] }),
    live({ t: [1, 2] }),
    { kind: "changed", fields: [{ path: ["t"], before: [1], after: [1, 2] }] },
  ],
  [
    "an object that empties",
    live({ o: { a: 1 } }),
    live({ o: {} }),
    {
      kind: "changed",
      fields: [
        { path: ["o", "a"], before: 1 },
        { path: ["o"], after: {} },
      ],
    },
  ],
  [
    "a value that becomes an object",
    live({ o: 1 }),
    live({ o: { a: 1 } }),
    {
      kind: "changed",
      fields: [
        { path: ["o"], before: 1 },
        { path: ["o", "a"], after: 1 },
      ],
    },
  ],
  [
    "names that objects have of their own",
    live({ o: { constructor: 1 } }),
    live({ o: { toString: 1 } }),
    {
      kind: "changed",
      fields: [
        { path: ["o", "constructor"], before: 1 },
        { path: ["o", "toString"], after: 1 },
      ],
    },
  ],
];

test.each(CASES)("[HIST-3] %s", (_what, before, after, diff) => {
  expect(diffRecord("r", "items", before, after)).toEqual(diff && { id: "r", ...diff });
});

test("[HIST-3] modifiedAt of an object's row is left out, of any other record it is not", () => {
  const diff = (dataset: string) => diffRecord("r", dataset, live({ modifiedAt: 1 }), live({ modifiedAt: 2 }));
  expect(diff("objects")).toBeUndefined();
  expect(diff("items")).toMatchObject({ kind: "changed" });
});
