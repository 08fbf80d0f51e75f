/** A data root with something of everything in it, ways to harm its files, and what is asked of a server that meets that. */
import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { searchWhole } from "../models/search.ts";
import type { Rng } from "../rng.ts";
import { type ScratchDir, scratchDir } from "../scratch.ts";
import type { Client, Reply } from "../server/client.ts";
import { attach } from "../server/files.ts";
import { type Collection, createCollection, createObject, createSpace, setFields } from "../server/fixtures.ts";
import { startServer } from "../server/server.ts";

const RECORDS = 40;
/** Of each file: more than goes inline. */
export const CONTENT_BYTES = 90_000;

export interface WholeRoot extends Disposable {
  readonly path: string;
  readonly spaces: readonly Collection[];
  /** The file attached in each space. */
  readonly fileIds: readonly string[];
  /** Files of one kind, their paths from the root. */
  files(kind: FileKind): string[];
  /** A copy of it, to be harmed. */
  copy(): ScratchDir;
}

/** What lies in a data root. */
const FILE_KINDS = {
  wallet: /\/wallet\.key$/,
  account: /\/sdk\/account\.db$/,
  /** All spaces, the account's own among them. */
  space: /\/sdk\/bafy\w+\.db$/,
  index: /\/index\/bafy\w+\.db$/,
  content: /\/files\/.+/,
} as const;
export type FileKind = keyof typeof FILE_KINDS;

export async function makeWholeRoot(spaceCount: number): Promise<WholeRoot> {
  const root = scratchDir("svc-whole");
  const server = await startServer({ dataDir: root.path });
  const spaces: Collection[] = [];
  const fileIds: string[] = [];
  for (let i = 0; i < spaceCount; i++) {
    const space = await createSpace(server.client, `space ${i}`);
    const items = await createCollection(server.client, space.id);
    await items.modify(
      Array.from({ length: RECORDS }, (_, n) => setFields(`r${n}`, { n, s: `${n} of space ${i} `.repeat(12) })),
    );
    for (let n = 0; n < 5; n++) await items.modify([setFields("r0", { n: -n })]);
    const bytes = new Uint8Array(CONTENT_BYTES).fill(i + 1);
    fileIds.push((await attach(server.client, space.id, items.objectId, bytes, { name: "whole.bin" })).fileId);
    await createObject(server.client, space.id, { initialProperties: { svc: { name: `another of ${i}` } } });
    spaces.push(items);
  }
  await searchWhole(server.client, spaces[0]!.spaceId, { query: "another" });
  if ((await server.stop()) !== 0) throw new Error("the server did not stop in order");
  return {
    path: root.path,
    spaces,
    fileIds,
    files: (kind) => filesBelow(root.path).filter((path) => FILE_KINDS[kind].test(path)),
    copy() {
      const copy = scratchDir("svc-harmed");
      cpSync(root.path, copy.path, { recursive: true });
      return copy;
    },
    [Symbol.dispose]: () => root[Symbol.dispose](),
  };
}

export function filesBelow(root: string): string[] {
  return readdirSync(root, { recursive: true })
    .map((path) => `/${path}`)
    .filter((path) => statSync(root + path).isFile());
}

/** One bit of a file is another. Answers where. */
export function flipBit(path: string, rng: Rng): string {
  const bytes = readFileSync(path);
  const at = rng.int(0, bytes.length - 1);
  bytes[at]! ^= 1 << rng.int(0, 7);
  writeFileSync(path, bytes);
  return `a bit of byte ${at} of ${bytes.length}`;
}

/** A stretch of a file is noise, as a sector that was written elsewhere is. */
export function spoilSector(path: string, rng: Rng): string {
  const bytes = readFileSync(path);
  const at = rng.int(0, Math.max(0, Math.floor(bytes.length / 512) - 1)) * 512;
  const noise = Uint8Array.from({ length: Math.min(512, bytes.length - at) }, () => rng.int(0, 255));
  bytes.set(noise, at);
  writeFileSync(path, bytes);
  return `the sector at ${at} of ${bytes.length}`;
}

/** What says that it is a database is gone. */
export function spoilHead(path: string): void {
  const bytes = readFileSync(path);
  bytes.fill(0x5a, 0, 512);
  writeFileSync(path, bytes);
}

export function truncate(path: string, rng: Rng): string {
  const { size } = statSync(path);
  const to = rng.int(0, size - 1);
  truncateSync(path, to);
  return `cut at ${to} of ${size}`;
}

/** What can be asked of a space. */
export async function askSpace(client: Client, items: Collection, round: string): Promise<Reply[]> {
  const { path, target, objectId } = items;
  const replies: Reply[] = [];
  const ask = async (method: "GET" | "POST" | "PATCH", where: string, body?: object): Promise<void> => {
    replies.push(await client.request(method, `${path}${where}`, body ? { body: body as never } : {}));
  };
  await ask("GET", "");
  await ask("POST", "/query", { ...target, sort: ["id"] });
  await ask("POST", "/query", { ...target, filter: { n: { $gt: 5 } } });
  await ask("POST", "/objects/query", {});
  await ask("GET", "/types");
  await ask("GET", "/debug");
  await ask("GET", `/objects/${objectId}/history`);
  await ask("POST", "/search", { query: "another", mode: "fts" });
  await ask("POST", "/modify", { ...target, records: [setFields(`w${round}`, { n: 1 }), setFields("r0", { n: 7 })] });
  await ask("POST", "/upsert", { ...target, records: [{ id: `u${round}`, fields: { n: 2 } }] });
  await ask("POST", "/objects", {});
  await ask("PATCH", "/settings", { set: { round } });
  await ask("POST", "/delete-records", { ...target, recordIds: ["r3"] });
  return replies;
}

/** What is wrong with an answer: a server that meets damage refuses in words, and is no server that failed. */
export function faultOf({ status, text }: Reply): string | undefined {
  if (status < 500) return undefined;
  return status === 507 && /"code":"storage\.\w+"/.test(text) ? undefined : `${status} ${text.slice(0, 300)}`;
}
