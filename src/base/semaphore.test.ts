import { expect, test } from "bun:test";
import { createSemaphore } from "./semaphore.ts";

test("so many run at once, the rest in the order they came, and a failure passes its place on", async () => {
  const inTurn = createSemaphore(2);
  const begun: number[] = [];
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<number>());
  const runs = gates.map(({ promise }, index) =>
    inTurn(() => {
      begun.push(index);
      return promise;
    }),
  );
  expect(begun).toEqual([0, 1]);

  gates[1]!.reject(new Error("one"));
  await expect(runs[1]).rejects.toThrow("one");
  expect(begun).toEqual([0, 1, 2]);

  // A newcomer does not slip in before those who wait.
  gates[0]!.resolve(0);
  const late = inTurn(async () => begun.push(5));
  for (const [index, gate] of gates.entries()) gate.resolve(index);
  await Promise.all([runs[0], runs[2], runs[3], runs[4], late]);
  expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
});
