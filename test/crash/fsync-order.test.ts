/**
 * Invariant: no 2xx of a write leaves before the fsync of its commit. SIGKILL cannot reveal a missing fsync (the page
 * cache survives the process), so the system calls themselves are watched with strace.
 */
import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { attach } from "../support/server/files.ts";
import { createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";
import { firstUnsyncedName, firstUnsyncedResponse, parseTrace, type SystemCall, straceRuns } from "./strace-log.ts";

const traced = skipUnless(straceRuns(), "strace is absent or may not trace");

const TRACED_CALLS =
  "trace=fsync,fdatasync,sync_file_range,msync,write,writev,pwrite64,pwritev,sendto,sendmsg,recvfrom,recvmsg,read,readv,mkdir,mkdirat,link,linkat,rename,renameat,renameat2,openat";

describe("durability", () => {
  traced(
    "[STORE-6] no 2xx of a write leaves before the fsync of its commit, and of every new name up to the data root: modify, upsert, delete, create, settings, files",
    async () => {
      using dir = scratchDir("svc-strace");
      const log = join(dir.path, "calls.txt");
      const dataDir = join(dir.path, "not", "there", "yet");
      await using server = await startServer({
        wrapper: ["strace", "-f", "-y", "-s", "160", "-e", TRACED_CALLS, "-e", "signal=none", "-o", log],
        startTimeoutMs: 60_000,
        dataDir,
      });
      const { client } = server;
      const { id } = await client.get<{ id: string }>("/v1/account");
      const space = await createSpace(client);
      const items = await createCollection(client, space.id);
      for (let i = 0; i < 15; i++) {
        await items.modify([setFields(`m${i}`, { n: i })]);
        await items.upsert([{ id: `u${i}`, fields: { n: i } }]);
        if (i % 3 === 0) await items.deleteRecords([`m${i}`]);
        if (i % 5 === 0) await createObject(client, space.id);
        if (i % 5 === 1) await client.patch(`${items.path}/settings`, { set: { step: i } });
      }
      await client.put("/v1/account/metadata", { name: "durable" });
      await attach(client, space.id, items.objectId, new Uint8Array(200_000));
      await Promise.all(Array.from({ length: 64 }, (_, i) => items.modify([setFields(`p${i}`, { n: i })])));
      await server.stop(); // strace ends with it and has then written its log

      const calls = parseTrace(readFileSync(log, "utf8"));
      expect(walWrites(calls)).toBeGreaterThan(30);
      expect(calls.filter((call) => call.name === "fdatasync" || call.name === "fsync").length).toBeGreaterThan(20);
      const verdict = firstUnsyncedResponse(calls);
      expect(verdict.fault).toBeUndefined();
      expect(verdict.responses).toBeGreaterThan(100);
      const named = firstUnsyncedName(calls, dir.path);
      expect(named.fault).toBeUndefined();
      for (const name of ["not", "not/there", "not/there/yet", `not/there/yet/${id}`])
        expect(named.names).toContain(join(dir.path, name));
      for (const name of ["sdk", `sdk/${space.id}.db`, "wallet.key", "files", `files/${space.id}`])
        expect(named.names).toContain(join(dataDir, id, name));
    },
    180_000,
  );

  rule("[STORE-6] the checker itself finds a response that leaves too early", () => {
    const trace = (lines: string[]): SystemCall[] => parseTrace(lines.map((line) => `7 ${line}`).join("\n"));
    const request = 'recvfrom(9<socket:[1]>, "POST /v1/spaces/x/modify HTTP/1.1\\r\\n", 99, 0, NULL, NULL) = 40';
    const wal = 'pwrite64(12</d/sdk/a.db-wal>, "x", 24, 32) = 24';
    const sync = "fdatasync(12</d/sdk/a.db-wal>) = 0";
    const ok = 'sendto(9<socket:[1]>, "HTTP/1.1 200 OK\\r\\n", 17, 0, NULL, 0) = 17';
    expect(firstUnsyncedResponse(trace([request, wal, sync, ok]))).toEqual({ responses: 1 });
    expect(firstUnsyncedResponse(trace([request, wal, ok, sync])).fault).toContain("/d/sdk/a.db-wal");
    expect(firstUnsyncedResponse(trace([request, sync, wal, ok])).fault).toBeDefined();
    expect(firstUnsyncedResponse(trace([request, ok])).fault).toBeDefined();
    const made = 'mkdir("/d/new", 0700) = 0';
    expect(firstUnsyncedName(trace([request, made, ok]), "/d").fault).toContain("/d/new");
    expect(firstUnsyncedName(trace([request, made, "fsync(12</d>) = 0", ok]), "/d").names).toEqual(["/d/new"]);
    const there = 'mkdir("/d/new", 0700) = -1 EEXIST (File exists)';
    expect(firstUnsyncedName(trace([request, there, ok]), "/d")).toEqual({ responses: 1, names: [] });
    const unfinished = ["fdatasync(12</d/sdk/a.db-wal> <unfinished ...>", ok, "<... fdatasync resumed>) = 0"];
    expect(firstUnsyncedResponse(trace([request, wal, ...unfinished])).fault).toBeDefined();
  });
});

function walWrites(calls: readonly SystemCall[]): number {
  return calls.filter((call) => call.name.startsWith("pwrite") && (call.file ?? "").endsWith("-wal")).length;
}
