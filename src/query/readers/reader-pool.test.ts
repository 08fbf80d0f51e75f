import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorOf } from "../../../test/support/errors-of.ts";
import { createRng, runSeed } from "../../../test/support/rng.ts";
import { COLLECTION_ID, createRowsTable } from "../../../test/support/rows-table.ts";
import { DEFAULT_LIMITS } from "../aggregate/aggregate-run.ts";
import { rowsOf } from "../rows/row-source.ts";
import { createReaderPool } from "./reader-pool.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-readers-"));
const path = join(folder, "rows.db");
const readers = createReaderPool();
afterAll(() => {
  readers.close();
  rmSync(folder, { recursive: true });
});

const rng = createRng(runSeed("reader pool"));
const text = (chars: string) => Array.from({ length: 200_000 }, () => rng.pick([...chars])).join("");
const list = Array.from({ length: 1_000 }, (_, i) => i);
await Bun.write(path, createRowsTable([{ id: "a", ...{ x: list, y: list, z: list } }]).serialize());
const job = (pipeline: unknown) =>
  ({ kind: "aggregate", source: rowsOf(COLLECTION_ID), pipeline, limits: DEFAULT_LIMITS }) as const;

test("[INDEX-5] an aggregate runs on a reader, and its faults come back as they are", async () => {
  const { records } = await readers.run(path, job([{ $unwind: "$x" }, { $count: "n" }]));
  expect(records).toEqual(['{"n":1000}']);
  const bad = readers.run(path, job([{ $nope: 1 }]));
  expect(await errorOf(bad)).toMatchObject({ code: "aggregate.bad_pipeline", details: { stage: "$nope" } });
  const large = readers.run(path, {
    ...job([{ $group: { _id: "$id" } }]),
    limits: { ...DEFAULT_LIMITS, groupLimit: 0 },
  });
  expect(await errorOf(large)).toMatchObject({ code: "aggregate.limit_exceeded", details: { limit: "group" } });
});

test("[INDEX-5] [API-18] records of a query or a pipeline may come packed, and are the same", async () => {
  const many = join(folder, "many.db");
  const rows = Array.from({ length: 3_000 }, (_, i) => ({ id: `r${i}`, s: `é${"x".repeat(200)}${i}` }));
  await Bun.write(many, createRowsTable(rows).serialize());
  const asked = { source: rowsOf(COLLECTION_ID), filter: { id: { $ne: "r7" } }, sort: ["-s"], includeTotal: true };
  const query = { kind: "query", ...asked } as const;
  const plain = await readers.run(many, query);
  const { records, ...more } = await readers.run(many, { kind: "packed", of: query });
  expect([records.count, more.total, more.hasNext]).toEqual([2_999, 2_999, false]);
  expect(records.pieces.length).toBeGreaterThan(1);
  expect(Buffer.concat(records.pieces).toString() === plain.records.join(",")).toBe(true);
  const pipeline = await readers.run(many, {
    kind: "packed",
    of: job([{ $match: { id: "r7" } }, { $project: { id: 1 } }]),
  });
  expect(pipeline.records.pieces.map((piece) => Buffer.from(piece).toString())).toEqual(['{"id":"r7"}']);
});

test("[INDEX-5] an aggregate ends when its client goes away, and its reader takes the next job", async () => {
  const client = new AbortController();
  // A thousand million documents: it would not end by itself.
  const endless = readers.run(
    path,
    job([{ $unwind: "$x" }, { $unwind: "$y" }, { $unwind: "$z" }, { $count: "n" }]),
    client.signal,
  );
  const also = readers.run(
    path,
    job([{ $unwind: "$x" }, { $unwind: "$y" }, { $unwind: "$z" }, { $count: "n" }]),
    client.signal,
  );
  client.abort();
  await Promise.allSettled([endless, also]);
  expect(await errorOf(endless)).toMatchObject({ code: "server.unavailable" });
  const { records } = await readers.run(path, job([{ $project: { id: 1 } }]));
  expect(records).toEqual(['{"id":"a"}']);
});

test("[INDEX-5] a reader that is at one document for long is ended as a thread, and another takes the next job", async () => {
  const dear = join(folder, "dear.db");
  await Bun.write(dear, createRowsTable([{ id: "a", ...{ s: `${text("ab").repeat(5)}d` } }]).serialize());
  const $or = Array.from({ length: 100 }, (_, i) => ({ s: { $regex: `a[ab]{${800 + i}}d` } }));
  const job = { kind: "query", source: rowsOf(COLLECTION_ID), sort: undefined, includeTotal: false } as const;
  // Beside other tests the next thread may need a while to begin, which counts.
  const impatient = createReaderPool({ size: 1, deadlineMs: 1_500, graceMs: 100 });
  try {
    const endless = impatient.run(dear, { ...job, filter: { $or } });
    expect(await errorOf(endless)).toMatchObject({ code: "server.unavailable" });
    expect((await impatient.run(dear, { ...job, filter: { id: "a" } })).records).toHaveLength(1);
  } finally {
    impatient.close();
  }
});
