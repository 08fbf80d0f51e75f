/**
 * Files of the data root that were harmed while nobody looked: cut short, with bits and sectors changed, not to be written, of a
 * later version. The server refuses in words or repairs; it never fails, ends or begins again and again, and what is not
 * harmed is served. `ROUNDS` for more of it; `SEED` repeats a run.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { cpSync, renameSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import {
  askSpace,
  CONTENT_BYTES,
  type FileKind,
  faultOf,
  filesBelow,
  flipBit,
  makeWholeRoot,
  spoilHead,
  spoilSector,
  truncate,
  type WholeRoot,
} from "../support/hostile/damaged-root.ts";
import { searchWhole } from "../support/models/search.ts";
import { createRng, type Rng, runSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import { type JsonObject, type SpaceInfo, until } from "../support/server/client.ts";
import { rowsOf, setName, shareObject, startDevice, untilSynced } from "../support/server/devices.ts";
import { openCollection, setFields } from "../support/server/fixtures.ts";
import { type FailedStart, type RunningServer, refusedStart, startServer } from "../support/server/server.ts";
import { skipUnless } from "../support/skip.ts";

const ROUNDS = rounds(1);
const SPACES = 6;
const rng = createRng(runSeed("damaged-files"));

let whole: WholeRoot;
beforeAll(async () => {
  whole = await makeWholeRoot(SPACES);
}, 120_000);
afterAll(() => whole[Symbol.dispose]());

const HARMS: { readonly [name: string]: (path: string, rng: Rng) => string } = {
  "bits changed": (path, random) => Array.from({ length: 6 }, () => flipBit(path, random)).join(", "),
  "a sector of noise": spoilSector,
  "cut short": truncate,
};

/** Everything that is asked of every space, and what was wrong with an answer. */
async function faultsOf({ client }: RunningServer, round: string): Promise<string[]> {
  const faults: string[] = [];
  for (const items of whole.spaces)
    for (const [index, reply] of (await askSpace(client, items, round)).entries()) {
      const fault = faultOf(reply);
      if (fault) faults.push(`request ${index} of ${items.spaceId}: ${fault}`);
    }
  return faults;
}

/** A start that was refused says which file is in the way, in a line for people. */
function expectWords({ code, stderr }: FailedStart, path: string): void {
  expect(code).not.toBe(0);
  expect(stderr).toContain(path);
  expect(stderr).not.toMatch(/^\s+at /m);
}

describe("harmed databases of spaces", () => {
  for (const [name, harm] of Object.entries(HARMS))
    for (let round = 0; round < ROUNDS; round++)
      rule(
        `[STORE-2] ${name}, round ${round}: every answer is one or a refusal in words, and the server goes on`,
        async () => {
          using copy = whole.copy();
          const done: string[] = [];
          const healthy = whole.spaces[0]!;
          for (const path of whole.files("space"))
            if (whole.spaces.some(({ spaceId }) => spaceId !== healthy.spaceId && path.includes(spaceId)))
              done.push(`${path}: ${harm(copy.path + path, rng)}`);
          for (let start = 0; start < 2; start++) {
            // The second time all that is stored is gone over meanwhile.
            const env: Record<string, string> = start === 1 ? { SVC_STORAGE_CHECK_INTERVAL: "300ms" } : {};
            await using server = await startServer({ dataDir: copy.path, bootstrapped: false, env });
            expect({ done, faults: await faultsOf(server, `${start}`) }).toEqual({ done, faults: [] });
            for (const { status } of await askSpace(server.client, healthy, "healthy"))
              expect(status).toBeLessThan(405);
            expect(await server.client.get<JsonObject>("/v1/health")).toMatchObject({ status: "ok" });
            expect(await server.stop()).toBe(0);
          }
        },
        120_000,
      );
});

describe("harmed files of the account", () => {
  const kinds: FileKind[] = ["wallet", "account"];
  for (const kind of kinds)
    for (const [name, harm] of Object.entries(HARMS))
      rule(
        `[STORE-2] ${kind}, ${name}: the start is refused with the file's name, or all of it is served`,
        async () => {
          using copy = whole.copy();
          const [path] = whole.files(kind);
          const done = harm(copy.path + path!, rng);
          const before = statSync(copy.path + path!).size;
          const started = await startServer({ dataDir: copy.path, bootstrapped: false }).then(
            (server) => ({ server }),
            (error: unknown) => ({ said: String(error) }),
          );
          if ("said" in started) {
            expectWords(await refusedStart({ dataDir: copy.path }), path!.split("/").at(-1)!);
            expect({ done, size: statSync(copy.path + path!).size }).toEqual({ done, size: before });
            return;
          }
          await using server = started.server;
          expect({ done, faults: await faultsOf(server, "account") }).toEqual({ done, faults: [] });
          expect(await server.stop()).toBe(0);
        },
        60_000,
      );
});

rule(
  "[STORE-2] a harmed search index is made anew, and finds all again",
  async () => {
    using copy = whole.copy();
    for (const path of whole.files("index")) spoilHead(copy.path + path);
    await using server = await startServer({ dataDir: copy.path });
    for (const [index, { spaceId }] of whole.spaces.entries()) {
      const { hits } = await searchWhole(server.client, spaceId, { query: `another of ${index}` });
      expect(hits.length).toBeGreaterThan(0);
    }
    expect(await server.stop()).toBe(0);
  },
  60_000,
);

rule(
  "[STORE-2] harmed bytes of a file's content are never given out as what they were",
  async () => {
    using copy = whole.copy();
    for (const path of whole.files("content")) flipBit(copy.path + path, rng);
    await using server = await startServer({ dataDir: copy.path });
    for (const [index, { spaceId }] of whole.spaces.entries()) {
      const reply = await fetch(`${server.base}/v1/spaces/${spaceId}/files/${whole.fileIds[index]}`);
      const bytes = new Uint8Array(await reply.arrayBuffer().catch(() => new ArrayBuffer(0)));
      if (reply.status >= 500) expect(reply.status).toBe(507);
      else if (reply.status === 200 && bytes.length === CONTENT_BYTES)
        expect(bytes.every((byte) => byte === index + 1)).toBe(true);
    }
  },
  60_000,
);

describe("files of a later version", () => {
  for (const kind of ["account", "space"] as const)
    rule(`[STORE-2] ${kind}: refused in words, and left as they are`, async () => {
      using copy = whole.copy();
      const paths = whole.files(kind).filter((path) => kind === "account" || path.includes(whole.spaces[1]!.spaceId));
      for (const path of paths) {
        using db = new Database(copy.path + path);
        db.run("PRAGMA user_version = 999999");
      }
      if (kind === "account") {
        expectWords(await refusedStart({ dataDir: copy.path }), "account.db");
        return;
      }
      await using server = await startServer({ dataDir: copy.path, bootstrapped: false });
      const replies = await askSpace(server.client, whole.spaces[1]!, "later");
      for (const { status, text } of replies.slice(1, 4))
        expect([status, text]).toEqual([507, expect.stringContaining("storage.version")]);
      expect(server.stderr()).toContain("use the newer svc");
      expect((await server.client.get<SpaceInfo[]>("/v1/spaces")).length).toBe(SPACES);
    });
});

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
for (const leftKiB of [0, 24, 160, 700])
  skipUnless(isRoot, "a file system of its own cannot be mounted here")(
    `[STORE-2] a disk with ${leftKiB} KiB left: what does not fit is refused in words, and what was acknowledged is there`,
    async () => {
      using copy = scratchDir("svc-full");
      expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=48m", "tmpfs", copy.path]).status).toBe(0);
      try {
        cpSync(whole.path, copy.path, { recursive: true });
        const filler = `${copy.path}/filler`;
        const { bavail, bsize } = statfsSync(copy.path);
        writeFileSync(filler, new Uint8Array(Math.max(0, bavail * bsize - (leftKiB << 10))));
        const kept: string[] = [];
        const started = await startServer({ dataDir: copy.path, bootstrapped: false }).then(
          (server) => ({ server }),
          (error: unknown) => ({ said: String(error) }),
        );
        if ("said" in started) expect(started.said).toMatch(/full|no space/i);
        else {
          await using server = started.server;
          expect(await faultsOf(server, "full")).toEqual([]);
          const items = openCollection(server.client, whole.spaces[0]!);
          for (let i = 0; i < 40; i++) {
            const body = { ...items.target, records: [setFields(`full${i}`, { s: "x".repeat(9_000) })] };
            const reply = await server.client.request("POST", `${items.path}/modify`, { body });
            if (reply.status === 200) kept.push(`full${i}`);
            else expect([reply.status, faultOf(reply)]).toEqual([507, undefined]);
          }
          if (leftKiB < 160) expect(kept.length).toBeLessThan(40);
          const made = await server.client.request("POST", "/v1/spaces", { body: { name: "too much" } });
          expect(faultOf(made)).toBeUndefined();
          expect(await server.client.get<JsonObject>("/v1/health")).toMatchObject({ status: "ok" });
          await server.stop();
        }
        rmSync(filler);
        await using after = await startServer({ dataDir: copy.path });
        const rows = (await openCollection(after.client, whole.spaces[0]!).query({ limit: 500 })).records;
        expect(kept.filter((id) => !rows.some((row) => row.id === id))).toEqual([]);
        expect(await faultsOf(after, "after")).toEqual([]);
        for (const reply of await askSpace(after.client, whole.spaces[0]!, "room"))
          expect(reply.status).toBeLessThan(300);
      } finally {
        spawnSync("umount", ["-l", copy.path]);
      }
    },
    60_000,
  );

rule(
  "[STORE-2] [SYNC-7] a space whose file is damaged is refused until that is moved away; then all of it that another device has comes back",
  async () => {
    using root = scratchDir("svc-heals");
    await using owner = await startDevice({ lan: true });
    let member = await startDevice({ lan: true, dataDir: root.path });
    try {
      const { id, objectId } = await shareObject(owner, member);
      await setName(member, id, objectId, "said by who will lose it");
      await untilSynced(member, id);
      const file = `${root.path}/${member.accountId}/sdk/${id}.db`;
      expect(await member.server.stop()).toBe(0);
      spoilHead(file);

      member = await startDevice({ lan: true, dataDir: root.path });
      const refused = await member.server.client.request("POST", `/v1/spaces/${id}/objects/query`, { body: {} });
      expect([refused.status, refused.text]).toEqual([507, expect.stringContaining("storage.damaged")]);
      expect(member.server.stderr()).toContain(`${id}.db`);
      expect(await member.server.stop()).toBe(0);

      renameSync(file, `${file}.damaged`);
      member = await startDevice({ lan: true, dataDir: root.path });
      await until(async () => (await rowsOf(member, id)).includes("said by who will lose it"), "all of it", 45_000);
    } finally {
      await member.server.stop();
    }
  },
  180_000,
);

/** A directory that nobody can write to, whoever runs the tests. */
function mountReadOnly(path: string): boolean {
  return (
    spawnSync("mount", ["--bind", path, path]).status === 0 &&
    spawnSync("mount", ["-o", "remount,ro,bind", path]).status === 0
  );
}
const unmount = (path: string): void => void spawnSync("umount", ["-l", path]);

skipUnless(isRoot, "directories cannot be mounted here")(
  "[STORE-2] a data root that cannot be written refuses the start in words; directories below it refuse what needs them",
  async () => {
    using copy = whole.copy();
    try {
      expect(mountReadOnly(copy.path)).toBe(true);
      const refused = await refusedStart({ dataDir: copy.path });
      expectWords(refused, copy.path);
    } finally {
      unmount(copy.path);
    }
    const files = filesBelow(copy.path);
    const contents = `${copy.path}/${files.find((path) => path.includes("/files/"))!.split("/")[1]}/files`;
    try {
      expect(mountReadOnly(contents)).toBe(true);
      await using server = await startServer({ dataDir: copy.path, bootstrapped: false });
      expect(await faultsOf(server, "read-only")).toEqual([]);
      const { path, objectId } = whole.spaces[0]!;
      const reply = await fetch(`${server.base}${path}/objects/${objectId}/files`, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream" },
        body: new Uint8Array(100_000),
      });
      expect([reply.status, await reply.text()]).toEqual([507, expect.stringContaining("storage.read_only")]);
    } finally {
      unmount(contents);
    }
  },
  60_000,
);
