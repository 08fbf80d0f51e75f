import type { SpaceId } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Timers } from "../base/timers.ts";
import type { ObjectSyncStatus, SpaceSyncStatus } from "../protocol/sync.ts";
import type { Replica } from "../space/port/replica.ts";
import type { ProgressBook } from "./progress.ts";
import type { ReachedReplicas } from "./reached-replicas.ts";
import type { Resting } from "./resting.ts";
import { objectStatus, type StoredStatus, spaceStatus, storedStatusOf } from "./status.ts";

const NOTIFY_MS = 50;

type Listener = (spaceId: SpaceId, active: ReadonlySet<SpaceId>) => void | Promise<void>;

interface StatusWatchDeps {
  readonly book: ProgressBook;
  readonly reached: ReachedReplicas;
  readonly resting: Resting;
  readonly log: Log;
  readonly timers: Timers;
  /** Active spaces. */
  active(): SpaceId[];
  /** An active space, opened if need be. Fails with the space resolution errors. */
  open(spaceId: string): Promise<Replica>;
}

export type StatusWatch = ReturnType<typeof createStatusWatch>;

/** The states of spaces and objects, for callers who ask once and for those who watch (SYNC-15). */
export function createStatusWatch(deps: StatusWatchDeps) {
  const { book, reached, log } = deps;
  const listeners = new Set<Listener>();
  const stale = new Set<SpaceId>();
  /** Statuses of spaces to which nothing has happened since: these spaces need not be opened to know their status. */
  const storedBySpace = new Map<SpaceId, StoredStatus>();
  let cancel: (() => void) | undefined;
  let closed = false;

  const statusFrom = (spaceId: SpaceId, stored: StoredStatus): SpaceSyncStatus =>
    spaceStatus(spaceId, stored, book.of(spaceId), reached.of(spaceId));
  const of = (replica: Replica): SpaceSyncStatus => {
    const stored = storedStatusOf(replica);
    if (!stored.stale) storedBySpace.set(replica.id, stored);
    return statusFrom(replica.id, stored);
  };
  const ofActive = async (spaceId: SpaceId): Promise<SpaceSyncStatus> => {
    const stored = storedBySpace.get(spaceId);
    return stored ? statusFrom(spaceId, stored) : of(await deps.open(spaceId));
  };
  const ofObject = (replica: Replica, objectId: string): ObjectSyncStatus =>
    objectStatus(replica, objectId, book.of(replica.id), reached.of(replica.id));

  /** The states of spaces may have changed: watchers are notified soon, once for everything that happened meanwhile. */
  const notify = (spaceId: SpaceId): void => {
    stale.add(spaceId);
    if (listeners.size === 0 || closed) return;
    cancel ??= deps.timers.after(NOTIFY_MS, () => {
      cancel = undefined;
      const active = new Set(deps.active());
      for (const each of stale) for (const listener of [...listeners]) void listener(each, active);
      stale.clear();
    });
  };

  /** What was read from a space's database no longer holds. */
  const forget = (spaceId: SpaceId): void => {
    deps.resting.end(spaceId);
    storedBySpace.delete(spaceId);
  };

  return {
    of,
    ofObject,
    notify,
    /** Something happened to a space. */
    changed(spaceId: SpaceId): void {
      forget(spaceId);
      notify(spaceId);
    },
    forget,

    /** Gives the statuses of all active spaces, and each again when it changed. */
    async watch(give: (status: SpaceSyncStatus) => void): Promise<() => void> {
      const last = new Map<SpaceId, string>();
      const giveIfNew = async (spaceId: SpaceId): Promise<void> => {
        const status = await ofActive(spaceId);
        const text = JSON.stringify(status);
        if (last.get(spaceId) === text || !listeners.has(listener)) return;
        last.set(spaceId, text);
        give(status);
      };
      /** A space may end before its status is read. */
      const listener: Listener = async (spaceId, active) => {
        if (!active.has(spaceId)) return;
        await giveIfNew(spaceId).catch((error: unknown) => log.debug("sync: no status", { err: error, spaceId }));
      };
      listeners.add(listener);
      const active = new Set(deps.active());
      for (const spaceId of active) await listener(spaceId, active);
      return () => void listeners.delete(listener);
    },

    /** Gives an object's status, and again when it changed. */
    async watchObject(
      spaceId: string,
      objectId: string,
      give: (status: ObjectSyncStatus) => void,
    ): Promise<() => void> {
      const { id } = await deps.open(spaceId);
      let last = "";
      const giveIfNew = async (): Promise<void> => {
        const status = ofObject(await deps.open(id), objectId);
        const text = JSON.stringify(status);
        if (text === last || !listeners.has(listener)) return;
        last = text;
        give(status);
      };
      const listener: Listener = (changed) => {
        if (changed !== id) return;
        giveIfNew().catch((error: unknown) => log.debug("sync: no status", { err: error, spaceId }));
      };
      listeners.add(listener);
      try {
        await giveIfNew();
      } catch (error) {
        listeners.delete(listener);
        throw error;
      }
      return () => void listeners.delete(listener);
    },

    close(): void {
      closed = true;
      cancel?.();
    },
  };
}
