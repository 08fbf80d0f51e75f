import { SPACE_TYPE } from "../../acl/record/space-header.ts";
import { bytesToBase64 } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../crypto/account.ts";
import { SvcError } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type Space, type SpaceGenesis, writeGenesis } from "../../space/space.ts";
import {
  SPACE_INDEX_DATASET,
  SPACE_INDEX_RECORD,
  type SpaceMetadata,
  spaceIndexIn,
  writeSpaceMetadata,
} from "../../space/space-index.ts";
import type { AccountStore } from "../../store/account-store.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import type { SpacePaths } from "../rows/space-files.ts";
import type { SpaceRoots } from "../rows/space-roots.ts";
import { pushKeys } from "../rows/space-row.ts";
import type { SpaceRegistry } from "./space-registry.ts";

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
  spaces: Pick<SpaceRegistry, "use" | "remove">;
  log: Log;
  /** Named points at which tests stop the process. */
  crashPoint(name: "space-create:intent" | "space-create:space" | "space-create:row"): void;
}

/**
 * Makes spaces (SPACE-6): the intent first, then the space, then its row, so that a crash in between is made good at boot. What cannot be
 * made is refused before the intent; an intent that turns out to be refused for good is undone, and any other that fails
 * is tried again without holding up anything.
 */
export type SpaceCreation = ReturnType<typeof createSpaceCreation>;

export function createSpaceCreation(deps: SpaceCreationDeps) {
  const { account, store, paths, tech, roots, log } = deps;
  /** Spaces that could not be finished, and are tried again. */
  const unfinished = new Set<SpaceId>();
  let retrying = false;

  const rowOf = (intent: CreateIntent): JsonObject => ({
    ...intent.metadata,
    spaceType: SPACE_TYPE,
    author: account.id,
    ...(intent.derived ? { derived: true } : {}),
  });

  /** Carries an intent out; one that is refused leaves nothing, one that fails otherwise is left to be tried again. */
  const finish = async (spaceId: SpaceId, intent: CreateIntent): Promise<void> => {
    try {
      await carryOut(spaceId, intent);
      unfinished.delete(spaceId);
    } catch (error) {
      if (isRefusal(error)) {
        // Without its row nobody has been told of the space.
        if (!tech.spaceRow(spaceId)) await deps.spaces.remove(spaceId);
        store.dropIntent(spaceId);
        unfinished.delete(spaceId);
      } else unfinished.add(spaceId);
      throw error;
    }
  };

  const finishStored = async (spaceId: SpaceId, payload: Uint8Array): Promise<void> => {
    try {
      await finish(spaceId, JSON.parse(Buffer.from(payload).toString()) as CreateIntent);
    } catch (err) {
      if (isRefusal(err))
        log.warn("a space whose creation was interrupted is refused, and was undone", { err, spaceId });
      else
        log.error("a space whose creation was interrupted could not be finished; it is tried again", { err, spaceId });
    }
  };

  /** Row, genesis and metadata of a space, from an intent whose work may have been begun before. */
  const carryOut = async (spaceId: SpaceId, intent: CreateIntent): Promise<void> => {
    const genesis: SpaceGenesis = {
      spaceId,
      header: Buffer.from(intent.header, "base64"),
      aclRoot: { id: Buffer.from(intent.aclRoot.id, "base64"), bytes: Buffer.from(intent.aclRoot.bytes, "base64") },
    };
    writeGenesis(paths.space(spaceId), genesis);
    paths.syncDirectory();
    await deps.spaces.use(spaceId, (space) => furnish(space, intent));
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
    const local = { ownRole: space.role(), spaceIndexObjectId: index.idText, push: pushKeys(space) ?? null };
    if (!(await tech.moveSpace(spaceId, "made", rowOf(intent), local))) await tech.setSpaceRow(spaceId, {}, local);
    deps.crashPoint("space-create:row");
    if (!intent.derived) await roots.keep(space);
  };

  return {
    /** Durable, row and all, when it resolves. Errors: dataset.validation and request.too_large, of which nothing stays. */
    async begin(genesis: SpaceGenesis, metadata: SpaceMetadata, derived: boolean): Promise<void> {
      const intent: CreateIntent = {
        header: bytesToBase64(genesis.header),
        aclRoot: { id: bytesToBase64(genesis.aclRoot.id), bytes: bytesToBase64(genesis.aclRoot.bytes) },
        metadata,
        derived,
      };
      await tech.tryMove(genesis.spaceId, "made", rowOf(intent));
      await store.putIntent(genesis.spaceId, Buffer.from(JSON.stringify(intent)));
      deps.crashPoint("space-create:intent");
      await finish(genesis.spaceId, intent);
    },

    /** Finishes what a crash interrupted. */
    async resume(stopped: () => boolean): Promise<void> {
      for (const { spaceId, payload } of store.intents()) {
        if (stopped()) return;
        await finishStored(spaceId as SpaceId, payload);
      }
    },

    /** Tries those again that could not be finished; one run at a time. */
    async retry(stopped: () => boolean): Promise<void> {
      if (retrying || unfinished.size === 0) return;
      retrying = true;
      try {
        for (const { spaceId, payload } of store.intents()) {
          if (stopped()) return;
          if (unfinished.has(spaceId as SpaceId)) await finishStored(spaceId as SpaceId, payload);
        }
      } catch (err) {
        log.error("spaces whose creation was interrupted could not be tried again", { err });
      } finally {
        retrying = false;
      }
    },

    /** Spaces that could not be finished, and are tried again. */
    unfinished: (): SpaceId[] => [...unfinished],
  };
}

/** Whether the same would be refused again, whenever it is tried. */
function isRefusal(error: unknown): boolean {
  return error instanceof SvcError && (error.status === 400 || error.status === 413);
}
