import { expect, test } from "bun:test";
import { createKeyedSemaphore } from "./keyed-semaphore.ts";

test("works of one key run in their order, one at a time, those of another beside them, and a failure passes the turn on", async () => {
  const turns = createKeyedSemaphore<string>();
  const begun: string[] = [];
  const gates = new Map(["a1", "a2", "a3", "b1"].map((name) => [name, Promise.withResolvers<string>()]));
  const runs = [...gates].map(([name, { promise }]) =>
    turns.run(name[0]!, () => {
      begun.push(name);
      return promise;
    }),
  );
  expect(begun).toEqual(["a1", "b1"]);
  let isIdle = false;
  const idle = turns.idle().then(() => {
    isIdle = true;
  });

  gates.get("a1")!.reject(new Error("one"));
  await expect(runs[0]!).rejects.toThrow("one");
  expect(begun).toEqual(["a1", "b1", "a2"]);
  gates.get("a2")!.resolve("two");
  expect(await runs[1]!).toBe("two");
  gates.get("b1")!.resolve("other");
  await runs[3]!;
  expect([begun.at(-1), isIdle]).toEqual(["a3", false]);

  gates.get("a3")!.resolve("three");
  await idle;
  expect(isIdle).toBe(true);
  await turns.idle();
});
