/** Another program that has a file of the data root locked: each file in turn, while the server runs and when it starts. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { searchWhole } from "../support/models/search.ts";
import { pace } from "../support/pace.ts";
import { rule } from "../support/rule.ts";
import { type ScratchDir, scratchDir } from "../support/scratch.ts";
import type { Client, JsonObject, Reply } from "../support/server/client.ts";
import { type Collection, createCollection, createObject, createSpace, setFields } from "../support/server/fixtures.ts";
import { startServer } from "../support/server/server.ts";
import { createAccount } from "../support/worlds/acl-world.ts";

/** One wait of a second on the loop would show; what a loaded machine takes for an answer does not. */
const ANSWER_MS = 800;
const REQUEST_MS = 20_000;
const LOCKED = /server\.unavailable.*Another program has .* database locked/;

const everyDatabase = (root: string): string[] =>
  readdirSync(root, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(".db"))
    .sort();

/** The files of an account that has a space with a collection, a chat and an index, and a queue of pushes. */
interface Root {
  readonly dir: ScratchDir;
  readonly files: string[];
  readonly items: Collection;
  readonly chat: string;
}

// Nobody answers there: what is to be pushed waits.
const options = (dataDir: string) => ({ dataDir, env: { SVC_PUSH_URL: "http://127.0.0.1:9" } });

async function makeRoot(): Promise<Root> {
  const dir = scratchDir("svc-locks");
  await using server = await startServer(options(dir.path));
  const space = await createSpace(server.client, "held");
  const items = await createCollection(server.client, space.id);
  await items.modify([setFields("a", { n: 1 })]);
  const chat = await createObject(server.client, space.id, { types: ["chat"] });
  await searchWhole(server.client, space.id, { query: "a" });
  return { dir, files: everyDatabase(dir.path), items, chat: chat.id };
}

/** How long the slowest answer took that needs no file to be written. */
function watchAnswers(client: Client): () => Promise<number> {
  let isOn = true;
  let worst = 0;
  const watching = (async () => {
    while (isOn) {
      const begunMs = performance.now();
      await client.get("/v1/spaces");
      worst = Math.max(worst, performance.now() - begunMs);
      await pace(10);
    }
  })();
  return async () => {
    isOn = false;
    await watching;
    return worst;
  };
}

let writes = 1;

/** Something of everything that is written, a new value each time, and what is read. */
function useAll(client: Client, { items, chat }: Root): Promise<Reply[]> {
  const ask = (path: string, body: JsonObject) => client.request("POST", path, { body, timeoutMs: REQUEST_MS });
  const records = [setFields("a", { n: ++writes })];
  return Promise.all([
    ask(`${items.path}/query`, items.target),
    ask(`${items.path}/modify`, { ...items.target, records }),
    ask("/v1/spaces", { name: "another" }),
    ask(`/v1/spaces/${items.spaceId}/objects/${chat}/chat/messages`, { text: "for the push node" }),
    ask("/v1/spaces/one-to-one/register-incoming", { peerIdentity: createAccount().id }),
    ask(`/v1/spaces/${items.spaceId}/search`, { query: "a" }),
  ]);
}

/** Done, or refused in words: which file is locked is nobody's business but the log's. */
function expectAnswers(file: string, replies: readonly Reply[]): void {
  const answers = replies.map(({ status, text }) => [file, status, status < 300 ? "" : text]);
  const wanted = replies.map(({ status }) =>
    status < 300 ? [file, status, ""] : [file, 503, expect.stringMatching(LOCKED)],
  );
  expect(answers).toEqual(wanted);
}

describe("a file that another program has locked", () => {
  let root: Root;
  beforeAll(async () => {
    root = await makeRoot();
  }, 60_000);
  afterAll(() => root.dir[Symbol.dispose]());

  rule(
    "[STORE-4] whichever it is: answers that need it are refused in words, all others come at once, and all goes on after it",
    async () => {
      expect(root.files.filter((file) => /account\.db$|push\.db$|index\//.test(file)).length).toBeGreaterThan(2);
      await using server = await startServer(options(root.dir.path));
      for (const file of root.files) {
        using other = new Database(join(root.dir.path, file));
        other.run("BEGIN IMMEDIATE");
        const slowest = watchAnswers(server.client);
        expectAnswers(file, await useAll(server.client, root));
        other.run("ROLLBACK");
        expect([file, (await slowest()) < ANSWER_MS]).toEqual([file, true]);
        const after = await useAll(server.client, root);
        expect(after.map(({ status }) => [file, status < 300])).toEqual(after.map(() => [file, true]));
      }
    },
    120_000,
  );

  rule(
    "[STORE-4] whichever it is when the server starts: it serves what needs it not, or says which file it is",
    async () => {
      for (const file of root.files) {
        using other = new Database(join(root.dir.path, file));
        other.run("BEGIN IMMEDIATE");
        const started = await startServer({ ...options(root.dir.path), bootstrapped: false }).catch(String);
        if (typeof started === "string") {
          expect([file, started]).toEqual([file, expect.stringContaining(file)]);
          expect(started).toContain("locked");
          continue;
        }
        await using server = started;
        const slowest = watchAnswers(server.client);
        expectAnswers(file, await useAll(server.client, root));
        other.run("ROLLBACK");
        expect([file, (await slowest()) < ANSWER_MS]).toEqual([file, true]);
        const after = await useAll(server.client, root);
        expect(after.map(({ status }) => [file, status < 300])).toEqual(after.map(() => [file, true]));
      }
    },
    180_000,
  );
});
