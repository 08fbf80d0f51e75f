/** One contract for both places where a push node may keep its state, and what nodes that share one may rely on. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { createNatsState } from "../../../src/push-node/nats-state.ts";
import { createSqliteState } from "../../../src/push-node/sqlite-state.ts";
import type { Delivery, Device, PushState } from "../../../src/push-node/state.ts";
import { loopTurns } from "../../support/loop-turns.ts";
import { describeWithNats, type NatsServer, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { type ScratchDir, scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";

const ONE = "Aone11111111111111111111";
const TWO = "Atwo22222222222222222222";
const KEY = "K".repeat(44);

const device = (account: string, name: string, token: string): Device => ({
  ...{ account, device: name, platform: "android", token, registeredMs: 5 },
});
const delivery = (id: string, dueMs: number): Delivery => ({
  ...{ id, account: ONE, device: "d", kind: "message", spaceKey: KEY, chat: "c", keyId: "k", sealed: "s" },
  ...{ attempts: 0, dueMs, expiresMs: 9_000 },
});

/** `open` opens the same state again, as another process would. */
function contract(open: () => Promise<PushState>): void {
  let state: PushState;
  beforeAll(async () => {
    state = await open();
  });
  afterAll(() => state.close());

  rule("the secret is made once", async () => {
    const secret = await state.secret();
    expect(secret).toHaveLength(32);
    expect(await state.secret()).toEqual(secret);
  });

  rule("[PUSH-6] a name is used up by the first who asks", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => state.spend("challenge/x y+z", 1_000)));
    expect(answers.filter((won) => won)).toHaveLength(1);
    expect(await state.spend("challenge/other", 1_000)).toBe(true);
  });

  rule("[PUSH-7] a token is of one device, the last that registered it", async () => {
    await state.putDevice(device(ONE, "d1", "t1"));
    await state.putDevice(device(ONE, "d2", "t2"));
    expect((await state.devicesOf(ONE)).map(({ token }) => token)).toEqual(["t1", "t2"]);
    await state.putDevice(device(TWO, "d1", "t1"));
    expect((await state.devicesOf(ONE)).map(({ token }) => token)).toEqual(["t2"]);
    expect(await state.deviceOf(ONE, "d1")).toBeUndefined();
    await state.putDevice(device(TWO, "d1", "t3"));
    expect(await state.deviceOf(TWO, "d1")).toEqual(device(TWO, "d1", "t3"));
    // The token before it is free again.
    await state.putDevice(device(ONE, "d1", "t1"));
    expect((await state.devicesOf(ONE)).map(({ token }) => token)).toEqual(["t1", "t2"]);
    await state.dropDevice(ONE, "d1");
    await state.dropDevice(ONE, "absent");
    expect((await state.devicesOf(ONE)).map(({ token }) => token)).toEqual(["t2"]);
  });

  rule("topics are found by space and topic, and listed by account in pages", async () => {
    const chat = `chats/${"ab".repeat(32)}`;
    await state.addTopics(ONE, KEY, ["chats", chat, `${chat}/${ONE}`, ONE]);
    await state.addTopics(TWO, KEY, ["chats", TWO]);
    await state.addTopics(ONE, "L".repeat(44), ["chats"]);
    await state.addTopics(ONE, KEY, ["chats"]);
    expect((await state.subscribers(KEY, ["chats", chat])).sort()).toEqual([ONE, TWO]);
    expect(await state.subscribers(KEY, [chat, TWO.replace("two", "xxx")])).toEqual([ONE]);
    expect(await state.subscribers("M".repeat(44), ["chats"])).toEqual([]);
    expect(await state.topicCount(ONE)).toBe(5);
    const first = await state.topicsOf(ONE, undefined, 3);
    const rest = await state.topicsOf(ONE, first.at(-1), 3);
    expect([...first, ...rest]).toHaveLength(5);
    expect(new Set([...first, ...rest].map(({ spaceKey, topic }) => `${spaceKey} ${topic}`)).size).toBe(5);
    await state.dropTopics(ONE, KEY, ["chats", "chats/absent"]);
    expect(await state.subscribers(KEY, ["chats"])).toEqual([TWO]);
    expect(await state.topicCount(ONE)).toBe(4);
  });

  rule(
    "[PUSH-7] a message's deliveries are taken on once; what is taken is nobody else's until its lease ends",
    async () => {
      expect(await state.accept("m1", 1_000, [delivery("a1", 100), delivery("a2", 200)])).toBe(true);
      expect(await state.accept("m1", 1_000, [delivery("a1", 100), delivery("a2", 200)])).toBe(false);
      expect(await state.pending()).toBe(2);
      expect(await state.nextDueMs()).toBe(100);
      expect(await state.takeDue(50, 10, 1_000)).toEqual([]);
      const [taken, ...others] = await state.takeDue(150, 10, 1_000);
      expect(others).toEqual([]);
      expect(taken).toMatchObject({ id: "a1", attempts: 0 });
      expect(await state.takeDue(1_000, 10, 1_000)).toMatchObject([{ id: "a2" }]);
      expect(await state.takeDue(1_100, 10, 1_000)).toEqual([]);
      expect(await state.takeDue(1_200, 10, 1_000)).toMatchObject([{ id: "a1" }]);
      await state.defer(taken!, 5_000);
      expect(await state.nextDueMs()).toBe(2_000);
      expect(await state.takeDue(6_000, 10, 1_000)).toMatchObject([
        { id: "a2" },
        { id: "a1", attempts: 1, dueMs: 5_000 },
      ]);
      await state.finish(delivery("a1", 0));
      await state.finish(delivery("a2", 0));
      expect(await state.pending()).toBe(0);
      expect(await state.nextDueMs()).toBeUndefined();
      // The message stays known although nothing of it is left.
      expect(await state.accept("m1", 1_000, [delivery("a1", 100)])).toBe(false);
    },
  );

  rule("[PUSH-7] everything is there when it is opened again", async () => {
    const secret = await state.secret();
    await state.accept("m2", 1_000, [delivery("b1", 100)]);
    await state.takeDue(150, 10, 60_000); // the process ends with it in hand
    await state.close();
    state = await open();
    expect(await state.secret()).toEqual(secret);
    expect((await state.devicesOf(ONE)).map(({ token }) => token)).toEqual(["t2"]);
    expect(await state.topicCount(ONE)).toBe(4);
    await until(async () => (await state.pending()) === 1, "the delivery", 2_000);
    expect(await state.takeDue(100_000, 10, 1_000)).toMatchObject([{ id: "b1" }]);
    await state.finish(delivery("b1", 0));
  });
}

describe("in a file", () => {
  let directory: ScratchDir;
  beforeAll(() => {
    directory = scratchDir("push-state");
  });
  afterAll(() => directory[Symbol.dispose]());
  contract(() => createSqliteState(join(directory.path, "push-node.db")));

  const harmed = async (name: string, sql: readonly string[]) => {
    const path = join(directory.path, name);
    const before = await createSqliteState(path);
    const secret = Buffer.from(await before.secret());
    await before.putDevice(device(ONE, "phone", "t1"));
    await before.addTopics(ONE, "key", ["chat"]);
    await before.accept("sent", 1_000, [delivery("a1", 10), delivery("a2", 20)]);
    await before.close();
    using db = new Database(path);
    const triggers = db
      .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
      .all();
    for (const { name: trigger } of triggers) db.run(`DROP TRIGGER ${trigger}`);
    for (const one of sql) db.run(one);
    for (const trigger of triggers) db.run(trigger.sql);
    return { path, secret };
  };

  rule("[STORE-5] its secret and its devices are what they were where the disk changed them", async () => {
    const { path, secret } = await harmed("harmed.db", [
      "UPDATE meta SET value = zeroblob(32)",
      "UPDATE devices SET row = '{', token = CAST(token AS BLOB)",
    ]);
    const state = await createSqliteState(path);
    expect(Buffer.from(await state.secret())).toEqual(secret);
    expect(await state.devicesOf(ONE)).toEqual([device(ONE, "phone", "t1")]);
    await state.close();
  });

  rule("[STORE-3] a delivery that the disk changed is sent to nobody, and the others are", async () => {
    const { path } = await harmed("deliveries.db", [
      `UPDATE deliveries SET row = replace(row, '"id"', '"ix') WHERE id = 'a1'`,
      "UPDATE spent SET until_ms = CAST(until_ms AS TEXT)",
    ]);
    const state = await createSqliteState(path);
    expect((await state.takeDue(100, 10, 1_000)).map(({ id }) => id)).toEqual(["a2"]);
    expect(await state.pending()).toBe(1);
    await state.sweep(10_000);
    await state.close();
  });

  rule(
    "[STORE-4] while another program has it locked the node goes on; what was to be written is written then",
    async () => {
      const path = join(directory.path, "held.db");
      const state = await createSqliteState(path);
      await state.addTopics(ONE, "key", ["before"]);
      const other = new Database(path);
      other.run("BEGIN IMMEDIATE");
      let isDone = false;
      const written = Promise.all([state.spend("name", 1_000), state.addTopics(ONE, "key", ["meanwhile"])]).finally(
        () => (isDone = true),
      );
      // The loop turns, and what is stored is read.
      for (let turn = 0; turn < 20; turn++) {
        await loopTurns();
        expect(await state.topicCount(ONE)).toBe(1);
      }
      expect(isDone).toBe(false);
      other.run("COMMIT");
      other.close();
      expect(await written).toEqual([true, undefined]);
      expect(await state.topicCount(ONE)).toBe(2);
      await state.close();
    },
  );

  rule("[STORE-4] it is refused where it stays locked, and nothing of it is done", async () => {
    const path = join(directory.path, "kept.db");
    const state = await createSqliteState(path);
    const other = new Database(path);
    other.run("BEGIN IMMEDIATE");
    expect(await state.spend("name", 1_000).catch((error: unknown) => error)).toMatchObject({
      code: "server.unavailable",
    });
    other.run("COMMIT");
    other.close();
    expect(await state.spend("name", 1_000)).toBe(true);
    await state.close();
  });
});

describeWithNats("in a bucket that nodes share", () => {
  let nats: NatsServer;
  beforeAll(async () => {
    nats = await startNats();
  });
  contract(() => createNatsState({ url: nats.url }));
  afterAll(() => nats[Symbol.asyncDispose]());

  rule("[PUSH-7] two nodes share what they know, and each delivery is one's", async () => {
    await using first = await opened();
    await using second = await opened();
    expect(await second.state.secret()).toEqual(await first.state.secret());
    const many = Array.from({ length: 50 }, (_, index) => delivery(`shared-${index}`, 100));
    await first.state.accept("shared", 1_000, many);
    await until(async () => (await second.state.pending()) >= 50, "the other node to see them", 5_000);
    const [one, two] = await Promise.all([first.state.takeDue(500, 50, 60_000), second.state.takeDue(500, 50, 60_000)]);
    const ids = [...one, ...two].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toHaveLength(50);
    expect(await second.state.spend("shared name", 1_000)).toBe(true);
    expect(await first.state.spend("shared name", 1_000)).toBe(false);
    for (const taken of many) await first.state.finish(taken);
    await until(async () => (await second.state.pending()) === 0, "the other node to see that none is left", 5_000);
  });

  async function opened() {
    const state = await createNatsState({ url: nats.url });
    return { state, [Symbol.asyncDispose]: () => state.close() };
  }
});
