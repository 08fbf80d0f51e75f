import { SPACE_TYPE } from "../acl/record/space-header.ts";
import { bytesToBase64 } from "../base/bytes.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Account } from "../crypto/account.ts";
import { type Space, type SpaceGenesis, writeGenesis } from "../space/space.ts";
import {
  SPACE_INDEX_DATASET,
  SPACE_INDEX_RECORD,
  type SpaceMetadata,
  spaceIndexIn,
  writeSpaceMetadata,
} from "../space/space-index.ts";
import type { AccountStore } from "../store/account-store.ts";
import type { SpacePaths } from "./space-files.ts";
import type { SpaceRoots } from "./space-roots.ts";
import { pushKeys } from "./space-row.ts";
import type { TechSpace } from "./tech-space.ts";

/** An intent to create a space: everything that finishing it needs. */
interface CreateIntent {
  header: string;
  aclRoot: { id: string; bytes: string };
  metadata: SpaceMetadata;
  derived: boolean;
}

interface SpaceCreationDeps {
  account: Account;
  store: AccountStore;
  paths: SpacePaths;
  tech: TechSpace;
  roots: SpaceRoots;
  /** Runs something over a space whose genesis is written. */
  use(spaceId: SpaceId, run: (space: Space) => Promise<void>): Promise<void>;
  /** Named points at which tests stop the process. */
  crashPoint(name: "space-create:intent" | "space-create:space" | "space-create:row"): void;
}

/** Makes spaces: writes the intent first, then the space, then its row, so that boot completes what a crash left undone. */
export function createSpaceCreation(deps: SpaceCreationDeps) {
  const { account, store, paths, tech, roots } = deps;

  /** Row, genesis and metadata of a space, from an intent whose work may have been begun before. */
  const carryOut = async (spaceId: SpaceId, intent: CreateIntent): Promise<void> => {
    const seed: SpaceGenesis = {
      spaceId,
      header: Buffer.from(intent.header, "base64"),
      aclRoot: { id: Buffer.from(intent.aclRoot.id, "base64"), bytes: Buffer.from(intent.aclRoot.bytes, "base64") },
    };
    writeGenesis(paths.space(spaceId), seed);
    paths.syncDirectory();
    await deps.use(spaceId, (space) => furnish(space, intent));
    store.dropIntent(spaceId);
  };

  /** Writes the metadata into the space, then its row: this makes it one of the account's spaces. */
  const furnish = async (space: Space, intent: CreateIntent): Promise<void> => {
    const spaceId = space.id;
    const index = await space.engine.write((tx) => {
      const object = spaceIndexIn(tx);
      if (!tx.record(object, SPACE_INDEX_DATASET, SPACE_INDEX_RECORD)) writeSpaceMetadata(tx, intent.metadata);
      return object;
    });
    deps.crashPoint("space-create:space");
    const row = tech.spaceRow(spaceId);
    await tech.setSpaceRow(
      spaceId,
      row
        ? {}
        : {
            ...intent.metadata,
            spaceType: SPACE_TYPE,
            author: account.id,
            status: "active",
            ...(intent.derived ? { derived: true } : {}),
          },
      { ownRole: space.role(), spaceIndexObjectId: index.idText, push: pushKeys(space) ?? null },
    );
    deps.crashPoint("space-create:row");
    if (!intent.derived) await roots.keep(space);
  };

  return {
    /** Everything is durable when it resolves, the row included. */
    async begin(seed: SpaceGenesis, metadata: SpaceMetadata, derived: boolean): Promise<void> {
      const intent: CreateIntent = {
        header: bytesToBase64(seed.header),
        aclRoot: { id: bytesToBase64(seed.aclRoot.id), bytes: bytesToBase64(seed.aclRoot.bytes) },
        metadata,
        derived,
      };
      await store.putIntent(seed.spaceId, Buffer.from(JSON.stringify(intent)));
      deps.crashPoint("space-create:intent");
      await carryOut(seed.spaceId, intent);
    },

    /** Finishes what a crash interrupted. */
    async resume(stopped: () => boolean): Promise<void> {
      for (const { spaceId, payload } of store.intents()) {
        if (stopped()) return;
        await carryOut(spaceId as SpaceId, JSON.parse(Buffer.from(payload).toString()) as CreateIntent);
      }
    },
  };
}
