import type { WriteScope } from "../../store/commit/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { WaitKind } from "../../store/tables/parked-table.ts";

/** What changes of the graph may wait for, besides their bodies, which come as changes do. */
export type OpeningKind = Exclude<WaitKind, "change" | "acl">;
export const isOpeningKind = (kind: WaitKind): kind is OpeningKind => kind !== "change" && kind !== "acl";

const EVERYTHING = new Uint8Array(0);
const NOTED_ONE_BY_ONE = 64;

/**
 * What has come that changes wait for. Whoever brings something notes it here; the intake asks after each write, and tries the
 * changes that waited for it.
 */
export type Unblocked = ReturnType<typeof createUnblocked>;

export function createUnblocked(store: Pick<SpaceStore, "unblocked" | "parked" | "pendingBodies">) {
  const { unblocked: table, parked, pendingBodies } = store;
  /** False only when there is surely nothing to do. */
  let due = table.first() !== undefined;
  /** Whether something was noted since `takeNews` was asked. */
  let hasNews = false;

  const beDue = (): void => {
    due = true;
    hasNews = true;
  };

  return {
    /** Something has come. It costs no more than a look when nothing waits for it. */
    note(kind: WaitKind, what: Uint8Array, scope: WriteScope): void {
      if (!parked.anyWaitingFor(kind, what) && !(isOpeningKind(kind) && pendingBodies.anyWaitingFor(kind, what)))
        return;
      table.add(kind, what);
      beDue();
      this.dueAfterRollback(scope);
    },

    /** The same for ACL records. For a long list it is not looked up what waits for each. */
    noteRecords(ids: readonly Uint8Array[], scope: WriteScope): void {
      if (ids.length <= NOTED_ONE_BY_ONE) for (const id of ids) this.note("acl", id, scope);
      else if (parked.nextOfKind("acl", EVERYTHING, EVERYTHING)) {
        this.noteAll("acl");
        this.dueAfterRollback(scope);
      }
    },

    /** Whatever changes of this kind wait for may have come. */
    noteAll(kind: WaitKind): void {
      table.add(kind, EVERYTHING);
      beDue();
    },

    /** Whether there may be changes to try. */
    due: (): boolean => due,
    /** There are none. */
    done(): void {
      due = false;
    },
    /** What was tried in this write may have to be tried again. */
    dueAfterRollback: (scope: WriteScope): void =>
      scope.onRollback(() => {
        due = true;
      }),
    /** Whether something has come that somebody waits for, since this was asked last. */
    takeNews(): boolean {
      const had = hasNews;
      hasNews = false;
      return had;
    },
    /** After a failed batch. */
    forgetBatch(): void {
      due = true;
    },
  };
}
