import type { AclBuild } from "../acl/acl-service.ts";
import { deleteSpace, leaveSpace } from "../acl/actions.ts";
import { ONE_TO_ONE_TYPE } from "../acl/space-header.ts";
import { pendingRequestOf } from "../acl/state.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { PROJECTION_VERSION } from "../change/space-engine.ts";
import type { Account } from "../crypto/account.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import { digestOfCid } from "../crypto/cid.ts";
import { svcError } from "../protocol/errors.ts";
import type { JsonObject } from "../protocol/json.ts";
import type { DerivedSpaceItem, SpaceInfo } from "../protocol/space.ts";
import { genesisOfRoot } from "../space/genesis.ts";
import { PAIR_PROFILES_DATASET } from "../space/pair-profiles.ts";
import type { Space, SpaceGenesis } from "../space/space.ts";
import { createdSpaceGenesis, derivedSpaceGenesis, writeGenesis } from "../space/space.ts";
import { type SpaceMetadata, writeSpaceMetadata } from "../space/space-index.ts";
import type { AccountStore } from "../store/account-store.ts";
import { SPACE_ROOTS_DATASET } from "./private-datasets.ts";
import { createSpaceCreation, type SpaceCreationDeps } from "./space-creation.ts";
import { createFarewells } from "./space-farewells.ts";
import type { spacePaths } from "./space-files.ts";
import { createSpaceHandles, type SpaceHandle } from "./space-handles.ts";
import { spaceInfoOf, spaceStatusOf } from "./space-info.ts";
import { mirrorMetadata } from "./space-metadata-mirror.ts";
import { createSpaceRoots } from "./space-roots.ts";
import { endingOf, settleLocalFields } from "./space-row.ts";
import { createSpaceRows } from "./space-rows.ts";
import { createSpaceGeneses, DERIVED_SPACES } from "./space-seeds.ts";
import { SPACES_RULES } from "./tech-datasets.ts";
import type { TechSpace } from "./tech-space.ts";

interface SpaceServiceDeps<T extends SpaceHandle & { space: Space }> {
  account: Account;
  clock: Clock;
  log: Log;
  paths: ReturnType<typeof spacePaths>;
  store: AccountStore;
  tech: TechSpace;
  open(spaceId: SpaceId): Promise<T>;
  /** Moves a space's ACL the way the moment allows. */
  changeAcl(space: Space, build: AclBuild): Promise<unknown>;
  /** Whether this account reads the space by a guest key. */
  isGuest(spaceId: SpaceId): boolean;
  crashPoint: SpaceCreationDeps["crashPoint"];
}

/** The account's spaces: their rows in the tech space and, when asked for, the spaces themselves. */
export type SpaceService<T extends SpaceHandle & { space: Space }> = ReturnType<typeof createSpaceService<T>>;

export function createSpaceService<T extends SpaceHandle & { space: Space }>(deps: SpaceServiceDeps<T>) {
  const { account, tech, store, paths } = deps;
  const roots = createSpaceRoots(tech);
  const rows = createSpaceRows({ tech, store });
  const seeds = createSpaceGeneses({ account, tech, roots });
  const handles = createSpaceHandles<T>({
    store,
    clock: deps.clock,
    log: deps.log,
    open: async (spaceId) => {
      await endings.get(spaceId); // what ends here is gone before it begins anew
      writeKnownGenesis(spaceId);
      const opened = await deps.open(spaceId);
      const { space } = opened;
      mirrorMetadata(space, tech, (err) => deps.log.error("mirroring a space's metadata failed", { err, spaceId }));
      await settleRow(space);
      space.aclService.onMoved(() => follow(space));
      follow(space);
      space.engine.onCommit((batch) => {
        if (!batch.touched.some(({ dataset }) => dataset === PAIR_PROFILES_DATASET)) return;
        for (const follower of followers) follower(space);
      });
      space.engine.purgeDeleted().catch((error: unknown) => purgeFailed(spaceId, error));
      return opened;
    },
  });
  const creation = createSpaceCreation({
    account,
    store,
    paths,
    tech,
    roots,
    use: (spaceId, run) => handles.use(spaceId, ({ space }) => run(space)),
    crashPoint: deps.crashPoint,
  });
  const begin = async (seed: SpaceGenesis, metadata: SpaceMetadata, derived: boolean): Promise<SpaceInfo> => {
    await creation.begin(seed, metadata, derived);
    return spaceInfoOf(rows.of(seed.spaceId));
  };
  const purgeFailed = (spaceId: SpaceId, err: unknown) =>
    deps.log.error("the content of deleted objects could not be dropped", { err, spaceId });

  /** Makes a space that another device of the account has. Fails with space.not_accepted while its root has not come. */
  function writeKnownGenesis(spaceId: SpaceId): void {
    if (paths.hasSpace(spaceId)) return;
    const seed = seeds.of(spaceId);
    if (!seed)
      throw svcError("space.not_accepted", { spaceId, status: "active" }, "The space has not come here yet; retry");
    writeGenesis(paths.space(spaceId), seed);
    paths.syncDirectory();
  }

  /** What the row says on this device alone, and what the other devices need to hold the space too. */
  async function settleRow(space: Space): Promise<void> {
    const row = tech.spaceRow(space.id);
    if (!row) return;
    await settleLocalFields(tech, space);
    if (row["derived"] !== true && row["spaceType"] !== ONE_TO_ONE_TYPE) await roots.keep(space);
  }

  /** Spaces that this device is ending. */
  const acting = new Set<SpaceId>();
  /** Spaces of whose chain the root alone is here for a moment. */
  const planting = new Set<SpaceId>();
  const followers = new Set<(space: Space) => void>();
  /** Brings row and followers in step with a space's ACL log, and ends the space when the chain does. */
  function follow(space: Space): void {
    (async () => {
      await settleRow(space);
      if (farewells.has(space.id)) await farewells.settle(space, () => endHere(space.id));
      else if (!acting.has(space.id)) await endByChain(space);
    })().catch((error: unknown) =>
      deps.log.error("following a space's rights failed", { err: error, spaceId: space.id }),
    );
    for (const follower of followers) follower(space);
  }

  /** Removed, left on another device, not shared any more, or deleted by its owner. */
  async function endByChain(space: Space): Promise<void> {
    const row = tech.spaceRow(space.id);
    const ending = row && spaceStatusOf(row) === "active" ? endingOf(space) : undefined;
    if (ending === "deleted") await tech.set(SPACES_RULES, space.id, { status: "deleted", final: true });
    else if (ending === "left")
      await tech.set(SPACES_RULES, space.id, { status: deps.isGuest(space.id) ? "guest_revoked" : "deleted" });
  }

  /** Spaces known to be active: asked for by every request, changed hardly ever. */
  const active = new Set<string>();
  tech.space.engine.onCommit((batch) => {
    if (batch.touched.some((touched) => touched.dataset === SPACES_RULES.name)) active.clear();
  });

  const farewells = createFarewells({
    store,
    clock: deps.clock,
    changeAcl: deps.changeAcl,
  });
  const endings = new Map<SpaceId, Promise<void>>();
  const overListeners = new Set<(spaceId: SpaceId) => void>();
  const leaveListeners = new Set<(spaceId: SpaceId) => void>();
  const endListeners = new Set<(spaceId: SpaceId) => void>();
  /** Closes a space that ended and removes its data from this device. Idempotent. */
  const endHere = (spaceId: SpaceId): Promise<void> => {
    const known = endings.get(spaceId);
    if (known) return known;
    const ending = (async () => {
      for (const listener of leaveListeners) listener(spaceId);
      await handles.drop(spaceId);
      paths.removeSpace(spaceId);
      for (const listener of endListeners) listener(spaceId);
    })().finally(() => endings.delete(spaceId));
    endings.set(spaceId, ending);
    return ending;
  };
  /** A device that does not hold the space cannot take back the request to join it: whichever does, does. */
  const endAsElsewhere = async (spaceId: SpaceId): Promise<void> => {
    const known = handles.isOpen(spaceId) && !endings.has(spaceId) ? (await handles.get(spaceId)).space : undefined;
    if (!known || !pendingRequestOf(known.acl.state, known.accountKey)) return endHere(spaceId);
    const row = tech.spaceRow(spaceId);
    if (!row || spaceStatusOf(row) !== "deleted") return;
    farewells.begin(spaceId);
    follow(known);
  };
  const isOverIn = (row: string): boolean => spaceStatusOf(JSON.parse(row) as JsonObject) === "deleted";
  // A space that another device ended ends here too.
  tech.space.engine.onCommit((batch) => {
    for (const { dataset, recordId, before, doc } of batch.touched) {
      if (dataset !== SPACES_RULES.name || !doc) continue;
      const spaceId = recordId as SpaceId;
      const isOver = isOverIn(doc);
      if (!isOver && before && isOverIn(before)) farewells.drop(spaceId); // joined again, by whichever device
      if (isOver) for (const listener of [...overListeners]) listener(spaceId);
      if (!isOver || farewells.has(spaceId) || !paths.hasSpace(spaceId)) continue;
      endAsElsewhere(spaceId).catch((error: unknown) =>
        deps.log.error("ending a space failed", { err: error, spaceId }),
      );
    }
  });

  const requireActive = (spaceId: string): SpaceId => {
    if (active.has(spaceId)) return spaceId as SpaceId;
    const status = spaceStatusOf(rows.of(spaceId));
    if (status === "deleted") throw svcError("space.deleted", { spaceId });
    // What a guest has read stays readable; writing is refused by its role.
    if (status !== "active" && status !== "guest_revoked") throw svcError("space.not_accepted", { spaceId, status });
    active.add(spaceId);
    return spaceId as SpaceId;
  };

  return {
    requireActive,
    /** Whether a space is kept in step: it is active and here, or can be made; or waits to be and its ACL log is here. */
    isHeld(spaceId: string): boolean {
      const row = digestOfCid(spaceId) ? tech.spaceRow(spaceId as SpaceId) : undefined;
      const status = row && spaceStatusOf(row);
      return (
        farewells.has(spaceId) ||
        (status !== undefined && status !== "deleted" && paths.hasSpace(spaceId as SpaceId)) ||
        (status === "active" && seeds.of(spaceId as SpaceId) !== undefined)
      );
    },
    /** Called with a space that is held when its row or its root was written, here or elsewhere. */
    onKnown(listener: (spaceId: SpaceId) => void): void {
      tech.space.engine.onCommit((batch) => {
        for (const { dataset, recordId } of batch.touched) {
          if (dataset !== SPACES_RULES.name && dataset !== SPACE_ROOTS_DATASET) continue;
          if (this.isHeld(recordId)) listener(recordId as SpaceId);
        }
      });
    },
    /** Called with every space that is opened, and whenever its ACL log, or what a pair say of themselves, has moved. */
    onRights: (follower: (space: Space) => void): void => void followers.add(follower),
    /** Such a space, opened, whatever its status: for sync. */
    openHeld: (spaceId: SpaceId): Promise<T> => handles.get(spaceId),
    /** Ids of such spaces, newest first. */
    heldIds(): SpaceId[] {
      return newestFirst(rows.list("all").filter(({ id }) => this.isHeld(id)));
    },
    roots,
    /** Resolves when a space's row says what its ACL log says. */
    settle: (space: Space): Promise<void> => settleRow(space),
    /**
     * Called when a space is over for this account: its row says so, though the space may be kept until those concerned
     * have heard of it. Answers how to stop.
     */
    onOver(listener: (spaceId: SpaceId) => void): () => void {
      overListeners.add(listener);
      return () => void overListeners.delete(listener);
    },
    /** Called when a space is about to end on this device, while it is still open. */
    onEnding: (listener: (spaceId: SpaceId) => void): void => void leaveListeners.add(listener),
    /** Called when a space has ended on this device. */
    onEnded: (listener: (spaceId: SpaceId) => void): void => void endListeners.add(listener),
    /** An active space, opened if need be. Fails with the space resolution errors (gaps § 1). */
    open: async (spaceId: string): Promise<T> => handles.get(requireActive(spaceId)),

    /** Runs something over an active space that is not closed before it has ended, however long that takes. */
    use: async <R>(spaceId: SpaceId, run: (handle: T) => Promise<R>): Promise<R> =>
      handles.use(requireActive(spaceId), run),

    create: (metadata: SpaceMetadata): Promise<SpaceInfo> =>
      begin(createdSpaceGenesis(account, deps.clock), metadata, false),

    info: (spaceId: string): SpaceInfo => spaceInfoOf(rows.of(spaceId)),

    /** Ids of the active spaces, newest first. */
    activeIds(): SpaceId[] {
      return newestFirst(rows.list(undefined));
    },

    /** Changes what the members share about a space. The row here follows at once, others when they sync. */
    async patch(spaceId: string, metadata: SpaceMetadata): Promise<void> {
      const { space } = await handles.get(requireActive(spaceId));
      requireWriter(space);
      await space.engine.write((tx) => writeSpaceMetadata(tx, metadata));
    },

    /** Ends a space: for everybody if it is one's own, else for this account. Durable before anything is dropped. */
    async delete(spaceId: string): Promise<void> {
      if (seeds.derived(spaceId)) throw svcError("space.derived_undeletable", { spaceId });
      const row = rows.of(spaceId);
      const id = spaceId as SpaceId;
      if (!tech.spaceRow(id)) return store.dropPendingSpace(spaceId);
      if (spaceStatusOf(row) === "deleted") throw svcError("space.deleted", { spaceId });
      const held = paths.hasSpace(id) ? (await handles.get(id)).space : undefined;
      if (held && spaceStatusOf(row) === "active" && held.header.kind === "created") {
        if (held.role() === "owner") return endOwn(held);
        if (held.role() !== "none" && held.role() !== "guest") return this.leave(spaceId);
      }
      const own = held ? held.role() === "owner" : row["author"] === account.id;
      await tech.set(SPACES_RULES, id, { status: "deleted", ...(own ? { final: true } : {}) });
      await endHere(id);
    },

    /** Leaves a space that one does not own. Durable when it resolves; others are told as soon as they can be. */
    async leave(spaceId: string): Promise<void> {
      const { space } = await handles.get(requireActive(spaceId));
      await endByActing(space, leaveSpace, { status: "deleted" });
    },

    /**
     * Takes in a space's ACL log that somebody found, from its root on: from then on the space is held, and kept in
     * step. Undefined when it is not that space's chain.
     */
    async plant(spaceId: SpaceId, chain: readonly Uint8Array[]): Promise<Space | undefined> {
      const seed = chain[0] && genesisOfRoot(chain[0]);
      if (seed?.spaceId !== spaceId) return undefined;
      await endings.get(spaceId);
      planting.add(spaceId);
      try {
        writeGenesis(paths.space(spaceId), seed);
        paths.syncDirectory();
        const { space } = await handles.get(spaceId);
        await space.aclService.take(chain);
        return space;
      } finally {
        planting.delete(spaceId);
      }
    },
    isPlanted: (spaceId: SpaceId): boolean =>
      paths.hasSpace(spaceId) && !planting.has(spaceId) && !endings.has(spaceId),

    /** A space that this account is a member of becomes active. */
    async activate(spaceId: SpaceId): Promise<void> {
      farewells.drop(spaceId);
      const { space } = await handles.get(spaceId);
      const author = space.header.kind === "onetoone" ? {} : { author: accountIdOf(space.header.author) };
      await tech.set(SPACES_RULES, spaceId, { status: "active", ...author });
      await settleRow(space);
    },

    /** Waiting for a space came to nothing, or was given up: it may be joined again. `told` once others need not hear of it. */
    async giveUp(spaceId: SpaceId, told: boolean): Promise<void> {
      if (told || !paths.hasSpace(spaceId)) {
        await tech.set(SPACES_RULES, spaceId, { status: "deleted" });
        await endHere(spaceId);
      } else await sayFarewell((await handles.get(spaceId)).space, { status: "deleted" });
    },
    /** Resolves when a copy that is being removed is gone. */
    whenEnded: (spaceId: SpaceId): Promise<void> => endings.get(spaceId) ?? Promise.resolve(),
    farewells,
    rowOf: rows.of,
    knownRow: rows.known,
    list: rows.list,
    patchSettings: rows.patchSettings,

    derived(): DerivedSpaceItem[] {
      return DERIVED_SPACES.map((name) => {
        const { spaceId } = derivedSpaceGenesis(account, name);
        const row = tech.spaceRow(spaceId);
        const status = row && spaceStatusOf(row);
        return { name, spaceId, created: status === "active", ...(status ? { status } : {}) };
      });
    },

    /** The derived space of a name, made on first use. */
    async ensureDerived(name: string): Promise<SpaceInfo> {
      if (!DERIVED_SPACES.some((known) => known === name)) throw svcError("space.derived_unknown", { name });
      const seed = derivedSpaceGenesis(account, name);
      const row = tech.spaceRow(seed.spaceId);
      if (row && spaceStatusOf(row) === "deleted") throw svcError("space.deleted", { spaceId: seed.spaceId });
      if (row?.["spaceIndexObjectId"]) return spaceInfoOf(row);
      return begin(seed, { name: name[0]!.toUpperCase() + name.slice(1) }, true);
    },

    /** Finishes what a crash interrupted, then visits the spaces that were not closed in order. Run once, at boot. */
    async bootPass(stopped: () => boolean): Promise<void> {
      await creation.resume(stopped);
      for (const info of rows.list("all")) {
        if (stopped()) return;
        const spaceId = info.id as SpaceId;
        // A crash came between the farewell and the row: nobody was told that the space is over.
        if (info.status !== "deleted") farewells.drop(spaceId);
        if (farewells.has(spaceId)) await handles.get(spaceId);
        else if (info.status === "deleted") await endHere(spaceId);
        else if (info.status === "active" && !store.isClean(spaceId, PROJECTION_VERSION)) {
          const { space } = await handles.get(spaceId);
          await space.engine.rebuildProjection("stale");
          await space.engine.tearDownDeleted();
        }
      }
    },

    /** Drops the content of objects that were deleted long ago, a space after the other. */
    async purgePass(stopped: () => boolean): Promise<void> {
      for (const { id, status } of rows.list("all")) {
        if (stopped()) return;
        const spaceId = id as SpaceId;
        if (status !== "active" || !this.isHeld(id)) continue;
        await handles
          .use(spaceId, ({ space }) => space.engine.purgeDeleted())
          .catch((error: unknown) => purgeFailed(spaceId, error));
      }
    },

    close: () => handles.closeAll(),
  };

  /** Ends a space that one owns, for everybody. */
  async function endOwn(space: Space): Promise<void> {
    const { members, invites } = space.acl.state;
    const shared = members.size > 1 || invites.size > 0;
    const fields = { status: "deleted", final: true };
    if (shared) return endByActing(space, deleteSpace, fields);
    await tech.set(SPACES_RULES, space.id, fields);
    await endHere(space.id);
  }

  /** Ends a space by what this account puts into its chain: the chain's moving alone must not close it under our hands. */
  async function endByActing(space: Space, build: AclBuild, fields: JsonObject): Promise<void> {
    acting.add(space.id);
    try {
      await deps.changeAcl(space, build);
      await sayFarewell(space, fields);
    } finally {
      acting.delete(space.id);
    }
  }

  /** Ends a space here, and keeps it from being dropped while others have not heard of it. */
  async function sayFarewell(space: Space, fields: JsonObject): Promise<void> {
    farewells.begin(space.id);
    await tech.set(SPACES_RULES, space.id, fields);
    await farewells.settle(space, () => endHere(space.id));
  }

  function requireWriter(space: Space): void {
    const role = space.role();
    if (role !== "owner" && role !== "admin" && role !== "writer")
      throw svcError("space.read_only", { spaceId: space.id, role });
  }
}

function newestFirst(infos: SpaceInfo[]): SpaceId[] {
  return infos.sort((a, b) => (a.createdAt.$date < b.createdAt.$date ? 1 : -1)).map(({ id }) => id as SpaceId);
}
