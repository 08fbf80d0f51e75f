import { expect, test } from "bun:test";
import { openAccountStore } from "./account-store.ts";

const fail = (error: unknown): never => {
  throw error;
};

test("[SPACE-4] of too many requests the first and the last are kept, and who is known gives way to no stranger", async () => {
  const store = openAccountStore(":memory:", { onFault: fail, pending: { kept: 8, shown: 4 } });
  const notified: string[] = [];
  store.onPending((spaceId) => void notified.push(spaceId));
  const add = (spaceId: string, known = false) => store.addPendingSpace(spaceId, JSON.stringify({ spaceId }), known);
  const shown = () => store.pendingSpaces().map((row) => (JSON.parse(row) as { spaceId: string }).spaceId);
  await add("known", true);
  for (let no = 10; no < 30; no++) await add(`s${no}`);
  const kept = Array.from({ length: 20 }, (_, index) => `s${index + 10}`).filter((id) => store.pendingSpace(id));
  expect(kept).toEqual(["s10", "s11", "s12", "s13", "s26", "s27", "s28", "s29"]);
  expect(shown()).toEqual(["known", "s10", "s11", "s28", "s29"]);
  expect(store.shownPendingSpace("s12")).toBeUndefined();

  notified.length = 0;
  await store.dropPendingSpace("s10");
  expect(shown()).toEqual(["known", "s11", "s12", "s28", "s29"]);
  expect(notified.sort()).toEqual(["s10", "s12"]);
  await add("s11"); // again: it stands where it stood
  expect(shown()).toEqual(["known", "s11", "s12", "s28", "s29"]);
  await store.close();
});
