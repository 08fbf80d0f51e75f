import { expect, test } from "bun:test";
import { join } from "node:path";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { scratchDir } from "../../../test/support/scratch.ts";
import { openSpaceStore } from "../space-store.ts";
import { CHANGE_ROOT } from "./change-table.ts";

const ROUNDS = 400;
const TARGETS = ["network", "peer"] as const;
const seed = runSeed("kept nowhere else");

interface Stored {
  readonly objectNo: number;
  readonly writer: number;
  counts: boolean;
}

test("[SYNC-2] what is kept nowhere else is what a plain list of who keeps what says", () => {
  using dir = scratchDir("svc-sync-table");
  const store = openSpaceStore(join(dir.path, "space.db"));
  const { db, sync, changes } = store;
  const rng = createRng(seed);
  for (const writer of [1, 2]) changes.addWriter(new Uint8Array(32), new Uint8Array(16).fill(writer));
  let stored = new Map<number, Stored>();
  let kept = { network: new Set<number>(), peer: new Set<number>() };
  let next = 0;

  const expected = () => {
    const somebodies = new Set([...stored.values()].flatMap(({ writer, counts }) => (counts ? writer : [])));
    somebodies.delete(0); // nobody
    const counts = new Map<number, number>();
    for (const [no, { objectNo, writer }] of stored)
      if (somebodies.has(writer) && TARGETS.every((target) => !kept[target].has(no)))
        counts.set(objectNo, (counts.get(objectNo) ?? 0) + 1);
    return [...counts].sort();
  };
  const unconfirmed = (target: (typeof TARGETS)[number]) => {
    const somebodies = new Set([...stored.values()].flatMap(({ writer, counts }) => (counts ? writer : [])));
    somebodies.add(0); // what everybody computes goes with what follows it
    return [...stored].flatMap(([no, { writer }]) => (somebodies.has(writer) && !kept[target].has(no) ? no : []));
  };
  /** Whether each of the changes counts that were inserted of the two writers, until their rows are written, once a batch. */
  let brought: [boolean[], boolean[]] = [[], []];
  const saveWriters = () => {
    for (const [at, counts] of brought.entries())
      changes.saveWriter(changes.writerByNo(at + 1), {
        changes: counts.length,
        counted: counts.filter((each) => each).length,
      });
    brought = [[], []];
  };
  /** Nobody is asked to keep what does not count: the marks pass over it, and it is to be confirmed once it does. */
  const passOver = () => {
    const writers = changes.takeCountedAnew();
    sync.unconfirmPassedOver(writers);
    for (const [no, { writer }] of stored)
      for (const target of TARGETS) if (writers.includes(writer) && no <= sync.markOf(target)) kept[target].delete(no);
  };
  const add = () => {
    const id = new Uint8Array(32);
    new DataView(id.buffer).setUint32(0, ++next);
    const change = { objectNo: rng.int(1, 4), writer: rng.int(0, 2), counts: rng.chance(0.8) };
    const rest = { lamport: next, seq: next, aclPos: 0, timeMs: 0, datasetNo: 1, kind: CHANGE_ROOT, bytes: id };
    stored.set(changes.insert({ ...change, ...rest, id }), change);
    if (change.writer > 0) brought[change.writer - 1]!.push(change.counts);
  };
  const some = (least: number, most: number) =>
    Array.from({ length: rng.int(least, most) }, () => rng.int(0, sync.newestNo())).filter((no) => no > 0);
  const judge = () => {
    const writer = rng.int(1, 2);
    const counts = rng.chance(0.5);
    for (const [no, each] of stored) {
      if (each.writer !== writer || each.counts === counts) continue;
      each.counts = counts;
      changes.setCounts(no, counts);
    }
  };
  const advance = (target: (typeof TARGETS)[number]) => {
    const upto = rng.int(0, sync.newestNo());
    const again = some(0, 2).filter((no) => no <= sync.markOf(target));
    for (let no = sync.markOf(target) + 1; no <= upto; no++) kept[target].add(no);
    for (const no of again) kept[target].add(no);
    sync.advance(target, { upto, again });
  };
  const confirm = (target: (typeof TARGETS)[number]) => {
    const numbers = some(1, 5);
    for (const no of numbers) kept[target].add(no);
    sync.confirm(target, numbers);
  };
  const unconfirm = (target: (typeof TARGETS)[number]) => {
    const numbers = some(0, 3);
    for (const no of numbers) kept[target].delete(no);
    sync.unconfirm(target, numbers);
  };
  const forget = (target: (typeof TARGETS)[number]) => {
    kept[target].clear();
    sync.forget(target);
  };

  for (let round = 0; round < ROUNDS; round++) {
    const target = rng.pick(TARGETS);
    const before = { stored, kept };
    stored = new Map([...stored].map(([no, each]) => [no, { ...each }]));
    kept = { network: new Set(kept.network), peer: new Set(kept.peer) };
    const step = rng.pick([
      () => Array.from({ length: rng.int(1, 20) }, add),
      () => confirm(target),
      () => unconfirm(target),
      () => rng.chance(0.3) && advance(target),
      () => rng.chance(0.1) && forget(target),
      () => judge(),
    ]);
    const isUndone = rng.chance(0.2);
    const write = db.transaction(() => {
      step();
      saveWriters();
      passOver();
      if (rng.chance(0.5)) sync.keptNowhereElse();
      if (isUndone) throw new Error("undone");
    });
    try {
      write();
    } catch (error) {
      if (!isUndone) throw error;
      ({ stored, kept } = before);
    }
    if (rng.chance(0.7)) expect([...sync.keptNowhereElse()].sort()).toEqual(expected());
    if (rng.chance(0.3)) expect(sync.unconfirmed(target, 10_000).map(({ no }) => no)).toEqual(unconfirmed(target));
    if (rng.chance(0.2))
      for (const objectNo of [1, 2, 3, 4])
        expect(sync.keptNowhereElseOf(objectNo)).toBe(new Map(expected()).get(objectNo) ?? 0);
  }
  store.close();
});
