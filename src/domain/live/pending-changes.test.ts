import { expect, test } from "bun:test";
import type { Effect } from "../../change/fold/apply-op.ts";
import type { Json } from "../../protocol/json.ts";
import type { LiveItem, RemovalReason } from "./live-entry.ts";
import { RecordPart } from "./live-record.ts";
import { mergeEffects } from "./merge-effects.ts";
import { PendingChanges } from "./pending-changes.ts";

const set = (path: string, payload: Json): Effect => ({
  type: "$set",
  path: path === "" ? [] : path.split("."),
  payload,
});
const unset = (path: string): Effect => ({ type: "$unset", path: path.split(".") });

function shown(kind: "added" | "updated") {
  return (id: string, n: number, ...effects: Effect[]): LiveItem => ({
    kind,
    part: new RecordPart(id, JSON.stringify({ id, n }), effects),
  });
}
const added = shown("added");
const updated = shown("updated");
const removed = (id: string, reason: RemovalReason = "deleted"): LiveItem => ({ kind: "removed", id, reason });

/** One write each, by version. */
function pendingOf(writes: Record<string, LiveItem[]>): { pending: PendingChanges; entries: unknown } {
  const pending = new PendingChanges();
  for (const [versionId, items] of Object.entries(writes)) pending.add([{ versionId, items }]);
  return { pending, entries: JSON.parse(pending.toChanges().json) };
}

const TABLE: [title: string, writes: Record<string, LiveItem[]>, entries: unknown][] = [
  ["nothing", {}, []],
  ["added, then removed: nothing", { v1: [added("a", 1)], v2: [removed("a")] }, []],
  [
    "added, then updated: added with the last text and all ops",
    { v1: [added("a", 1, set("", { n: 1 }))], v2: [updated("a", 2, set("n", 2))] },
    [{ versionId: "v2", added: [{ id: "a", doc: { id: "a", n: 2 }, ops: [set("", { n: 1 }), set("n", 2)] }] }],
  ],
  [
    "updated twice: one update at the last version",
    { v1: [updated("a", 1, set("n", 1))], v2: [updated("b", 1)], v3: [updated("a", 2, set("n", 2))] },
    [
      { versionId: "v2", updated: [{ id: "b", doc: { id: "b", n: 1 } }] },
      { versionId: "v3", updated: [{ id: "a", doc: { id: "a", n: 2 }, ops: [set("n", 2)] }] },
    ],
  ],
  [
    "updated, then removed: removed",
    { v1: [updated("a", 1)], v2: [removed("a", "filtered-out")] },
    [{ versionId: "v2", removed: [{ id: "a", reason: "filtered-out" }] }],
  ],
  [
    "removed, then added: both, so that the reader can follow",
    { v1: [removed("a", "displaced")], v2: [added("a", 2)] },
    [
      { versionId: "v1", removed: [{ id: "a", reason: "displaced" }] },
      { versionId: "v2", added: [{ id: "a", doc: { id: "a", n: 2 } }] },
    ],
  ],
  [
    "removed, added, updated: it stays an addition",
    { v1: [removed("a", "displaced")], v2: [added("a", 2)], v3: [updated("a", 3, set("n", 3))] },
    [
      { versionId: "v1", removed: [{ id: "a", reason: "displaced" }] },
      { versionId: "v3", added: [{ id: "a", doc: { id: "a", n: 3 }, ops: [set("n", 3)] }] },
    ],
  ],
  [
    "removed, added, removed again: once, for the last reason",
    { v1: [removed("a", "displaced")], v2: [added("a", 2)], v3: [removed("a", "deleted")] },
    [{ versionId: "v3", removed: [{ id: "a", reason: "deleted" }] }],
  ],
];

for (const [title, writes, entries] of TABLE) {
  test(`[LIVE-2] ${title}`, () => {
    const made = pendingOf(writes);
    expect(made.entries).toEqual(entries);
    expect(made.pending.entryCount).toBe((entries as unknown[]).length);
  });
}

test("what is counted shrinks again when it is cancelled", () => {
  const { pending } = pendingOf({ v1: [added("a", 1), added("b", 1)], v2: [removed("a")], v3: [removed("b")] });
  expect([pending.entryCount, pending.chars]).toEqual([0, 0]);
});

test("the frame is the payload as one SSE event", () => {
  const { pending } = pendingOf({ 'v"1': [added("ä\n", 1)] });
  const { json, frame } = pending.toChanges();
  expect(new TextDecoder().decode(frame)).toBe(`event: changes\ndata: ${json}\n\n`);
  expect(json).not.toContain("\n");
});

test("ops that are merged lead to the same record", () => {
  expect(mergeEffects([set("a.b", 1), set("c", 1)], [set("a", { x: 1 })])).toEqual([set("c", 1), set("a", { x: 1 })]);
  expect(mergeEffects([set("a", 1)], [unset("a")])).toEqual([unset("a")]);
  expect(mergeEffects([set("ab", 1)], [set("a", 1)])).toEqual([set("ab", 1), set("a", 1)]);
  // The set made the object `a`, which the unset leaves.
  expect(mergeEffects([set("a.b", 1)], [unset("a.b")])).toEqual([set("a.b", 1), unset("a.b")]);
  expect(mergeEffects([set("a.b", 1), unset("a.b")], [set("a.b", 2)])).toEqual([set("a.b", 2)]);
  expect(mergeEffects([set("", { a: 1 })], [set("a", 2)])).toEqual([set("", { a: 1 }), set("a", 2)]);
});

test("the ops of a write are made into text once, however many windows keep them for slow readers", () => {
  let made = 0;
  const large = {
    toJSON() {
      made++;
      return "large";
    },
  } as unknown as Json;
  const first = updated("a", 1, set("x", large));
  const second = updated("a", 2, set("", { y: large }));
  const windows = Array.from({ length: 3 }, () => new PendingChanges());
  for (const pending of windows) {
    pending.add([{ versionId: "v1", items: [first] }]);
    pending.add([{ versionId: "v2", items: [second] }]);
    const ops = ['{"type":"$set","path":["x"],"payload":"large"}', '{"type":"$set","path":[],"payload":{"y":"large"}}'];
    // One character more than the text: each op is counted with a comma.
    expect(pending.chars).toBe(`{"id":"a","doc":{"id":"a","n":2},"ops":[${ops.join(",")}]}`.length + 1);
  }
  expect(made).toBe(2);
  const frames = windows.map((pending) => pending.toChanges().json);
  expect(new Set(frames).size).toBe(1);
  expect(made).toBe(2);
});
