import { expect, test } from "bun:test";
import { errorOf } from "../../../test/support/errors-of.ts";
import { holdTimers } from "../../../test/support/held-timers.ts";
import { silentLog } from "../../base/log.ts";
import { ChildLost } from "../../search/child-process.ts";
import type { IndexAnswer } from "../../search/index/index-protocol.ts";
import { createSearchTurns } from "./search-turns.ts";

const ANSWER: IndexAnswer = { hits: [], incomplete: false };

/** A process of the indexes in which the test answers. */
function world(limits: { deadlineMs?: number; holdUpMs?: number } = { deadlineMs: 60_000, holdUpMs: 60_000 }) {
  const sent: { name: string; answer: PromiseWithResolvers<IndexAnswer> }[] = [];
  const arrivals: (() => void)[] = [];
  let kills = 0;
  const turns = createSearchTurns({
    ask({ query }) {
      const answer = Promise.withResolvers<IndexAnswer>();
      sent.push({ name: query.query, answer });
      arrivals.shift()?.();
      return answer.promise;
    },
    kill() {
      kills++;
      sent.at(-1)?.answer.reject(new ChildLost("killed"));
    },
    isStopped: () => false,
    log: silentLog,
    ...limits,
  });
  return {
    turns,
    sent,
    kills: () => kills,
    run: (spaceId: string, name: string) =>
      turns.run({
        kind: "search",
        files: { spaceId, source: "", index: "" },
        config: { properties: {}, datasets: {} },
        query: { query: name, limit: 1, maxData: 1, mode: "fts" },
      }),
    /** Waits until so many searches were sent. */
    async sentAre(count: number): Promise<void> {
      while (sent.length < count) await new Promise<void>((arrived) => arrivals.push(arrived));
    },
  };
}

test("[SEARCH-7] the process has one search at a time, and spaces take turns", async () => {
  const { run, sent, sentAre } = world();
  const all = [run("a", "a1"), run("a", "a2"), run("a", "a3"), run("b", "b1"), run("b", "b2")];
  for (let at = 0; at < 5; at++) {
    await sentAre(at + 1);
    expect(sent).toHaveLength(at + 1);
    sent[at]!.answer.resolve(ANSWER);
  }
  await Promise.all(all);
  expect(sent.map(({ name }) => name)).toEqual(["a1", "b1", "a2", "b2", "a3"]);
});

test("[SEARCH-7] a search is late only once it has begun; then it is refused, and the next one is sent", async () => {
  const { turns, run, sent, sentAre } = world({ deadlineMs: 1, holdUpMs: 60_000 });
  const late = errorOf(run("a", "late"));
  const next = run("a", "next");
  await sentAre(1);
  turns.begun("other");
  turns.begun("a");
  expect(await late).toMatchObject({ code: "server.unavailable", refusal: { code: "search.took_long" } });
  await sentAre(2);
  sent[1]!.answer.resolve(ANSWER);
  expect(await next).toBe(ANSWER);
});

for (const when of ["before it began", "after it began"] as const)
  test(`[SEARCH-7] a search has less time once one of another space waits, also where that came ${when}`, async () => {
    const { turns, run, sent, sentAre } = world({ deadlineMs: 60_000, holdUpMs: 1 });
    const late = errorOf(run("a", "late"));
    await sentAre(1);
    if (when === "after it began") turns.begun("a");
    const next = run("b", "next");
    if (when === "before it began") turns.begun("a");
    expect(await late).toMatchObject({ code: "server.unavailable", refusal: { code: "search.took_long" } });
    await sentAre(2);
    sent[1]!.answer.resolve(ANSWER);
    expect(await next).toBe(ANSWER);
  });

for (const [who, limitMs] of [
  ["nobody", 10_000],
  ["one of another space", 4_000],
] as const)
  test(`[SEARCH-7] a search for which ${who} waits has ${limitMs / 1000} seconds`, async () => {
    using timers = holdTimers();
    const { turns, run, sent, sentAre, kills } = world({});
    const late = run("a", "late");
    await sentAre(1);
    turns.begun("a");
    const others = [run("a", "same space"), ...(who === "nobody" ? [] : [run("b", "other space")])];
    timers.pass(limitMs - 1);
    expect(kills()).toBe(0);
    timers.pass(1);
    expect(kills()).toBe(1);
    await expect(late).rejects.toMatchObject({ refusal: { code: "search.took_long" } });
    for (let at = 1; at <= others.length; at++) {
      await sentAre(at + 1);
      sent[at]!.answer.resolve(ANSWER);
    }
    await Promise.all(others);
  });

test("[SEARCH-7] a search whose process was lost is sent once more, and refused when it is lost again", async () => {
  const { run, sent, sentAre } = world();
  const lost = errorOf(run("a", "lost"));
  for (let at = 0; at < 2; at++) {
    await sentAre(at + 1);
    sent[at]!.answer.reject(new ChildLost("gone"));
  }
  expect(await lost).toMatchObject({ code: "server.unavailable", refusal: { code: "search.lost_twice" } });
});
