import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { PROJECTION_VERSION } from "../../change/space-engine.ts";
import type { AccountStore } from "../../store/account-store.ts";

/** An open space with everything built upon it. */
export interface SpaceHandle {
  /** Whether something live holds it: a stream, a running job. Such a space is not closed to save handles. */
  busy(): boolean;
  close(): Promise<void>;
}

interface Slot<T> {
  handle: Promise<T>;
  /** Absent while it is being opened, or waits for its turn. */
  ready?: T;
  usedMs: number;
  /** How many hold it by `use`. */
  inUse: number;
}

const MAX_OPEN = 48;
/** A space that was asked for this recently may still have a request in flight. */
const QUIET_MS = 1_000;
/**
 * When so many are open, a further one waits for its turn. Each takes three file descriptors, and readers have some of
 * their own; so four hundred spaces written to at once stay far below the usual limit of 1,024.
 */
const FULL = 64;
const TURN_MS = 10;

/** Opens spaces when they are asked for and closes those unused for longest, so that file handles stay bounded (STORE-9). */
export function createSpaceHandles<T extends SpaceHandle>(deps: {
  open(spaceId: SpaceId): Promise<T>;
  store: AccountStore;
  clock: Clock;
  log: Log;
}) {
  const slots = new Map<SpaceId, Slot<T>>();
  /** Spaces that are closing: they are opened again only after that, because a file has one writer. */
  const closing = new Map<SpaceId, Promise<void>>();

  const closeOne = (spaceId: SpaceId, slot: Slot<T>): Promise<void> => {
    slots.delete(spaceId);
    const closed = (async () => {
      const handle = await slot.handle;
      await handle.close();
      opened--;
      deps.store.markClean(spaceId, true, PROJECTION_VERSION);
    })().finally(() => closing.delete(spaceId));
    closing.set(spaceId, closed);
    return closed;
  };

  const trim = async (): Promise<void> => {
    const now = deps.clock.nowMs();
    for (const [spaceId, slot] of [...slots]) {
      if (slots.size <= MAX_OPEN) return;
      if (!slot.ready || slot.inUse > 0 || now - slot.usedMs < QUIET_MS || slot.ready.busy()) continue;
      if (slots.get(spaceId) === slot) await closeOne(spaceId, slot);
    }
  };

  /** Counts spaces that hold a file open, not those that wait here. */
  let opened = 0;
  let making: Promise<void> | undefined;
  /** Until another may be opened; all who wait share the looks for one that may be closed. */
  const makeRoom = (): Promise<void> => {
    making ??= (async () => {
      for (await trim(); opened >= FULL; await trim()) await Bun.sleep(TURN_MS);
    })().finally(() => {
      making = undefined;
    });
    return making;
  };

  const open = async (spaceId: SpaceId): Promise<T> => {
    await closing.get(spaceId);
    while (opened >= FULL) await makeRoom();
    opened++;
    try {
      // Opening a space keeps the loop busy for a while: a caller that goes through hundreds of them lets requests have
      // their turns.
      await new Promise((turn) => setImmediate(turn));
      deps.store.markClean(spaceId, false, PROJECTION_VERSION);
      return await deps.open(spaceId);
    } catch (error) {
      opened--;
      throw error;
    }
  };

  return {
    get,
    /** Runs something over a space that is not closed before it has ended, however long that takes. */
    async use<R>(spaceId: SpaceId, run: (handle: T) => Promise<R>): Promise<R> {
      const handle = await get(spaceId);
      const slot = slots.get(spaceId);
      if (slot) slot.inUse++;
      try {
        return await run(handle);
      } finally {
        if (slot) {
          slot.inUse--;
          slot.usedMs = deps.clock.nowMs();
        }
      }
    },
    isOpen: (spaceId: SpaceId): boolean => slots.has(spaceId),
    async drop(spaceId: SpaceId): Promise<void> {
      const slot = slots.get(spaceId);
      await (slot ? closeOne(spaceId, slot) : closing.get(spaceId));
      deps.store.forgetSpace(spaceId);
    },
    async closeAll(): Promise<void> {
      for (const [spaceId, slot] of [...slots]) await closeOne(spaceId, slot);
      await Promise.all(closing.values());
    },
  };

  function get(spaceId: SpaceId): Promise<T> {
    const known = slots.get(spaceId);
    if (known) {
      // Re-inserted, so that iteration meets the longest unused first.
      slots.delete(spaceId);
      slots.set(spaceId, known);
      known.usedMs = deps.clock.nowMs();
      return known.handle;
    }
    const slot: Slot<T> = { handle: open(spaceId), usedMs: deps.clock.nowMs(), inUse: 0 };
    slots.set(spaceId, slot);
    slot.handle
      .then(
        (ready) => {
          slot.ready = ready;
          // A caller that waited for it goes on only now.
          slot.usedMs = deps.clock.nowMs();
          return trim();
        },
        () => slots.delete(spaceId),
      )
      .catch((error: unknown) => deps.log.error("closing a space failed", { err: error }));
    return slot.handle;
  }
}
