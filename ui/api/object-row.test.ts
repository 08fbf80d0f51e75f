import { expect, test } from "bun:test";
import { chatCounters, objectName, objectTitle, objectTypes } from "./object-row.ts";

test("name and types come from svc; an object without a name is told by its id", () => {
  const row = { id: "bafyabcdef", svc: { name: "Shopping", types: ["page", 7, "nav"] } };
  expect([objectTitle(row), objectName(row), objectTypes(row)]).toEqual(["Shopping", "Shopping", ["page", "nav"]]);
  expect([objectTitle({ id: "bafyabcdef" }), objectTypes({ id: "x", svc: null })]).toEqual(["Unnamed …abcdef", []]);
});

test("a chat's counters are 0 where they are absent", () => {
  expect(chatCounters({ id: "c", chat: { unreadCount: 3, unreadReactionsCount: 1 } })).toEqual({
    unread: 3,
    mentions: 0,
    reactions: 1,
  });
  expect(chatCounters({ id: "c" })).toEqual({ unread: 0, mentions: 0, reactions: 0 });
});
