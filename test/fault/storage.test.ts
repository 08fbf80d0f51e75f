/**
 * Storage that fails: a file that cannot grow any further, files of a newer version, files that are no database. The
 * server says so, acknowledges nothing that is not stored, and is whole again once the cause is gone.
 */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { databaseFiles } from "../support/database-files.ts";
import { searchWhole } from "../support/models/search.ts";
import { openToOthers } from "../support/open-to-others.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { JsonObject, Page, SpaceInfo } from "../support/server/client.ts";
import { attach } from "../support/server/files.ts";
import {
  type Collection,
  createCollection,
  createSpace,
  openCollection,
  setFields,
} from "../support/server/fixtures.ts";
import { refusedStart, startServer } from "../support/server/server.ts";

describe("a disk that is full", () => {
  /** No file may grow beyond this; a write past it fails as on a full disk (EFBIG, its signal ignored). */
  const LIMIT_KIB = 1_200;
  const wrapper = ["bash", "-c", `trap '' XFSZ; ulimit -f ${LIMIT_KIB}; exec "$@"`, "limited"];

  rule(
    "[CHANGE-10] a failed commit fails its waiters alone: what was acknowledged is there, what failed is not",
    async () => {
      using root = scratchDir("svc-full");
      const calm = await startServer({ dataDir: root.path });
      const space = await createSpace(calm.client);
      const items = await createCollection(calm.client, space.id);
      await calm.stop();

      const acknowledged = new Set<string>();
      const failed = new Set<string>();
      const limited = await startServer({ dataDir: root.path, wrapper });
      try {
        const filler = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(6_000))).toString("base64");
        for (let batch = 0; batch < 60 && failed.size < 24; batch++) {
          await Promise.all(
            Array.from({ length: 8 }, async (_, i) => {
              const id = `b${batch}-${i}`;
              const reply = await limited.client.request("POST", `${items.path}/modify`, {
                body: { ...items.target, records: [setFields(id, { s: filler() })] },
              });
              if (reply.status === 200) acknowledged.add(id);
              else {
                expect([reply.status, reply.text]).toEqual([507, expect.stringContaining('"storage.')]);
                failed.add(id);
              }
            }),
          );
        }
        expect(acknowledged.size).toBeGreaterThan(0);
        expect(failed.size).toBeGreaterThan(0);
        expect(await limited.client.get<JsonObject>("/v1/health")).toMatchObject({ status: "ok" });
        const seen = (await openCollection(limited.client, items).query()).records.map((row) => row.id);
        expect(seen.sort()).toEqual([...acknowledged].sort());
      } finally {
        await limited.kill();
      }

      await using after = await startServer({ dataDir: root.path });
      const collection = openCollection(after.client, items);
      const kept = (await collection.query()).records.map((row) => row.id);
      expect(kept.sort()).toEqual([...acknowledged].sort());
      const retried = [...failed][0]!;
      await collection.modify([setFields(retried, { s: "now it fits" })]);
      expect(await collection.find(retried)).toMatchObject({ s: "now it fits" });
    },
    60_000,
  );
});

describe("another program that holds a database", () => {
  rule(
    "[STORE-4] its lock holds up writes to that space alone, which are refused in words and go on once it is gone",
    async () => {
      await using server = await startServer();
      const held = await createCollection(server.client, (await createSpace(server.client, "held")).id);
      const free = await createCollection(server.client, (await createSpace(server.client, "free")).id);
      const path = databaseFiles(server.dataDir).find((file) => file.includes(held.spaceId))!;
      using other = new Database(path);
      other.run("BEGIN IMMEDIATE");
      let isAnswered = false;
      const body = { ...held.target, records: [setFields("a", { n: 1 })] };
      const waiting = server.client.request("POST", `${held.path}/modify`, { body }).then((reply) => {
        isAnswered = true;
        return reply;
      });
      for (let n = 0; n < 20; n++) {
        await free.modify([setFields(`f${n}`, { n })]);
        expect((await held.query()).records).toEqual([]);
      }
      expect(isAnswered).toBe(false);
      const { status, text } = await waiting;
      expect([status, text]).toEqual([
        503,
        expect.stringContaining("Another program has this space's database locked"),
      ]);
      other.run("ROLLBACK");
      await held.modify([setFields("a", { n: 2 })]);
      expect(await held.find("a")).toMatchObject({ n: 2 });
    },
    60_000,
  );
});

describe("other users of the machine", () => {
  rule(
    "[STORE-7] whatever the umask, nothing below a data root is open to them, while it is used and after a restart",
    async () => {
      using root = scratchDir("svc-umask");
      const wrapper = ["bash", "-c", 'umask 0; exec "$@"', "open"];
      const kinds = [
        /\.db$/,
        /\.db-wal$/,
        /\.db-shm$/,
        /index\/.*\.db$/,
        /files\/.*\.hashes$/,
        /wallet\.key$/,
        /\.lock$/,
      ];
      let items: Collection | undefined;
      for (let start = 0; start < 2; start++) {
        await using server = await startServer({ dataDir: root.path, wrapper });
        for (let i = 0; i < 3; i++) {
          const space = await createSpace(server.client, `space ${i}`);
          items = await createCollection(server.client, space.id);
          await items.modify([setFields("a", { n: i })]);
        }
        await attach(server.client, items!.spaceId, items!.objectId, new Uint8Array(200_000));
        await searchWhole(server.client, items!.spaceId, { query: "space" });
        const names = readdirSync(root.path, { recursive: true }).map(String);
        expect(kinds.filter((kind) => !names.some((name) => kind.test(name)))).toEqual([]);
        expect(openToOthers(root.path)).toEqual([]);
        expect(await server.stop()).toBe(0);
        expect(openToOthers(root.path)).toEqual([]);
      }
    },
    60_000,
  );
});

describe("many spaces", () => {
  rule(
    "[STORE-9] two hundred spaces are served within 512 descriptors, before and after a restart",
    async () => {
      using root = scratchDir("svc-many");
      const wrapper = ["bash", "-c", 'ulimit -n 512; exec "$@"', "limited"];
      const first = await startServer({ dataDir: root.path, wrapper });
      const ids: string[] = [];
      for (let i = 0; i < 200; i++) {
        const space = await createSpace(first.client, `space ${i}`);
        await first.client.post(`/v1/spaces/${space.id}/objects`, {}, 201);
        ids.push(space.id);
      }
      expect(await first.stop()).toBe(0);
      await using second = await startServer({ dataDir: root.path, wrapper });
      for (const id of ids) {
        const page = await second.client.post<Page>(`/v1/spaces/${id}/objects/query`, { filter: { "nav.type": 1 } });
        expect([id, page.records.length]).toEqual([id, 1]);
      }
      // All at once: the last is answered when all spaces have been opened, however long that takes here.
      const made = ids.map((id) =>
        second.client.request("POST", `/v1/spaces/${id}/objects`, { body: {}, timeoutMs: 100_000 }),
      );
      expect((await Promise.all(made)).filter(({ status }) => status !== 201)).toEqual([]);
    },
    120_000,
  );
});

describe("files that cannot be used", () => {
  /** A stopped server's root with one space, and the paths of its database files. */
  async function rootWithSpace(): Promise<
    Disposable & { path: string; account: string; space: string; spaceId: string }
  > {
    const root = scratchDir("svc-files");
    const server = await startServer({ dataDir: root.path });
    const space = await createSpace(server.client);
    await server.stop();
    const files = databaseFiles(root.path);
    return {
      path: root.path,
      account: files.find((path) => path.endsWith("/sdk/account.db"))!,
      space: files.find((path) => path.includes(space.id))!,
      spaceId: space.id,
      [Symbol.dispose]: () => root[Symbol.dispose](),
    };
  }

  rule("[STORE-7] the files lie where the layout says: sdk/account.db and sdk/<spaceId>.db", async () => {
    using root = await rootWithSpace();
    expect(root.account).toEndWith("/sdk/account.db");
    expect(root.space).toEndWith(`/sdk/${root.spaceId}.db`);
  });

  rule(
    "[STORE-2] an account file of a newer version refuses the start with a clear error and is left alone",
    async () => {
      using root = await rootWithSpace();
      const db = new Database(root.account);
      db.run("PRAGMA user_version = 999999");
      db.close();
      const before = readFileSync(root.account);
      const refused = await refusedStart({ dataDir: root.path });
      expect(refused.code).not.toBe(0);
      expect(refused.stderr.toLowerCase()).toContain("newer");
      expect(readFileSync(root.account)).toEqual(before);
    },
  );

  rule(
    "[STORE-2] a file that is no database refuses the start and names the file, and is not overwritten",
    async () => {
      using root = await rootWithSpace();
      const junk = "this is not a database ".repeat(500);
      writeFileSync(root.account, junk);
      const refused = await refusedStart({ dataDir: root.path });
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toContain("account.db");
      expect(readFileSync(root.account, "utf8")).toBe(junk);
    },
  );

  rule("[STORE-2] one broken space file does not keep the account and the other spaces from being served", async () => {
    using root = await rootWithSpace();
    const more = await startServer({ dataDir: root.path });
    const healthy = await createSpace(more.client, "healthy");
    await more.stop();
    const junk = "this is not a database ".repeat(500);
    writeFileSync(root.space, junk);
    await using server = await startServer({ dataDir: root.path, bootstrapped: false });
    const list = await server.client.get<SpaceInfo[]>("/v1/spaces");
    expect(list.map((space) => space.id)).toContain(healthy.id);
    await server.client.post(`/v1/spaces/${healthy.id}/objects`, {}, 201);
    const broken = await server.client.request("POST", `/v1/spaces/${root.spaceId}/objects/query`, { body: {} });
    expect([broken.status, broken.text]).toEqual([507, expect.stringContaining('"storage.damaged"')]);
    expect(broken.text).not.toContain(root.path);
    expect(readFileSync(root.space, "utf8")).toBe(junk);
    expect(await server.client.get<JsonObject>("/v1/health")).toMatchObject({ status: "ok" });
  });
});
