import { expect, test } from "bun:test";
import { join } from "node:path";
import { scratchDir } from "../../../test/support/scratch.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { openSpaceStore } from "../space-store.ts";

test("[SYNC-12] what waits to be sent waits in the order in which it was left, after a restart too", () => {
  using dir = scratchDir("svc-store");
  const path = join(dir.path, "space.db");
  const ids = Array.from({ length: 20 }, () => randomBytes(32));
  const put = (some: readonly Uint8Array[]): string[] => {
    const store = openSpaceStore(path);
    for (const id of some) store.inbox.put({ id, receiver: id, sealed: id });
    const waiting = store.inbox.outgoing().map(({ id }) => bytesToHex(id));
    store.close();
    return waiting;
  };
  put(ids.slice(0, 10));
  expect(put(ids.slice(10))).toEqual(ids.map(bytesToHex));
});
