import { type SpacePaths, spacePaths } from "../../account/rows/space-files.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { closePart } from "../../base/service.ts";
import { createHistoryMemory, type HistoryMemory } from "../../change/history/memory.ts";
import { createChangeChecker } from "../../change/intake/change-checker.ts";
import type { Account } from "../../crypto/account.ts";
import { createDefinitionRegistry } from "../../domain/type/definition-registry.ts";
import type { WritableDataset } from "../../domain/type/port.ts";
import { createSchema, type Schema } from "../../domain/type/schema.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { createReaderPool, type ReaderPool } from "../../query/readers/reader-pool.ts";
import { openSpaceInSlices, type Space, type SpaceGenesis } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import { type AccountStore, openAccountStore } from "../../store/account-store.ts";
import { openingPatiently } from "../../store/database/locked-database.ts";
import { createWalCheckpointer } from "../../store/database/wal-checkpointer.ts";
import { endsWithItsRoot } from "../built-in-datasets.ts";
import { createRepairLog, type RepairLog } from "../repair-log.ts";

/** What is on the disk, and the threads that work on it. */
export interface Stores {
  readonly paths: SpacePaths;
  readonly account: AccountStore;
  readonly readers: ReaderPool;
  readonly repairs: RepairLog;
  readonly historyMemory: HistoryMemory;
  /** Returns the schema of an open space. */
  schemaOf(spaceId: SpaceId): Schema;
  /** Waits while another program has the space's database locked. */
  openSpace(spaceId: SpaceId, options: OpenSpaceOptions): Promise<Space>;
}

interface OpenSpaceOptions {
  /** The account that signs the changes that are made there. */
  as: Account;
  builtIns: ReadonlyMap<string, WritableDataset>;
  keepsHistory: boolean;
  genesis?: SpaceGenesis;
}

/** Boot, phase 1. What it opens is closed with `parts`. */
export async function openStores(deps: {
  parts: AsyncDisposableStack;
  accountDir: string;
  events: SpaceEvents;
  clock: Clock;
  log: Log;
}): Promise<Stores> {
  const { parts, events, clock, log } = deps;
  const paths = spacePaths(deps.accountDir);
  const opened = await openingPatiently(() =>
    openAccountStore(paths.account, {
      onFault: (err) => log.warn("what this device keeps of an account was not brought in step", { err }),
      onRepair: (tables) =>
        log.warn("what is kept of an account was damaged on the disk: its copies took its place", { tables }),
      pending: { kept: LIMITS.keptRequests, shown: LIMITS.pendingSpaces },
    }),
  );
  const account = parts.adopt(opened, closePart);
  const readers = parts.adopt(createReaderPool(), closePart);
  const repairs = parts.adopt(createRepairLog({ account, clock, log }), closePart);
  const warnOfLost = (err: unknown) =>
    log.warn("a thread that verifies changes was lost; they are verified without it for a while", { err });
  const checker = parts.adopt(createChangeChecker(warnOfLost), closePart);
  const checkpointer = parts.adopt(createWalCheckpointer(), closePart);
  const walCopying = {
    checkpointer,
    onFault: (err: unknown) => log.warn("a checkpoint failed, it is tried again", { err }),
  };
  const schemas = new Map<SpaceId, Schema>();
  events.on("closed", (spaceId) => void schemas.delete(spaceId));

  return {
    paths,
    account,
    readers,
    repairs,
    historyMemory: createHistoryMemory(),
    schemaOf(spaceId) {
      const schema = schemas.get(spaceId);
      if (!schema) throw new Error(`the space ${spaceId} is not open`);
      return schema;
    },
    async openSpace(spaceId, { as, builtIns, keepsHistory, genesis }) {
      const space = await openingPatiently(() =>
        openSpaceInSlices(paths.space(spaceId), spaceId, {
          account: as,
          clock,
          genesis,
          keepsHistory,
          checker,
          walCopying,
          onFailure: (err) => log.error("a commit failed", { err, spaceId }),
          onRepair: (code, facts) => repairs.note(spaceId, code, facts),
          registry: (store) => createDefinitionRegistry(store.schema, builtIns, endsWithItsRoot),
        }),
      );
      events.follow(space);
      const { engine, registry, store } = space;
      schemas.set(
        spaceId,
        createSchema({ engine, events: space.events, typeRows: store.schema.typeRows, registry, builtIns }),
      );
      return space;
    },
  };
}
