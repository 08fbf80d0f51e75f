/** Engines of one space that any account may write to: for features whose rules are about who wrote what. */

import { join } from "node:path";
import type { SpaceId } from "../../../src/base/ids.ts";
import { randomBytes } from "../../../src/base/random.ts";
import type { DatasetRules } from "../../../src/change/codec/dataset-rules.ts";
import { type ChangeEngine, type ChangeEngineDeps, createChangeEngine } from "../../../src/change/space-engine.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { cidFromDigest } from "../../../src/crypto/cid.ts";
import { keyIdOf } from "../../../src/crypto/seal.ts";
import { refusalText } from "../../../src/protocol/refusals.ts";
import { createOneSpaceEvents, type OneSpaceEvents } from "../../../src/space/one-space-events.ts";
import { openSpaceStore, type SpaceStore } from "../../../src/store/space-store.ts";
import { registryOf } from "./test-space.ts";

/** What makes a space whose ACL says yes to everyone. */
export interface OpenGenesis {
  spaceId: SpaceId;
  readKey: Uint8Array;
  aclRoot: Uint8Array;
}

export const createOpenGenesis = (): OpenGenesis => ({
  spaceId: cidFromDigest(randomBytes(32)) as SpaceId,
  readKey: randomBytes(32),
  aclRoot: randomBytes(32),
});

/** The space of replicas that are opened one by one. */
export const COMMON_GENESIS: OpenGenesis = {
  spaceId: cidFromDigest(new Uint8Array(32).fill(7)) as SpaceId,
  readKey: new Uint8Array(32).fill(9),
  aclRoot: new Uint8Array(32),
};

/** Whether the changes of an account count; a test may take the right away and give it back. */
export interface Rights {
  deny(author: Uint8Array): void;
  allow(author: Uint8Array): void;
  counts(author: Uint8Array): boolean;
}

export function createRights(): Rights {
  const denied = new Set<string>();
  const text = (key: Uint8Array) => Buffer.from(key).toString("hex");
  return {
    deny: (author) => void denied.add(text(author)),
    allow: (author) => void denied.delete(text(author)),
    counts: (author) => !denied.has(text(author)),
  };
}

/** An engine and the store that it writes to, closed together, and where others listen to its commits. */
export interface OpenEngine extends ChangeEngine {
  readonly store: SpaceStore;
  readonly events: OneSpaceEvents;
}

/** The bytes of every change, in the order in which it came. */
export async function changesOf(engine: Pick<OpenEngine, "idle" | "store">): Promise<Uint8Array[]> {
  await engine.idle();
  return engine.store.db
    .query<{ bytes: Uint8Array }, []>("SELECT bytes FROM changes ORDER BY no")
    .all()
    .map((row) => row.bytes);
}

export function openEngine(
  dir: string,
  name: string,
  genesis: OpenGenesis,
  account: Pick<Account, "signer">,
  rules: readonly DatasetRules[],
  now: () => number,
  { rights, ...more }: Partial<ChangeEngineDeps> & { rights?: Rights | undefined } = {},
): OpenEngine {
  const key = { id: keyIdOf(genesis.readKey), key: genesis.readKey };
  const events = createOneSpaceEvents();
  const store = more.store ?? openSpaceStore(join(dir, `${name}.db`));
  const engine = createChangeEngine({
    spaceId: genesis.spaceId,
    store,
    acl: {
      head: () => ({ id: genesis.aclRoot, pos: 0, clock: 0 }),
      at: (id) => (Buffer.compare(id, genesis.aclRoot) === 0 ? { pos: 0, clock: 0 } : undefined),
      counts: ({ author }) => rights?.counts(author) ?? true,
    },
    keys: { current: () => key, byId: (id) => (Buffer.compare(id, key.id) === 0 ? key.key : undefined) },
    registry: registryOf(...rules),
    signer: account.signer,
    clock: { nowMs: now },
    committed: (batch) => events.emit("committed", batch),
    ...more,
  });
  return {
    ...engine,
    store,
    events,
    async close() {
      await engine.close();
      await store.idle();
      store.close();
    },
  };
}

/** Everything one engine has, handed to another in any order; all of it must find its place. */
export async function deliver(
  from: OpenEngine,
  to: ChangeEngine,
  shuffle: <T>(items: readonly T[]) => T[],
): Promise<void> {
  for (const verdict of await to.ingest(shuffle(await changesOf(from)))) {
    if (verdict.kind === "quarantined" || verdict.kind === "refused")
      throw new Error(`a change was not taken in: ${refusalText(verdict.refusal)}`);
  }
}
