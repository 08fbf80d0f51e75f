import { ONE_TO_ONE_TYPE } from "../../acl/record/space-header.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Account } from "../../crypto/account.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { SpaceInfo } from "../../protocol/space.ts";
import { type Space, writeGenesis } from "../../space/space.ts";
import type { SpaceEvents } from "../../space/space-events.ts";
import type { SpaceHolds } from "../../space/space-holds.ts";
import type { AccountStore } from "../../store/account-store.ts";
import { SPACE_ROOTS_DATASET } from "../own-space/private-datasets.ts";
import { spaceStatusOf } from "../own-space/space-status.ts";
import { SPACES_RULES } from "../own-space/tech-datasets.ts";
import type { TechSpace } from "../own-space/tech-space.ts";
import type { SpacePaths } from "../rows/space-files.ts";
import type { SpaceGeneses } from "../rows/space-geneses.ts";
import { spaceInfoOf } from "../rows/space-info.ts";
import { mirrorMetadata } from "../rows/space-metadata-mirror.ts";
import type { SpaceRoots } from "../rows/space-roots.ts";
import { alignLocalFields } from "../rows/space-row.ts";
import { createSpaceRows } from "../rows/space-rows.ts";
import { spaceDeleted } from "./space-ending.ts";
import type { Farewells } from "./space-farewells.ts";
import { createSpaceHandles } from "./space-handles.ts";

interface SpaceRegistryDeps {
  account: Account;
  clock: Clock;
  log: Log;
  paths: SpacePaths;
  store: AccountStore;
  tech: TechSpace;
  roots: SpaceRoots;
  geneses: SpaceGeneses;
  farewells: Farewells;
  events: SpaceEvents;
  holds: SpaceHolds;
  /** Opens the database of a space that is here. */
  openSpace(spaceId: SpaceId): Promise<Space>;
}

/** The account's spaces as they are on this device: their rows and, opened when asked for, the spaces themselves. */
export type SpaceRegistry = ReturnType<typeof createSpaceRegistry>;

export function createSpaceRegistry(deps: SpaceRegistryDeps) {
  const { tech, store, paths, log, events, geneses, farewells, roots } = deps;
  const rows = createSpaceRows({ tech, store });
  /** Removals under way: a space that ends here is gone before it begins anew. */
  const removals = new Map<SpaceId, Promise<void>>();
  /** Spaces of whose ACL log only the root is here, for a moment. */
  const beginning = new Set<SpaceId>();

  const handles = createSpaceHandles({
    store,
    clock: deps.clock,
    log,
    open: async (spaceId) => {
      await removals.get(spaceId);
      writeKnownGenesis(spaceId);
      const space = await deps.openSpace(spaceId);
      mirrorMetadata(space, tech, (err) => log.error("mirroring a space's metadata failed", { err, spaceId }));
      await alignRow(space);
      events.emit("opened", space);
      purgeDeleted(space);
      return {
        space,
        busy: () => deps.holds.isHeld(spaceId),
        async close() {
          await events.closing(space);
          await space.close();
          events.emit("closed", spaceId);
        },
      };
    },
  });

  /** Makes a space that another device of the account has. Fails with space.not_accepted while its root has not come. */
  function writeKnownGenesis(spaceId: SpaceId): void {
    if (paths.hasSpace(spaceId)) return;
    const genesis = geneses.of(spaceId);
    if (!genesis) throw refusedAs("space.not_accepted", { spaceId, status: "active" }, refusal("space.not_here"));
    writeGenesis(paths.space(spaceId), genesis);
    paths.syncDirectory();
  }

  /** Brings the row in line with the ACL log, and keeps what the account's other devices need to hold the space too. */
  async function alignRow(space: Space): Promise<void> {
    const row = tech.spaceRow(space.id);
    if (!row) return;
    await alignLocalFields(tech, space);
    if (row["derived"] !== true && row["spaceType"] !== ONE_TO_ONE_TYPE) await roots.keep(space);
  }

  function purgeDeleted(space: Space): void {
    space.engine.purgeDeleted().catch((err: unknown) => {
      log.error("the content of deleted objects could not be dropped", { err, spaceId: space.id });
    });
  }

  /**
   * Whether a space is kept in sync: it is active and is here or can be made, or it waits to become active and its ACL log
   * is here.
   */
  const isHeld = (spaceId: string): boolean => {
    const row = digestOfCid(spaceId) ? tech.spaceRow(spaceId as SpaceId) : undefined;
    const status = row && spaceStatusOf(row);
    return (
      farewells.has(spaceId) ||
      (status !== undefined && status !== "deleted" && paths.hasSpace(spaceId as SpaceId)) ||
      (status === "active" && geneses.of(spaceId as SpaceId) !== undefined)
    );
  };

  /** Spaces known to be active. Every request asks for this, and it hardly ever changes. */
  const active = new Set<string>();
  tech.space.events.on("committed", ({ touched }) => {
    if (touched.some(({ dataset }) => dataset === SPACES_RULES.name)) active.clear();
    for (const { dataset, recordId } of touched) {
      if (dataset !== SPACES_RULES.name && dataset !== SPACE_ROOTS_DATASET) continue;
      if (isHeld(recordId)) events.emit("known", recordId as SpaceId);
    }
  });

  /** Fails with the space resolution errors (API-11). */
  const requireActive = (spaceId: string): SpaceId => {
    if (active.has(spaceId)) return spaceId as SpaceId;
    const status = spaceStatusOf(rows.of(spaceId));
    if (status === "deleted") throw spaceDeleted(spaceId, rows.of(spaceId));
    // What a guest has read stays readable; its role refuses writes.
    if (status !== "active" && status !== "guest_revoked") throw svcError("space.not_accepted", { spaceId, status });
    active.add(spaceId);
    return spaceId as SpaceId;
  };

  const openHeld = async (spaceId: SpaceId): Promise<Space> => (await handles.get(spaceId)).space;

  /** Closes a space and removes its data from this device. Idempotent. */
  const remove = (spaceId: SpaceId): Promise<void> => {
    const known = removals.get(spaceId);
    if (known) return known;
    const removal = (async () => {
      events.emit("ending", spaceId);
      await handles.drop(spaceId);
      paths.removeSpace(spaceId);
      events.emit("ended", spaceId);
    })().finally(() => removals.delete(spaceId));
    removals.set(spaceId, removal);
    return removal;
  };

  return {
    requireActive,
    isHeld,
    /** Ids of such spaces, newest first. */
    heldIds: (): SpaceId[] => newestFirst(rows.list("all").filter(({ id }) => isHeld(id))),
    /** Ids of the active spaces, newest first. */
    activeIds: (): SpaceId[] => newestFirst(rows.list(undefined)),
    isActive: (spaceId: SpaceId): boolean => {
      const row = rows.known(spaceId);
      return row !== undefined && spaceStatusOf(row) === "active";
    },
    /** Whether it is open, and not on its way out. */
    isOpen: (spaceId: SpaceId): boolean => handles.isOpen(spaceId) && !removals.has(spaceId),
    /** Whether the space's ACL log is here, for more than a moment. */
    isHere: (spaceId: SpaceId): boolean => paths.hasSpace(spaceId) && !beginning.has(spaceId) && !removals.has(spaceId),
    hasFile: (spaceId: SpaceId): boolean => paths.hasSpace(spaceId),

    /** A space that is kept in step, opened, whatever its status. */
    openHeld,
    /** An active space, opened if need be. Fails with the space resolution errors (API-11). */
    open: async (spaceId: string): Promise<Space> => openHeld(requireActive(spaceId)),
    /** Runs something over a space that is not closed before it has ended, however long that takes. */
    use: <R>(spaceId: SpaceId, run: (space: Space) => Promise<R>): Promise<R> =>
      handles.use(spaceId, ({ space }) => run(space)),

    /** Begins a space here from its ACL log, as somebody gave it; from then on it is held and kept in sync. */
    async begin(spaceId: SpaceId, genesis: Parameters<typeof writeGenesis>[1], acl: readonly Uint8Array[]) {
      await removals.get(spaceId);
      beginning.add(spaceId);
      try {
        writeGenesis(paths.space(spaceId), genesis);
        paths.syncDirectory();
        const space = await openHeld(spaceId);
        // Each record is taken in by itself: anybody who knows the place can have put something between them.
        await space.aclService.takeEach(acl);
        return space;
      } finally {
        beginning.delete(spaceId);
      }
    },
    remove,
    /** Resolves when a copy that is being removed is gone. */
    whenRemoved: (spaceId: SpaceId): Promise<void> => removals.get(spaceId) ?? Promise.resolve(),

    alignRow,
    info: (spaceId: string): SpaceInfo => spaceInfoOf(rows.of(spaceId)),
    rowOf: rows.of,
    knownRow: rows.known,
    list: rows.list,
    patchSettings: rows.patchSettings,
    close: () => handles.closeAll(),
  };
}

function newestFirst(infos: SpaceInfo[]): SpaceId[] {
  return infos.sort((a, b) => (a.createdAt.$date < b.createdAt.$date ? 1 : -1)).map(({ id }) => id as SpaceId);
}
