import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createAccount } from "../../test/support/acl-world.ts";
import { scratchDir } from "../../test/support/scratch.ts";
import { openSpaceStore } from "../store/space-store.ts";
import { createdSpaceGenesis, writeGenesis } from "./space.ts";

const seed = createdSpaceGenesis(createAccount(), { nowMs: () => 1_800_000_000_000 });

/** How many records of rights a space's file holds. */
function recordsIn(path: string): number {
  const store = openSpaceStore(path);
  try {
    return store.aclRecords().length;
  } finally {
    store.close();
  }
}

test("what a crash left of a planting is begun anew, and nothing of it stays", () => {
  using dir = scratchDir("svc-planting");
  const path = join(dir.path, "space.db");
  writeFileSync(`${path}.planting`, "half a file");
  writeFileSync(`${path}.planting-wal`, "half a log");
  writeGenesis(path, seed);
  expect(recordsIn(path)).toBe(1);
  for (const suffix of ["", "-wal", "-shm"]) expect(existsSync(`${path}.planting${suffix}`)).toBe(false);
});

test("a file that a crash left without its header becomes the space; planting again changes nothing", () => {
  using dir = scratchDir("svc-planting");
  const path = join(dir.path, "space.db");
  openSpaceStore(path).close();
  for (let i = 0; i < 2; i++) writeGenesis(path, seed);
  expect(recordsIn(path)).toBe(1);
});
