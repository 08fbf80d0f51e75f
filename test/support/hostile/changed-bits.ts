/** Stopped servers of which single bits are changed on the disk, where that leaves a database. */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { checksumOf } from "../../../src/base/checksum.ts";
import { scratchDir } from "../scratch.ts";
import type { Client, Row } from "../server/client.ts";
import {
  ANY_FIELDS,
  type Collection,
  createCollection,
  createSpace,
  openCollection,
  setFields,
} from "../server/fixtures.ts";
import { type RunningServer, startServer } from "../server/server.ts";

const LOCAL_FIELD = { key: "mark", kind: "string", scope: "local", mutableBy: "any" } as const;
export const RECORDS = 30;
/** In the text of every record, so that it is found among the bytes of the file. */
export const WORD = "unmistakable";

export interface Stopped extends Disposable {
  readonly root: string;
  readonly items: Collection;
  readonly path: string;
  /** The rows, as they were told before. */
  readonly rows: readonly Row[];
}

/** A stopped server with one space in it. */
export async function stopped(
  fill: (items: Collection, client: Client, path: string) => Promise<unknown> = async () => {},
): Promise<Stopped> {
  const root = scratchDir("svc-bits");
  await using server = await startServer({ dataDir: root.path });
  const space = await createSpace(server.client, "bits");
  const items = await createCollection(server.client, space.id, { fields: [...ANY_FIELDS, LOCAL_FIELD] });
  await items.modify(
    Array.from({ length: RECORDS }, (_, n) => setFields(`r${n}`, { n, s: `${WORD} ${n}.`, o: { deep: { n } } })),
  );
  const [account] = new Bun.Glob("*/sdk").scanSync({ cwd: root.path, onlyFiles: false });
  const path = `${root.path}/${account}/${space.id}.db`;
  await fill(items, server.client, path);
  const rows = (await items.query({ sort: ["id"] })).records;
  expect(await server.stop()).toBe(0);
  return { root: root.path, items, path, rows, [Symbol.dispose]: () => root[Symbol.dispose]() };
}

/** Changes a bit of each byte that stands behind each place where `text` is found, `offset` bytes from its start. */
export function flipAt(path: string, text: string | Uint8Array, offset: number, bit = 0): number {
  const bytes = readFileSync(path);
  let found = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    bytes[at + offset]! ^= 1 << bit;
    found++;
  }
  expect(found).toBeGreaterThan(0);
  writeFileSync(path, bytes);
  return found;
}

/** Whether what stands at a place of a file, of a length, is an id of the kind that is looked for. */
type IsPlace = (bytes: Buffer, at: number, length: number) => boolean;

/** Before the text of a row stands its id. */
export const IN_ITS_ROW: IsPlace = (bytes, at, length) => bytes[at + length] === "{".charCodeAt(0);

const PAGE_BYTES = 4096;
/** The first byte of a page of an index of SQLite (file format, section 1.6). */
const INDEX_LEAF = 0x0a;
const MOST_COLLECTIONS = 16;
/** In the index of rows by their keys the number of the collection stands before an id, and no digit behind it. */
export const IN_THE_INDEX: IsPlace = (bytes, at, length) =>
  bytes[at - (at % PAGE_BYTES)] === INDEX_LEAF &&
  bytes[at - 1]! < MOST_COLLECTIONS &&
  !/[0-9]/.test(String.fromCharCode(bytes[at + length]!));

/** Changes a bit of a record's id at each place of a kind. */
export function flipIn(path: string, id: string, isPlace: IsPlace): number {
  const bytes = readFileSync(path);
  let found = 0;
  for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1)) {
    if (!isPlace(bytes, at, id.length)) continue;
    bytes[at + id.length - 1]! ^= 1;
    found++;
  }
  writeFileSync(path, bytes);
  return found;
}

/** The value of the one row of a statement. */
export function storedValue<T>(path: string, sql: string): T {
  using db = new Database(path, { readonly: true });
  return db.query<{ value: T }, []>(sql).get()!.value;
}

export function again({ items }: Stopped, { client }: RunningServer): Collection {
  return openCollection(client, items);
}

/** A server that goes over all that is stored as soon as it starts, and again and again. */
export async function startChecking(dataDir: string): Promise<RunningServer> {
  return startServer({ dataDir, env: { SVC_STORAGE_CHECK_INTERVAL: "200ms" } });
}

/** Numbers of rows whose texts are not those of their checksums. */
export function damagedRows(path: string): number[] {
  using db = new Database(path, { readonly: true });
  return db
    .query<{ no: number; doc: string | null; doc_sum: number }, []>("SELECT no, doc, doc_sum FROM rows")
    .all()
    .flatMap(({ no, doc, doc_sum }) => ((doc === null ? 0 : checksumOf(doc)) === doc_sum ? [] : [no]));
}
