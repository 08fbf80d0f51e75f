import { describe, expect, test } from "bun:test";
import { refusalOf } from "../../../test/support/errors-of.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type EventQuery, readEventFilter } from "./event-filter.ts";
import { coverOf, parseTopic, patternsOf, topicOf } from "./event-topic.ts";
import type { EventAudience } from "./port.ts";
import { createTopicInterest } from "./topic-interest.ts";

const patterns = (query: EventQuery, byTarget = true) => patternsOf(readEventFilter(query), byTarget);

/** Whether a pattern of the network lets a topic through: `*` one segment, `>` one or more. */
function lets(pattern: string, topic: string): boolean {
  const wanted = pattern.split("/");
  const given = topic.split("/");
  return (
    wanted.every((part, index) => (part === ">" ? given.length > index : part === "*" || part === given[index])) &&
    (wanted.at(-1) === ">" || wanted.length === given.length)
  );
}

describe("topics (EVENT-2)", () => {
  test("are the type as a path with the target, and back again", () => {
    expect(topicOf("process.progress", "p1", "A")).toBe("ev/process/progress/p1");
    expect(topicOf("a", undefined, "A")).toBe("ev/a/-");
    expect(topicOf("editor.cursor", "o1", "A")).toBe("acc/ev/editor/cursor/o1/A");
    expect(parseTopic("ev/process/progress/p1")).toEqual({ type: "process.progress", target: "p1", owner: undefined });
    expect(parseTopic("acc/ev/editor/cursor/-/A")).toEqual({ type: "editor.cursor", target: undefined, owner: "A" });
  });
});

describe("a stream's patterns (EVENT-3)", () => {
  test("are as narrow as its filter", () => {
    expect(patterns({})).toEqual(["ev/>", "acc/ev/>"]);
    expect(patterns({ type: ["a.b", "process.*"] })).toEqual(["ev/a/b/*", "ev/process/>"]);
    expect(patterns({ type: ["a.b"], target: ["t", "u"] })).toEqual(["ev/a/b/t", "ev/a/b/u"]);
    expect(patterns({ type: ["a.b"], target: ["t", "u"] }, false)).toEqual(["ev/a/b/*"]);
    expect(patterns({ type: ["editor.cursor"], target: ["t"] })).toEqual(["acc/ev/editor/cursor/t/*"]);
    expect(patterns({ type: ["editor.*"] })).toEqual(["ev/editor/>", "acc/ev/editor/cursor/>"]);
  });

  test("let through every event its filter can match", () => {
    const types = ["a", "a.b", "a.b.c", "editor.cursor", "editor.cursor.x", "editor"];
    const queries: EventQuery[] = [
      {},
      { type: ["a.*"] },
      { type: ["a", "editor.*"] },
      { type: ["editor.cursor"] },
      { type: ["editor.cursor.*"] },
      { type: ["a.b"], target: ["t"] },
    ];
    for (const query of queries) {
      for (const type of types) {
        for (const target of [undefined, "t"]) {
          const wanted = (query.type ?? []).some((value) =>
            value.endsWith(".*") ? `${type}.`.startsWith(value.slice(0, -1)) : value === type,
          );
          if (query.type && !wanted) continue;
          if (query.target && (target === undefined || !query.target.includes(target))) continue;
          const topic = topicOf(type, target, "A");
          const through = patterns(query).some((pattern) => lets(pattern, topic));
          if (!through) throw new Error(`${JSON.stringify(query)} misses ${topic}`);
        }
      }
    }
  });

  test("are covered by wider ones", () => {
    const cover = (...list: string[]) => coverOf(new Set(list));
    expect(cover("ev/>", "ev/a/*", "ev/a/>", "acc/ev/editor/cursor/t/*")).toEqual(["ev/>", "acc/ev/editor/cursor/t/*"]);
    expect(cover("ev/a/*", "ev/a/t", "ev/a/b/t")).toEqual(["ev/a/*", "ev/a/b/t"]);
    expect(cover("ev/a/>", "ev/a/b/*", "ev/ab/*")).toEqual(["ev/a/>", "ev/ab/*"]);
    expect(cover("acc/ev/>", "acc/ev/editor/cursor/t/*", "acc/ev/editor/cursor/*/*")).toEqual(["acc/ev/>"]);
    expect(cover("acc/ev/editor/cursor/t/*", "acc/ev/editor/cursor/*/*")).toEqual(["acc/ev/editor/cursor/*/*"]);
  });
});

describe("a space's budget of patterns (EVENT-3)", () => {
  const world = () => {
    const watched = new Map<string, readonly string[]>();
    const interest = createTopicInterest({
      watch: (audience: EventAudience, list: readonly string[]) =>
        void watched.set(audience.scope === "space" ? audience.spaceId : "account", list),
    });
    const add = (query: EventQuery) => interest.add(readEventFilter(query));
    return { watched, add, interest };
  };
  const types = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `t${from + index}`);

  test("is 100 over all streams, and what is closed is given back", () => {
    const { add, watched } = world();
    const close = add({ spaceId: ["s"], type: types(100) });
    expect(watched.get("s")!.length).toBe(LIMITS.patternsPerSpace);
    expect(refusalOf(() => add({ spaceId: ["s"], type: ["one.more"] }))).toEqual({
      code: "events.too_many_patterns",
      details: { spaceId: "s", limit: 100 },
    });
    add({ spaceId: ["s"], type: types(50) });
    add({ spaceId: ["other"], type: ["one.more"] });
    close();
    close();
    expect(watched.get("s")!.length).toBe(50);
    add({ spaceId: ["s"], type: ["one.more"] });
  });

  test("is refused to one stream that asks for more", () => {
    const { add, watched } = world();
    expect(refusalOf(() => add({ spaceId: ["s"], type: types(101) })).code).toBe("events.too_many_patterns");
    expect(watched.size).toBe(0);
  });

  test("is not spent on what a wider pattern covers", () => {
    const { add, watched } = world();
    add({ spaceId: ["s"] });
    for (let i = 0; i < 300; i++) add({ spaceId: ["s"], type: [`t${i}`] });
    expect(watched.get("s")).toEqual(["acc/ev/>", "ev/>"]);
  });

  test("gives up the targets before it refuses", () => {
    const { add, watched } = world();
    add({ spaceId: ["s"], type: types(11), target: types(10) });
    expect(watched.get("s")).toEqual(
      types(11)
        .map((type) => `ev/${type}/*`)
        .sort(),
    );
  });

  test("holds for all spaces of a stream or none", () => {
    const { add, watched } = world();
    add({ spaceId: ["full"], type: types(100) });
    watched.clear();
    expect(refusalOf(() => add({ spaceId: ["empty", "full"], type: ["one.more"] })).code).toBe(
      "events.too_many_patterns",
    );
    expect(watched.size).toBe(0);
  });

  test("does not bind the account's own audience", () => {
    const { add, watched } = world();
    const close = add({ scope: ["account"], type: types(200) });
    expect(watched.get("account")!.length).toBe(200);
    close();
    expect(watched.get("account")).toEqual([]);
  });

  test("is not spent on what the service follows itself, which streams that want as much do not take back", () => {
    const { add, watched, interest } = world();
    const unfollow = interest.follow({ scope: "space", spaceId: "s" }, "ev/process/>");
    expect(watched.get("s")).toEqual(["ev/process/>"]);
    const close = add({ spaceId: ["s"], type: types(100) });
    expect(watched.get("s")!.length).toBe(101);
    close();
    const closeSame = add({ spaceId: ["s"], type: ["process.*", "process.done"] });
    expect(watched.get("s")).toEqual(["ev/process/>"]);
    closeSame();
    expect(watched.get("s")).toEqual(["ev/process/>"]);
    unfollow();
    unfollow();
    expect(watched.get("s")).toEqual([]);
  });

  test("the network is told once what every audience wants", () => {
    let calls: [string, number][] = [];
    const interest = createTopicInterest({
      watch: (audience, list) => void calls.push([audience.scope, list.length]),
    });
    interest.add(readEventFilter({ type: ["a"] }));
    interest.add(readEventFilter({ spaceId: ["s"], type: ["a", "b"] }));
    expect(calls).toEqual([
      ["account", 1],
      ["space", 2],
    ]);
    calls = [];
    interest.add(readEventFilter({ type: ["a"] }));
    expect(calls).toEqual([]);
  });
});
