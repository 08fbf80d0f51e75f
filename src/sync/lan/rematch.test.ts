import { expect, test } from "bun:test";
import { createAllowance } from "../../base/allowance.ts";
import { concatBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import type { Timers } from "../../base/timers.ts";
import { cidOf } from "../../crypto/cid.ts";
import { markedList } from "./handshake.ts";
import { createRematch } from "./rematch.ts";
import { TOKEN_BYTES } from "./space-tokens.ts";

const NONCE_BYTES = 32;
const spaceId = cidOf(new Uint8Array(8)) as SpaceId;

test("a peer that compares again and again at once is answered one comparison after the other", async () => {
  let comparing = 0;
  let most = 0;
  const rematch = createRematch({
    role: "listener",
    binding: randomBytes(32),
    currentKeys: () => ({ own: randomBytes(32), spaces: [] }),
    async afford() {
      most = Math.max(most, ++comparing);
    },
    matched: () => {},
  });
  const questions = Array.from({ length: 20 }, () =>
    rematch.answer(concatBytes(randomBytes(32), markedList(randomBytes(256), false))).finally(() => comparing--),
  );
  expect(await rematch.answer(new Uint8Array(3)).catch((error: Error) => error.message)).toContain("bad-format");
  expect(await Promise.all(questions)).toHaveLength(20);
  expect(most).toBe(1);
});

test("[SYNC-4] a peer that compares without end costs no more than an account may, and one that asks now and then is not held up", async () => {
  const sleepers: (() => void)[] = [];
  let nowMs = 0;
  const timers: Timers = {
    elapsedMs: () => nowMs,
    sleep: () => new Promise((wake) => void sleepers.push(wake)),
    after: () => () => {},
  };
  const KEYS = 999;
  const SHOWN = 16;
  const afford = createAllowance(timers, { burst: 20_300, perSecond: 1015 });
  const keys = {
    own: randomBytes(32),
    spaces: Array.from({ length: KEYS - 1 }, () => ({ spaceId, key: randomBytes(32) })),
  };
  let answered = 0;
  const linkOf = (account: string) =>
    createRematch({
      ...{ role: "listener" as const, binding: randomBytes(32), currentKeys: () => keys, matched() {} },
      afford: (tokens) => afford(account, tokens),
    });
  const ask = (link: ReturnType<typeof createRematch>) =>
    link.answer(concatBytes(randomBytes(32), markedList(randomBytes(SHOWN * TOKEN_BYTES), false)));
  // Two links of one account share what it may have.
  for (const link of [linkOf("greedy"), linkOf("greedy")])
    for (let i = 0; i < 50; i++) void ask(link).then(() => answered++);
  const rest = async (): Promise<void> => {
    for (let before = -1; before !== answered + sleepers.length; ) {
      before = answered + sleepers.length;
      for (let turn = 0; turn < 20; turn++) await Bun.sleep(0);
    }
  };
  await rest();
  expect([answered, sleepers.length]).toEqual([20, 2]);
  await ask(linkOf("honest"));
  for (let second = 1; second <= 10; second++) {
    nowMs += 1000;
    for (const wake of sleepers.splice(0)) wake();
    await rest();
    expect(answered).toBe(20 + second);
  }
});

test("who asks while a question waits for its turn is served by that one", async () => {
  const questions: (() => void)[] = [];
  let matched = 0;
  const link = createRematch({
    ...{ role: "dialler" as const, binding: randomBytes(32), afford: () => Promise.resolve() },
    currentKeys: () => ({ own: randomBytes(32), spaces: [] }),
    matched: () => matched++,
  });
  const request = (body: Uint8Array): Promise<Uint8Array> =>
    new Promise((resolve) => void questions.push(() => resolve(body.slice(NONCE_BYTES))));
  const asked = Array.from({ length: 100 }, () => link.ask(request));
  for (let turn = 0; turn < 5; turn++) await Bun.sleep(0);
  asked.push(...Array.from({ length: 100 }, () => link.ask(request)));
  const settled = Promise.all(asked);
  for (let turn = 0; turn < 50; turn++) {
    for (const answer of questions.splice(0)) answer();
    await Bun.sleep(0);
  }
  await settled;
  expect(matched).toBe(2);
});
