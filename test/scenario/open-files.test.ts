/** How many files a server holds open: those of the spaces that are open, not of those that were. */
import { describe, expect } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { rule, useServer } from "../support/rule.ts";
import { until } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";

const SPACES = 66;
/** Spaces kept open, and the account's own. */
const OPEN_AT_MOST = 48 + 1;

/** Open descriptors of the process (Linux) whose file's name ends like this. */
function openFiles(pid: number, ending: string): string[] {
  const directory = `/proc/${pid}/fd`;
  return readdirSync(directory).flatMap((name) => {
    try {
      const path = readlinkSync(`${directory}/${name}`);
      return path.includes("/sdk/") && path.endsWith(ending) ? [path] : [];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return []; // closed meanwhile
      throw error;
    }
  });
}

describe("open files", () => {
  const shared = useServer();

  rule(
    "[STORE-9] a space that is closed gives its descriptors back at once",
    async () => {
      const { server, client } = shared;
      const ids: string[] = [];
      for (let i = 0; i < SPACES; i++) {
        const { id } = await createSpace(client);
        await createObject(client, id);
        const body = { filter: { "svc.name": { $exists: false } }, sort: ["-createdAt"], limit: 5, includeTotal: true };
        await client.post(`/v1/spaces/${id}/objects/query`, body, 200);
        ids.push(id);
      }
      const databases = () => openFiles(server.pid, ".db").filter((path) => !path.endsWith("/account.db"));
      let next = 0;
      await until(
        async () => {
          // Whatever is opened makes room by closing what was not used for a second.
          await client.post(`/v1/spaces/${ids[next++ % SPACES]}/objects/query`, {}, 200);
          return new Set(databases()).size <= OPEN_AT_MOST;
        },
        "unused spaces to be closed",
        20_000,
        150,
      );
      const held = databases();
      expect(held.length).toBe(new Set(held).size);
      expect(openFiles(server.pid, ".db-wal").length).toBeLessThanOrEqual(OPEN_AT_MOST + 1);

      // Every space once more, one after the other: those that make room leave nothing open.
      for (const id of ids) {
        await client.post(`/v1/spaces/${id}/objects/query`, { sort: ["createdAt"] }, 200);
        expect(databases().length).toBeLessThanOrEqual(64 + 1);
      }
    },
    60_000,
  );
});
