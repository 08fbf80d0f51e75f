/**
 * Many spaces that are behind at once, where a process may have few files open: the process of the indexes works at some of
 * them, and the others wait for their turn.
 */
import { expect } from "bun:test";
import { createSemaphore } from "../../src/base/semaphore.ts";
import { searchUntil } from "../support/models/search.ts";
import { rule } from "../support/rule.ts";
import { childrenOf } from "../support/server/child-processes.ts";
import { until } from "../support/server/client.ts";
import { descriptorsOf } from "../support/server/descriptors.ts";
import { createObject, createSpace, named } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";

const SPACES = Number(process.env["SPACES"] ?? 70);
/** Above what the server itself holds, far below what an index of each space would. */
const FILES = 300;
const WRITERS = 8;

async function inTurn<T>(items: readonly T[], run: (item: T) => Promise<unknown>): Promise<void> {
  const semaphore = createSemaphore(WRITERS);
  await Promise.all(items.map((item) => semaphore(() => run(item))));
}

rule(
  `[STORE-9] ${SPACES} spaces that are behind at once are indexed one after another, with ${FILES} files at a time`,
  async () => {
    const limited = ["sh", "-c", `ulimit -n ${FILES} && exec "$0" "$@"`];
    await using server = await startServer({ wrapper: limited });
    const { client } = server;
    const spaces: string[] = [];
    await inTurn(
      Array.from({ length: SPACES }, (_, n) => n),
      async () => spaces.push((await createSpace(client)).id),
    );
    await until(async () => childrenOf(server.pid, "__index").length === 1, "the process of the indexes");
    const [pid] = childrenOf(server.pid, "__index") as [number];
    process.kill(pid, "SIGSTOP"); // as on a machine that has no time for it
    await inTurn(spaces, (space) => createObject(client, space, named(`harbour of ${space}`)));
    process.kill(pid, "SIGCONT");
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, descriptorsOf(pid));
    }, 5);
    try {
      await inTurn(spaces, (space) =>
        searchUntil(client, space, { query: "harbour" }, ({ hits, incomplete }) => !incomplete && hits.length === 1),
      );
    } finally {
      clearInterval(watch);
    }
    expect(server.stderr()).not.toMatch(/WARN|ERROR/);
    expect(most).toBeLessThan(FILES / 2);
  },
  Math.max(120_000, SPACES * 500),
);
