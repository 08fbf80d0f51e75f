import { expect, test } from "bun:test";
import { concatBytes } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { markedList } from "./handshake.ts";
import { createRematch } from "./rematch.ts";

test("a peer that compares again and again at once is answered one comparison after the other", async () => {
  let comparing = 0;
  let most = 0;
  const rematch = createRematch({
    role: "listener",
    binding: randomBytes(32),
    currentKeys: () => {
      most = Math.max(most, ++comparing);
      return { own: randomBytes(32), spaces: [] };
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
