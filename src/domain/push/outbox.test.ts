import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type ScratchDir, scratchDir } from "../../../test/support/scratch.ts";
import { until } from "../../../test/support/server/client.ts";
import { silentLog } from "../../base/log.ts";
import { NodeFault } from "../../push-link/node-calls.ts";
import { type OutboxRow, openPushOutboxStore } from "../../store/push-outbox-store.ts";
import { createOutbox, type Outbox } from "./outbox.ts";

const HOUR_MS = 60 * 60_000;
const open: Outbox[] = [];
const directories: ScratchDir[] = [];
afterEach(async () => {
  for (const outbox of open.splice(0)) await outbox.stop();
  for (const directory of directories.splice(0)) directory[Symbol.dispose]();
});

interface World {
  outbox: Outbox;
  sent: OutboxRow[];
  /** What sending does; it succeeds when it answers. */
  answer: (row: OutboxRow) => Promise<void>;
  nowMs: number;
}

/** An outbox over a database that outlives it, with a clock and a node of the test's own. */
function world(path = ""): World & { path: string } {
  const directory = path === "" ? scratchDir("push-outbox") : undefined;
  if (directory) directories.push(directory);
  const file = path === "" ? join(directory!.path, "push.db") : path;
  let ids = 0;
  const self = {
    path: file,
    sent: [] as OutboxRow[],
    answer: async () => {},
    nowMs: Date.now(),
  } as unknown as World & {
    path: string;
  };
  const fail = (error: unknown): never => {
    throw error;
  };
  const store = openPushOutboxStore(file, { onDamage: fail, onFault: fail });
  self.outbox = createOutbox({
    store,
    clock: { nowMs: () => self.nowMs },
    log: silentLog,
    newId: () => `${self.nowMs}-${ids++}`,
    async send(row) {
      self.sent.push(row);
      await self.answer(row);
    },
  });
  open.push(self.outbox);
  return self;
}
const idsOf = ({ sent }: World): string[] => sent.map(({ messageId }) => messageId);
/** What was due by now has gone when what is queued after it goes. */
async function untilNextGoes(one: World): Promise<void> {
  one.outbox.queueMessage("s", "a chat of its own", "next", []);
  await until(() => idsOf(one).includes("next"), "what comes next", 5_000);
}
const unreachable = async () => {
  throw new NodeFault("unreachable", 0);
};

describe("[PUSH-4] what waits for the node", () => {
  test("the first of a burst goes at once, the rest of it as one, of the newest message", async () => {
    const one = world();
    one.outbox.queueMessage("s", "c", "m0", []);
    await one.outbox.start();
    await until(() => one.sent.length === 1, "the first", 2_000);
    for (let index = 1; index <= 20; index++) one.outbox.queueMessage("s", "c", `m${index}`, []);
    one.outbox.queueMessage("s", "other", "o0", []);
    await until(() => one.sent.length === 2, "another chat's", 2_000);
    expect(idsOf(one)).toEqual(["m0", "o0"]);
    one.nowMs += 1_000;
    await until(() => one.sent.length === 3, "the burst", 5_000);
    expect(idsOf(one)).toEqual(["m0", "o0", "m20"]);
  });

  test("messages for other people are no part of a burst", async () => {
    const one = world();
    one.outbox.queueMessage("s", "c", "plain", []);
    one.outbox.queueMessage("s", "c", "for A", ["A"]);
    one.outbox.queueMessage("s", "c", "for B", ["B"]);
    await one.outbox.start();
    await until(() => one.sent.length === 3, "all three", 2_000);
    expect(idsOf(one).sort()).toEqual(["for A", "for B", "plain"]);
  });

  test("readings of a chat are one, a second later", async () => {
    const one = world();
    await one.outbox.start();
    for (let index = 0; index < 5; index++) one.outbox.queueReading("s", "c");
    await untilNextGoes(one);
    expect(idsOf(one)).toEqual(["next"]);
    one.nowMs += 1_000;
    await until(() => one.sent.length === 2, "the reading", 5_000);
    expect(one.sent[1]).toMatchObject({ kind: "read", chatId: "c" });
  });

  test("what the node does not take comes again under the same id; what it refuses does not", async () => {
    const one = world();
    one.answer = unreachable;
    one.outbox.queueMessage("s", "c", "m", []);
    await one.outbox.start();
    await until(() => one.sent.length === 1, "the first attempt", 2_000);
    one.answer = async () => {};
    one.nowMs += 2_000;
    await until(() => one.sent.length === 2, "the second", 5_000);
    expect(one.sent[1]!.id).toBe(one.sent[0]!.id);
    one.answer = async () => {
      throw new NodeFault("refused", 400, "push.bad_request");
    };
    one.outbox.queueMessage("s", "c2", "bad", []);
    await until(() => one.sent.length === 3, "the refused one", 2_000);
    one.nowMs += 10_000;
    one.answer = async () => {};
    await untilNextGoes(one);
    expect(idsOf(one)).toEqual(["m", "m", "bad", "next"]);
  });

  test("a message that comes while an older one of its kind fails takes its place", async () => {
    const one = world();
    let release: () => void = () => {};
    one.answer = () => new Promise((_, reject) => (release = () => reject(new NodeFault("unreachable", 0))));
    one.outbox.queueMessage("s", "c", "old", []);
    await one.outbox.start();
    await until(() => one.sent.length === 1, "the first attempt", 2_000);
    one.outbox.queueMessage("s", "c", "new", []);
    one.answer = async () => {};
    release();
    one.nowMs += 5_000;
    await until(() => one.sent.length === 2, "the next", 5_000);
    await untilNextGoes(one);
    expect(idsOf(one)).toEqual(["old", "new", "next"]);
  });

  test("a process that ends in the middle of everything sends it after its next start", async () => {
    const one = world();
    one.answer = () => new Promise(() => {}); // it never hears of it
    one.outbox.queueMessage("s", "c", "in hand", []);
    await one.outbox.start();
    await until(() => one.sent.length === 1, "the first attempt", 2_000);
    one.outbox.queueMessage("s", "c2", "queued", []);
    open.splice(0); // as killed: nobody stops it
    one.nowMs = 0; // nothing is due for it any more
    const next = world(one.path);
    next.nowMs += 1_000;
    await next.outbox.start();
    await until(() => next.sent.length === 2, "both", 5_000);
    expect(idsOf(next).sort()).toEqual(["in hand", "queued"]);
  });

  test("after an hour nothing is sent any more; within it, all is", async () => {
    const one = world();
    one.outbox.queueMessage("s", "c", "old", []);
    one.nowMs += 30 * 60_000;
    one.outbox.queueMessage("s", "c2", "younger", []);
    one.nowMs += HOUR_MS / 2 + 1;
    await one.outbox.start();
    await until(() => one.sent.length === 1, "the younger one", 2_000);
    await untilNextGoes(one);
    expect(idsOf(one)).toEqual(["younger", "next"]);
  });

  test("nothing of a space that ended is sent", async () => {
    const one = world();
    one.outbox.queueMessage("gone", "c", "m", []);
    one.outbox.queueMessage("here", "c", "n", []);
    one.outbox.dropSpace("gone");
    await one.outbox.start();
    await until(() => one.sent.length === 1, "the other", 2_000);
    await untilNextGoes(one);
    expect(idsOf(one)).toEqual(["n", "next"]);
  });
});
