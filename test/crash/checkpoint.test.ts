/**
 * Invariant: a crash while the log of a space is copied into its database, on a thread of its own and with writers going
 * on, loses nothing that was acknowledged and damages nothing. SIGKILL at random moments under writes that keep the log
 * being copied all the time.
 */
import { expect } from "bun:test";
import { closeSync, openSync, readSync } from "node:fs";
import { databaseFiles } from "../support/database-files.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { Client } from "../support/server/client.ts";
import { type Collection, createCollection, createSpace, openCollection } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { checkCopiedDatabases, checkDatabases } from "./database-check.ts";

const ROUNDS = rounds(3);
const WRITERS = 4;
const PAGE_RECORDS = 500;
/** Of about a hundred frames each: the log is copied from 6,000 on, and begins anew from 12,000 on. */
const PAGES_BEFORE_KILL = 60;
const TEXT = "x".repeat(400);

rule(
  `[STORE-6] ${ROUNDS} kills while the log is copied: every acknowledged page is whole, and the files are sound`,
  async () => {
    const rng = createRng(runSeed("checkpoint"));
    using root = scratchDir("svc-checkpoint");
    let items: Collection | undefined;
    const acknowledged: string[] = [];
    let restarts = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await using server = await startServer({ dataDir: root.path });
      items = items
        ? openCollection(server.client, items)
        : await createCollection(server.client, (await createSpace(server.client)).id);
      const held = items;
      expect(await lost(server.client, held, acknowledged)).toEqual([]);
      const wanted = acknowledged.length + rng.int(PAGES_BEFORE_KILL, 2 * PAGES_BEFORE_KILL);
      let killed = false;
      const write = async (writer: number): Promise<void> => {
        for (let page = 0; !killed; page++) {
          const token = `${round}-${writer}-${page}`;
          const records = Array.from({ length: PAGE_RECORDS }, (_, n) => ({
            id: `${token}-${n}`,
            fields: { s: token, o: { text: TEXT } },
          }));
          try {
            await held.upsert(records);
          } catch (error) {
            if (killed) return; // the answer never came
            throw error;
          }
          if (!killed) acknowledged.push(token);
          if (acknowledged.length >= wanted && !killed) {
            killed = true;
            await server.kill();
          }
        }
      };
      await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
      expect(server.stderr()).not.toContain("checkpoint failed");
      restarts = Math.max(restarts, logRestarts(root.path));
      if (round % 3 === 2) expect(checkCopiedDatabases(root.path)).toEqual([]);
    }
    // The log did begin anew, so it was copied to its end meanwhile.
    expect(restarts).toBeGreaterThan(0);
    await using last = await startServer({ dataDir: root.path });
    expect(await lost(last.client, items!, acknowledged)).toEqual([]);
    expect(await last.stop()).toBe(0);
    expect(checkDatabases(root.path)).toEqual([]);
    console.log(`checkpoint crash: ${ROUNDS} kills, ${acknowledged.length} pages, ${restarts} logs begun anew`);
  },
  240_000,
);

/** Acknowledged pages that are not there as a whole. */
async function lost(client: Client, items: Collection, tokens: readonly string[]): Promise<string[]> {
  const pipeline = [{ $group: { _id: "$s", n: { $sum: 1 } } }];
  const { records } = await client.post<{ records: { id: string; n: number }[] }>(`${items.path}/aggregate`, {
    ...items.target,
    pipeline,
  });
  const counts = new Map(records.map(({ id, n }) => [id, n]));
  return tokens.filter((token) => counts.get(token) !== PAGE_RECORDS);
}

/** How often the logs below a root have begun anew, by their headers (sqlite.org/fileformat2.html § 4.1). */
function logRestarts(root: string): number {
  let count = 0;
  for (const path of databaseFiles(root)) {
    const header = Buffer.alloc(32);
    let file: number;
    try {
      file = openSync(`${path}-wal`, "r");
    } catch {
      continue; // a database that was closed has none
    }
    if (readSync(file, header) === header.length) count += header.readUInt32BE(12);
    closeSync(file);
  }
  return count;
}
