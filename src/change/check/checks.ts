import type { CommitQueue } from "../../store/commit/commit-queue.ts";
import type { RowRepair } from "../../store/rows/row-sums.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { OpenBatch } from "../fold/commit-batch.ts";
import type { ObjectDeletions } from "../fold/object-deletions.ts";
import type { Projection } from "../fold/projection.ts";
import type { DamagedChanges } from "../graph/damaged-changes.ts";
import { createDerivedCheck, type DerivedCheckDeps } from "./derived-check.ts";
import { createMending } from "./mending.ts";
import { createObjectCheck } from "./object-check.ts";
import { createSpaceCheck } from "./space-check.ts";
import { createWaitingCheck } from "./waiting-check.ts";

interface ChecksDeps extends Omit<DerivedCheckDeps, "soon"> {
  store: SpaceStore;
  queue: CommitQueue;
  batch: Pick<OpenBatch, "touch">;
  damaged: DamagedChanges;
  projection: Projection;
  deletions: ObjectDeletions;
  repairRow: RowRepair;
  /** Takes changes in as if they had come again; resolves when they are. */
  takeAgain(many: readonly Uint8Array[]): Promise<unknown>;
  /** Whether changes wait to be tried, since what they wait for has come. */
  isTrying(): boolean;
  onFailure: ((error: unknown) => void) | undefined;
}

/** Everything that goes over what is stored of a space and sets right what the disk changed. */
export function createChecks(deps: ChecksDeps) {
  const { store, queue, objects, projection, deletions, damaged, repairRow, onRepair } = deps;
  const { soon, readAgain, ...mending } = createMending({ ...deps, dateAnew: deletions.dateAnew });
  const rebuild = (no: number): void =>
    soon(() => {
      const found = objects.byNo(no);
      if (found && !found.deleted) projection.rebuildObject(found);
    });
  const parts = { store, objects, damaged, repairRow, onRepair, rebuild, readAgain };
  return {
    ...mending,
    check: createSpaceCheck({
      ...parts,
      checkObject: createObjectCheck({ store, objects, projection, deletions, onRepair, soon }),
      checkDerived: createDerivedCheck({ ...deps, soon }),
      waiting: createWaitingCheck({ ...deps, isClosing: queue.closing, soon }),
    }),
  };
}
