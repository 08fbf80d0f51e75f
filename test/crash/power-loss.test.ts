/**
 * Invariant: what was acknowledged is there after the power went, whatever of the writes since the last sync reached the disk.
 * A server's writes and syncs are logged by strace; the disk is built anew as it may have been at random moments, with
 * unsynced writes dropped, kept and torn, and opened. `ROUNDS` for more moments; `SEED` repeats a run.
 */
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { databaseFiles } from "../support/database-files.ts";
import { createRng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import {
  type Collection,
  createCollection,
  createObject,
  createSpace,
  openCollection,
  setFields,
} from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";
import { checkDatabases } from "./database-check.ts";
import { type DiskCall, readDiskLog, replayDisk } from "./disk-log.ts";
import { straceRuns } from "./strace-log.ts";

const CUTS = rounds(30);
/** After so many of the moments a server is started over what is left. */
const SERVED_EACH = 10;

const CALLS =
  "trace=pwrite64,pwritev,write,writev,fsync,fdatasync,ftruncate,unlink,unlinkat,rename,renameat,renameat2,sendto,sendmsg";

/** Ids of records that were acknowledged before call `count`. */
function acknowledged(calls: readonly DiskCall[], count: number): string[] {
  return calls.slice(0, count).flatMap((call) => {
    if (call.kind !== "sent" || !call.text.startsWith("HTTP/1.1 200")) return [];
    return [...call.text.matchAll(/"(p\d+-\d+)"/g)].map(([, id]) => id!);
  });
}

/** Ids of live records, as SQLite alone finds them. */
function storedIds(root: string, { spaceId }: Collection): Set<string> {
  const path = databaseFiles(root).find((file) => file.includes(spaceId))!;
  using db = new Database(path);
  const rows = db.query<{ id: string }, []>("SELECT id FROM rows WHERE state = 1 AND id LIKE 'p%'").all();
  return new Set(rows.map(({ id }) => id));
}

skipUnless(straceRuns(), "strace is absent or may not trace")(
  `[STORE-6] ${CUTS} losses of power: what was acknowledged is there, and every database is whole`,
  async () => {
    const rng = createRng(runSeed("power-loss"));
    using root = scratchDir("svc-power");
    using before = scratchDir("svc-power-before");
    using logs = scratchDir("svc-power-log");
    const calm = await startServer({ dataDir: root.path });
    const items = await createCollection(calm.client, (await createSpace(calm.client)).id);
    await calm.stop();
    cpSync(root.path, before.path, { recursive: true });

    const log = join(logs.path, "calls.txt");
    const traced = await startServer({
      dataDir: root.path,
      env: { SVC_INDEX_ENABLED: "false" },
      wrapper: ["strace", "-f", "-y", "-xx", "-s", "70000", "-e", CALLS, "-e", "signal=none", "-o", log],
      startTimeoutMs: 60_000,
    });
    const { modify, upsert, deleteRecords } = openCollection(traced.client, items);
    for (let i = 0; i < 12; i++) {
      const ids = (many: number) => Array.from({ length: many }, (_, n) => `p${i}-${n}`);
      await modify(ids(6).map((id) => setFields(id, { n: i, s: "x".repeat(rng.int(0, 6_000)) })));
      await upsert([{ id: `p${i}-7`, fields: { n: i } }]);
      await Promise.all(ids(3).map((id) => modify([setFields(id, { n: -i })])));
      await modify([setFields(`gone${i}`, { n: i })]);
      if (i % 3 === 0) await deleteRecords([`gone${i}`]);
      if (i % 4 === 0) await createObject(traced.client, items.spaceId);
    }
    await traced.stop();

    const calls = readDiskLog(
      readFileSync(log, "latin1"),
      (path) => path.startsWith(root.path) && /\/sdk\/[^/]+\.db(-wal|-journal)?$/.test(path),
    );
    const syncs = calls.filter(({ kind }) => kind === "sync").length;
    expect(acknowledged(calls, calls.length).length).toBeGreaterThan(100);
    expect(syncs).toBeGreaterThan(30);
    let unsynced = 0;
    for (let cut = 0; cut < CUTS; cut++) {
      const count = rng.int(1, calls.length);
      using after = scratchDir("svc-power-after");
      cpSync(before.path, after.path, { recursive: true });
      replayDisk(calls, count, rng, (path) => after.path + path.slice(root.path.length));
      if (calls[count - 1]!.kind === "write") unsynced++;
      const wanted = acknowledged(calls, count);
      if (cut % SERVED_EACH === 0) {
        await using server = await startServer({ dataDir: after.path, env: { SVC_INDEX_ENABLED: "false" } });
        const rows = (await openCollection(server.client, items).query({ limit: 1_000 })).records;
        expect({ count, lost: wanted.filter((id) => !rows.some((row) => row.id === id)) }).toEqual({ count, lost: [] });
        await openCollection(server.client, items).modify([setFields("after", { n: 1 })]);
        expect(await server.stop()).toBe(0);
      } else {
        const stored = storedIds(after.path, items);
        expect({ count, lost: wanted.filter((id) => !stored.has(id)) }).toEqual({ count, lost: [] });
      }
      expect({ count, faults: checkDatabases(after.path) }).toEqual({ count, faults: [] });
    }
    console.log(`power loss: ${CUTS} moments of ${calls.length} calls with ${syncs} syncs`);
    expect(unsynced).toBeGreaterThan(CUTS / 10);
  },
  Math.max(180_000, CUTS * 3_000),
);

rule("[STORE-6] a write during which another thread did something is read whole from the log", () => {
  const lines = [
    `7 pwrite64(5</a.db>, "\\x61\\x62", 2, 8 <unfinished ...>`,
    "8 fdatasync(6</b.db>) = 0",
    "7 <... pwrite64 resumed>) = 2",
    `7 pwrite64(5</a.db>, "\\x63", 1, 10 <unfinished ...>`,
    "7 <... pwrite64 resumed>) = ?",
  ];
  expect(readDiskLog(lines.join("\n"), () => true)).toEqual([
    { kind: "sync", path: "/b.db" },
    { kind: "write", path: "/a.db", at: 8, bytes: Buffer.from("ab") },
    { kind: "write", path: "/a.db", at: 10, bytes: Buffer.from("c") },
  ]);
});

rule("[STORE-6] the simulation itself finds a commit that was acknowledged before its sync", () => {
  using dir = scratchDir("svc-power-self");
  const path = join(dir.path, "sdk", "a.db");
  const hex = (text: string) =>
    [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  const lines = [
    `7 pwrite64(5<${hex(path)}>, "${hex("kept")}", 4, 0) = 4`,
    `7 fdatasync(5<${hex(path)}>) = 0`,
    `7 pwrite64(5<${hex(path)}>, "${hex("lost")}", 4, 0) = 4`,
    `7 sendto(9<socket:[1]>, "${hex('HTTP/1.1 200 OK "p1-1"')}", 22, 0, NULL, 0) = 22`,
  ];
  const calls = readDiskLog(lines.join("\n"), (file) => file.endsWith(".db"));
  expect(calls.map(({ kind }) => kind)).toEqual(["write", "sync", "write", "sent"]);
  expect(acknowledged(calls, 4)).toEqual(["p1-1"]);
  const found = new Set<string>();
  for (let seed = 0; seed < 40; seed++) {
    rmSync(join(dir.path, "b.db"), { force: true });
    replayDisk(calls, 4, createRng(seed), () => join(dir.path, "b.db"));
    found.add(readFileSync(join(dir.path, "b.db"), "utf8"));
  }
  expect([...found].sort()).toEqual(["kept", "lost"]);
});
