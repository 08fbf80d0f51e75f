/** Blocks that are longer than a record (EDIT-7): whatever fits into a request comes back, and is edited like any other. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { CONTINUATION } from "../../src/domain/editor/block.ts";
import { foldLineEnds } from "../../src/domain/editor/block-split.ts";
import { BODY_BYTES, bodyBytes, LONG_BLOCKS, longBlock } from "../support/long-documents.ts";
import { createRng, freshSeed } from "../support/rng.ts";
import { rounds } from "../support/rounds.ts";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { JsonObject, Page } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";
import { type RunningServer, startServer } from "../support/server/server.ts";

interface MarkdownResult {
  inserted: string[];
  updated: string[];
  deleted: string[];
  unchanged: number;
}

const seed = freshSeed("long documents");
const ROUNDS = rounds(1);
const NOTHING = { inserted: [], updated: [], deleted: [] };

async function open(server: RunningServer, spaceId: string) {
  const { client } = server;
  const { id } = await createObject(client, spaceId);
  return documentOf(server, spaceId, id);
}

function documentOf({ client }: RunningServer, spaceId: string, id: string) {
  const path = `/v1/spaces/${spaceId}/objects/${id}/editor/markdown`;
  const query = { objectId: id, dataset: "editor_blocks", sort: ["nav.pos"] };
  return {
    id,
    put: (content: string) => client.put<MarkdownResult>(path, { content }, 200),
    patch: (...edits: JsonObject[]) => client.patch<MarkdownResult>(path, { edits }, 200),
    append: (content: string) => client.post<MarkdownResult>(`${path}/append`, { content }),
    read: async () => (await client.get<{ content: string }>(path)).content,
    blocks: async () => (await client.post<Page>(`/v1/spaces/${spaceId}/query`, query)).records,
    remove: (block: string) => client.del(path.replace("markdown", `blocks/${block}`), 200),
  };
}

/** Whether two texts are one, without either in the message when they are not. */
function expectSame(is: string, wanted: string): void {
  if (is === wanted) return;
  let at = 0;
  while (is[at] === wanted[at]) at++;
  expect([is.length, at, is.slice(at, at + 40)]).toEqual([wanted.length, at, wanted.slice(at, at + 40)]);
  throw new Error("two texts differ");
}

interface LongBlock {
  readonly kind: string;
  readonly own: number;
  readonly round: number;
}

/** What is put of a block, and what has to come back. */
interface Kept {
  readonly spaceId: string;
  readonly id: string;
  readonly content: string;
}

const BLOCKS = Array.from({ length: ROUNDS }, (_, round) =>
  LONG_BLOCKS.map((kind): LongBlock => ({ kind, own: (seed + round) >>> 0, round })),
).flat();

describe("a document of one long block", () => {
  const dir = scratchDir("svc-long-documents");
  const kept = new Map<LongBlock, Kept>();
  let server: RunningServer;
  const start = async (): Promise<void> => {
    server = await startServer({ dataDir: dir.path });
  };
  const stop = () => server[Symbol.asyncDispose]();
  beforeAll(start, 60_000);
  afterAll(async () => {
    await stop();
    dir[Symbol.dispose]();
  }, 30_000);

  const showingSeed = async ({ own }: LongBlock, run: () => Promise<void>): Promise<void> => {
    try {
      await run();
    } catch (error) {
      console.error(`SEED=${own} ROUNDS=1`);
      throw error;
    }
  };
  for (const block of BLOCKS)
    rule(
      `[EDIT-7] ${block.kind} as long as a request: the very bytes come back, after edits beside it too (${block.round})`,
      () => showingSeed(block, () => tryKind(block)),
      120_000,
    );

  describe("after a restart", () => {
    beforeAll(async () => {
      await stop();
      await start();
    }, 60_000);
    for (const block of BLOCKS)
      rule(
        `[EDIT-7] ${block.kind} as long as a request: the very bytes come back, and it is removed as a whole (${block.round})`,
        () => showingSeed(block, () => tryAgain(kept.get(block)!)),
        120_000,
      );
  });

  async function tryKind(block: LongBlock): Promise<void> {
    const { kind } = block;
    const rng = createRng(block.own).fork(kind);
    const content = longBlock(rng, kind, BODY_BYTES);
    expect(bodyBytes(content)).toBeLessThanOrEqual(BODY_BYTES);
    const whole = foldLineEnds(content);
    const spaceId = (await createSpace(server.client)).id;
    const doc = await open(server, spaceId);
    const made = await doc.put(content);
    expect(made.inserted.length).toBe(1);
    expectSame(await doc.read(), whole);
    expect(await doc.put(content)).toEqual({ ...NOTHING, unchanged: 1 });

    // A block before it, and what is appended behind it, leave it as it is.
    const neighbours = await open(server, spaceId);
    await neighbours.put("# before\n");
    const appended = longBlock(rng, kind, BODY_BYTES - 100);
    const shorter = foldLineEnds(appended);
    await neighbours.append(appended);
    expectSame(await neighbours.read(), `# before\n\n${shorter}`);
    await neighbours.patch({ oldText: "# before", newText: "# edited\n\nnew" });
    expectSame(await neighbours.read(), `# edited\n\nnew\n\n${shorter}`);
    // An edit within it.
    const at = rng.int(shorter.length >> 2, shorter.length >> 1);
    const edited = `${shorter.slice(0, at)}here${shorter.slice(at)}`.toWellFormed();
    const half = edited.slice(0, edited.length >> 1).toWellFormed();
    await neighbours.put(half);
    expectSame(await neighbours.read(), foldLineEnds(half));

    await doc.put("");
    expect(await doc.blocks()).toEqual([]);
    await doc.put(content);
    kept.set(block, { spaceId, id: doc.id, content });
  }

  async function tryAgain({ spaceId, id, content }: Kept): Promise<void> {
    const doc = documentOf(server, spaceId, id);
    expectSame(await doc.read(), foldLineEnds(content));
    expect(await doc.put(content)).toEqual({ ...NOTHING, unchanged: 1 });
    const [block, ...more] = (await doc.blocks()).toSorted(
      (a, b) => Number(a["type"] === CONTINUATION) - Number(b["type"] === CONTINUATION),
    );
    expect(more.length).toBeGreaterThan(0);
    for (const { type, nav } of more)
      expect([type, (nav as JsonObject)["parentId"]]).toEqual([CONTINUATION, block!.id]);
    await doc.remove(block!.id as string);
    expect(await doc.blocks()).toEqual([]);
  }
});
