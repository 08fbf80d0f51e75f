import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchDir } from "../../test/support/scratch.ts";
import { createAccount } from "../../test/support/worlds/acl-world.ts";
import { registryOf } from "../../test/support/worlds/test-space.ts";
import { encodeAclRecord } from "../acl/record/record.ts";
import { decodeSpaceHeader } from "../acl/record/space-header.ts";
import { randomBytes } from "../base/random.ts";
import { openSpaceStore } from "../store/space-store.ts";
import { genesisOfRoot } from "./genesis.ts";
import { createdSpaceGenesis, openSpace, writeGenesis } from "./space.ts";

const account = createAccount();
const clock = { nowMs: () => 1_800_000_000_000 };
const genesis = createdSpaceGenesis(account, clock);

/** How many ACL records a space's file holds. */
function recordsIn(path: string): number {
  const store = openSpaceStore(path);
  try {
    return store.aclRecords().length;
  } finally {
    store.close();
  }
}

test("[SPACE-6] what a crash left of a genesis is begun anew, and nothing of it stays", () => {
  using dir = scratchDir("svc-genesis");
  const path = join(dir.path, "space.db");
  writeFileSync(`${path}.new`, "half a file");
  writeFileSync(`${path}-wal`, "half a log");
  writeGenesis(path, genesis);
  expect(recordsIn(path)).toBe(1);
  for (const suffix of [".new", "-wal", "-shm"]) expect(existsSync(`${path}${suffix}`)).toBe(false);
});

test("[SPACE-6] a file that a crash left without its header becomes the space; genesis again changes nothing", () => {
  using dir = scratchDir("svc-genesis");
  const path = join(dir.path, "space.db");
  openSpaceStore(path).close();
  for (let i = 0; i < 2; i++) writeGenesis(path, genesis);
  expect(recordsIn(path)).toBe(1);
});

test("[SPACE-6] a file without its header becomes the space as it is opened with its genesis, and is damaged without", () => {
  using dir = scratchDir("svc-genesis");
  const path = join(dir.path, "space.db");
  openSpaceStore(path).close();
  const deps = { account, clock, registry: () => registryOf() };
  expect(() => openSpace(path, genesis.spaceId, deps)).toThrow("is not the space");
  for (let i = 0; i < 2; i++) {
    const space = openSpace(path, genesis.spaceId, { ...deps, genesis });
    expect(space.role()).toBe("owner");
    expect(space.acl.records()).toHaveLength(1);
    void space.close();
  }
});

test("[ACL-12] a root is one by the header that it carries: nobody begins another's space with a record of its own", () => {
  expect(genesisOfRoot(genesis.aclRoot.bytes)?.spaceId).toBe(genesis.spaceId);
  const stranger = createAccount();
  const other = createdSpaceGenesis(stranger, { nowMs: () => 1_800_000_000_000 });
  const space = decodeSpaceHeader(genesis.header)!.digest;
  const root = (header: Uint8Array) =>
    encodeAclRecord(
      {
        space,
        prev: null,
        time: 1_800_000_000_000,
        clock: 0,
        ops: [
          {
            op: "root",
            header,
            epoch: { keyId: randomBytes(16), metadataKey: stranger.signer.publicKey, sealed: [], previous: [] },
          },
        ],
      },
      stranger.signer,
    ).bytes;
  for (const header of [other.header, genesis.header, randomBytes(100)])
    expect(genesisOfRoot(root(header))).toBeUndefined();
});
