import { expect, test } from "bun:test";
import fc from "fast-check";
import type { HistoryEntry } from "../../store/tables/history-table.ts";
import { HistoryGraph } from "./graph.ts";

/** Numbers of changes leave gaps: those of other objects lie between. 1 is the root, which is in no graph. */
const ROOT = 1;
const numberOf = (index: number): number => ROOT + 3 * (index + 1);

/** A random graph: each entry names parents among those before it, or the root. */
const graphs = fc
  .array(fc.tuple(fc.array(fc.nat(), { maxLength: 4 }), fc.boolean()), { minLength: 1, maxLength: 400 })
  .map((draft) =>
    draft.map(([picks, hidden], index): HistoryEntry => {
      const parents = new Set(
        picks.map((pick) => (index === 0 ? ROOT : numberOf(Math.max(0, index - 1 - (pick % 6))))),
      );
      if (parents.size === 0) parents.add(index === 0 ? ROOT : numberOf(index - 1));
      return {
        change: numberOf(index),
        lamport: index * 2,
        writer: index % 3,
        datasetNo: index % 2,
        hidden,
        timeMs: index * 1000,
        parents: [...parents],
      };
    }),
  );

function naiveAncestors(entries: readonly HistoryEntry[], of: number): Set<number> {
  const byChange = new Map(entries.map((entry) => [entry.change, entry]));
  const found = new Set<number>();
  const open = [of];
  for (let change = open.pop(); change !== undefined; change = open.pop()) {
    const entry = byChange.get(change);
    if (!entry || found.has(change)) continue;
    found.add(change);
    open.push(...entry.parents);
  }
  return found;
}

test("ancestors are what the parents lead to, and the lowest place outside is known", () => {
  fc.assert(
    fc.property(graphs, fc.nat(), fc.boolean(), (entries, pick, strictly) => {
      const graph = new HistoryGraph();
      graph.add(entries.slice(0, entries.length >> 1));
      graph.add(entries.slice(entries.length >> 1));
      const index = pick % entries.length;
      const expected = naiveAncestors(entries, numberOf(index));
      if (strictly) expected.delete(numberOf(index));
      const ancestors = graph.ancestors([index], strictly);
      const found = entries.filter((_, at) => ancestors.member[at] === 1).map((entry) => entry.change);
      expect(new Set(found)).toEqual(expected);
      const outside = entries.filter((entry) => !expected.has(entry.change)).map((entry) => entry.lamport);
      expect(ancestors.lowestOutside).toBe(Math.min(Number.POSITIVE_INFINITY, ...outside));
    }),
  );
});

test("entries are found by number and give back what they were", () => {
  fc.assert(
    fc.property(graphs, (entries) => {
      const graph = new HistoryGraph();
      graph.add(entries);
      expect(graph.size).toBe(entries.length);
      for (const [index, entry] of entries.entries()) {
        expect(graph.indexOf(entry.change)).toBe(index);
        expect(graph.indexOf(entry.change + 1)).toBe(-1);
        expect({
          change: graph.changeAt(index),
          lamport: graph.lamportAt(index),
          timeMs: graph.timeMsAt(index),
          writer: graph.writerAt(index),
          datasetNo: graph.datasetNoAt(index),
          hidden: graph.isHidden(index),
        }).toEqual({
          change: entry.change,
          lamport: entry.lamport,
          timeMs: entry.timeMs,
          writer: entry.writer,
          datasetNo: entry.datasetNo,
          hidden: entry.hidden,
        });
        const children = (change: number) => entries.filter(({ parents }) => parents.includes(change)).length;
        const [parent] = entry.parents;
        const isLine = entry.parents.length === 1 && parent !== ROOT && children(parent!) === 1;
        expect(graph.lineBelow(index)).toBe(isLine ? graph.indexOf(parent!) : -1);
      }
    }),
    { numRuns: 30 },
  );
});

test("what comes later is no ancestor, and may lower the place outside", () => {
  const entry = (index: number, lamport: number, parents: number[]): HistoryEntry => ({
    change: numberOf(index),
    lamport,
    writer: 1,
    datasetNo: 1,
    hidden: false,
    timeMs: 0,
    parents,
  });
  const graph = new HistoryGraph();
  graph.add([entry(0, 5, [ROOT]), entry(1, 6, [numberOf(0)])]);
  const ancestors = graph.ancestors([1]);
  expect(ancestors.lowestOutside).toBe(Number.POSITIVE_INFINITY);
  graph.add([entry(2, 3, [ROOT])]);
  graph.refresh(ancestors, 2);
  expect(ancestors.lowestOutside).toBe(3);
  expect(ancestors.member[2]).toBeUndefined();
});
