/** Spaces on disk for tests: the rules that they know, the one object that every replica derives, and what its rows hold. */
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import type { SpaceId } from "../../../src/base/ids.ts";
import type { ChangeBody } from "../../../src/change/codec/change-body.ts";
import type { DatasetRules } from "../../../src/change/codec/dataset-rules.ts";
import type { RulesRegistry } from "../../../src/change/codec/ports.ts";
import type { Account } from "../../../src/crypto/account.ts";
import {
  type OpenSpaceDeps,
  openSpace,
  type Space,
  type SpaceGenesis,
  writeGenesis,
} from "../../../src/space/space.ts";

export const ITEMS: DatasetRules = { name: "items", idRule: "user" };
/** Of the object that has the records. */
export const ITEMS_TYPE = "test.items";

/** The rules of these datasets, and of no others. */
export function registryOf(...rules: readonly DatasetRules[]): RulesRegistry {
  const byName = new Map(rules.map((each) => [each.name, each]));
  return {
    rulesFor(dataset) {
      const found = byName.get(dataset);
      return found ? { rules: found } : { unknown: true };
    },
  };
}

/** Opens a space in a file, which becomes the space of that genesis if it is not there yet. */
export function openSpaceIn(path: string, genesis: SpaceGenesis, deps: OpenSpaceDeps): Space {
  writeGenesis(path, genesis);
  return openSpace(path, genesis.spaceId, deps);
}

/** A space in the data root of a server that is stopped. It knows no dataset. */
export const openSpaceUnder = (dataDir: string, account: Account, spaceId: string): Space =>
  openSpace(join(dataDir, account.id, "sdk", `${spaceId}.db`), spaceId as SpaceId, {
    account,
    clock: systemClock,
    registry: () => registryOf(),
  });

/** Sets field `v` of a record of `items` to a text. */
export async function writeItem({ engine }: Space, id: string, text: string): Promise<void> {
  const body: ChangeBody = {
    dataset: ITEMS.name,
    records: [{ id, upsert: true, ops: [{ type: "$set", path: "v", value: text }] }],
  };
  await engine.write((tx) => tx.appendPartly(tx.ensureDerived(ITEMS_TYPE, ""), body, ITEMS));
}

/** Rows of one of its datasets as they are stored, tombstones among them, ordered by id. */
export function rowTexts({ engine, store }: Pick<Space, "engine" | "store">, dataset = ITEMS.name): string[] {
  const object = engine.object(engine.derivedId(ITEMS_TYPE, ""));
  const collectionId = object && engine.collectionIdOf(object, dataset);
  if (collectionId === undefined) return [];
  return store.db
    .query<{ doc: string }, [number]>("SELECT doc FROM rows WHERE collectionId = ? AND state > 0 ORDER BY id")
    .all(collectionId)
    .map(({ doc }) => doc);
}
