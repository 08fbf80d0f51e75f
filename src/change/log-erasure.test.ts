/** When what was deleted leaves the write-ahead log of a space. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { holdTimers } from "../../test/support/held-timers.ts";
import { scratchDir } from "../../test/support/scratch.ts";
import { openSpaceStore } from "../store/space-store.ts";
import { createLogErasure } from "./log-erasure.ts";

test("[OBJ-5] a log that a reader holds is emptied soon after the reader is done, and tried ever more seldom before", () => {
  using dir = scratchDir("svc-log-erasure");
  const path = join(dir.path, "space.db");
  const store = openSpaceStore(path);
  using timers = holdTimers();
  let tries = 0;
  const counted = {
    eraseLog(): boolean {
      tries++;
      return store.eraseLog();
    },
  };
  const erasure = createLogErasure({ store: counted, isClosed: () => false });
  try {
    store.putMeta("word", new TextEncoder().encode("canary"));
    store.db.run("DELETE FROM meta WHERE key = 'word'");
    const reader = new Database(path, { readonly: true });
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM meta").get();
    erasure.due();
    timers.pass(2_000);
    expect(tries).toBe(1);
    expect(readFileSync(`${path}-wal`).includes("canary")).toBe(true);
    reader.run("COMMIT");
    timers.pass(2_000);
    expect(tries).toBe(2);
    expect(statSync(`${path}-wal`).size).toBe(0);

    // A reader that goes on for long.
    store.putMeta("word", new TextEncoder().encode("canary"));
    reader.run("BEGIN");
    reader.query("SELECT count(*) FROM meta").get();
    erasure.due();
    timers.pass(3_600_000);
    expect(tries).toBeGreaterThan(100);
    expect(tries).toBeLessThan(130);
    reader.run("COMMIT");
    timers.pass(30_000);
    expect(statSync(`${path}-wal`).size).toBe(0);
    const triesOver = tries;
    timers.pass(3_600_000);
    expect(tries).toBe(triesOver);
    reader.close();
  } finally {
    erasure.close();
    store.close();
  }
});
