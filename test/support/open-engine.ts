/** Engines of one space that any account may write to: for features whose rules are about who wrote what. */
import { join } from "node:path";
import type { AccountId, PeerId, SpaceId } from "../../src/base/ids.ts";
import { randomBytes } from "../../src/base/random.ts";
import type { DatasetRules } from "../../src/change/codec/dataset-rules.ts";
import { type ChangeEngine, type ChangeEngineDeps, createChangeEngine } from "../../src/change/space-engine.ts";
import type { Account } from "../../src/crypto/account.ts";
import { accountIdOf } from "../../src/crypto/account-id.ts";
import { cidFromDigest } from "../../src/crypto/cid.ts";
import { keyIdOf } from "../../src/crypto/seal.ts";
import { createSigner } from "../../src/crypto/sign.ts";
import { openSpaceStore } from "../../src/store/space-store.ts";

/** What makes a space whose ACL says yes to everyone. */
export interface OpenSpaceSeed {
  spaceId: SpaceId;
  readKey: Uint8Array;
  aclRoot: Uint8Array;
}

export const createOpenSeed = (): OpenSpaceSeed => ({
  spaceId: cidFromDigest(randomBytes(32)) as SpaceId,
  readKey: randomBytes(32),
  aclRoot: randomBytes(32),
});

export function createTestAccount(): Account {
  const seed = randomBytes(32);
  const signer = createSigner(seed);
  return { id: accountIdOf(signer.publicKey) as AccountId, peerId: "test" as PeerId, seed, signer };
}

export function openEngine(
  dir: string,
  name: string,
  seed: OpenSpaceSeed,
  account: Account,
  rules: readonly DatasetRules[],
  now: () => number,
  more: Partial<ChangeEngineDeps> = {},
): ChangeEngine {
  const byName = new Map(rules.map((each) => [each.name, each]));
  const key = { id: keyIdOf(seed.readKey), key: seed.readKey };
  return createChangeEngine({
    spaceId: seed.spaceId,
    store: openSpaceStore(join(dir, `${name}.db`)),
    acl: {
      head: () => ({ id: seed.aclRoot, pos: 0, clock: 0 }),
      at: (id) => (Buffer.compare(id, seed.aclRoot) === 0 ? { pos: 0, clock: 0 } : undefined),
      counts: () => true,
    },
    keys: { current: () => key, byId: (id) => (Buffer.compare(id, key.id) === 0 ? key.key : undefined) },
    registry: {
      rulesFor(dataset) {
        const found = byName.get(dataset);
        return found ? { rules: found } : { unknown: true };
      },
    },
    signer: account.signer,
    clock: { nowMs: now },
    ...more,
  });
}

/** Everything one engine has, handed to another in any order; all of it must find its place. */
export async function deliver(
  from: ChangeEngine,
  to: ChangeEngine,
  shuffle: <T>(items: readonly T[]) => T[],
): Promise<void> {
  const bytes: Uint8Array[] = [];
  for (let after = 0; ; ) {
    const page = from.store.changes.after(after, 500);
    bytes.push(...page.map((change) => change.bytes));
    if (page.length < 500) break;
    after = page[page.length - 1]!.no;
  }
  for (const verdict of await to.ingest(shuffle(bytes))) {
    if (verdict.kind === "quarantined" || verdict.kind === "refused")
      throw new Error(`a change was not taken in: ${verdict.reason}`);
  }
}
