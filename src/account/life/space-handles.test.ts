import { expect, test } from "bun:test";
import type { SpaceId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { openAccountStore } from "../../store/account-store.ts";
import { createSpaceHandles } from "./space-handles.ts";

test("[SRV-3] whoever goes through many spaces leaves others a turn of the loop before each", async () => {
  const store = openAccountStore(":memory:", { onFault: () => {}, pending: { kept: 2, shown: 2 } });
  let turns = 0;
  let counting = true;
  const count = (): void => {
    turns++;
    if (counting) setImmediate(count);
  };
  try {
    const handles = createSpaceHandles({
      store,
      clock: { nowMs: () => 1 },
      log: silentLog,
      // As it is for a space that is here: nothing in it waits for anything outside.
      open: async () => ({ busy: () => false, close: async () => {} }),
    });
    setImmediate(count);
    for (let i = 0; i < 40; i++) await handles.get(`space-${i}` as SpaceId);
    expect(turns).toBeGreaterThanOrEqual(39);
    await handles.closeAll();
  } finally {
    counting = false;
    await store.close();
  }
});
