import type { ChangeEngine } from "../../change/space-engine.ts";
import { FILE_DURABLE, FILE_INFLIGHT, type FileStateNo } from "../../protocol/file-state.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { FileRef, FileTable } from "../../store/tables/file-table.ts";
import { FILES_DATASET } from "./file-rules.ts";

const AT_ONCE = 500;

interface InlineDurabilityDeps {
  engine: Pick<ChangeEngine, "changeNo" | "write">;
  table: FileTable;
  /** What the network is known to keep. */
  sync: Pick<SpaceStore["sync"], "isKept" | "doubts">;
  changed(fileIds: readonly string[]): void;
}

/** Files whose bytes lie in their rows: they are as durable as the changes that made them. */
export function createInlineDurability(deps: InlineDurabilityDeps) {
  const { engine, table, sync } = deps;
  let doubtsBefore = sync.doubts();

  const isKept = (ref: FileRef): boolean => {
    const no = engine.changeNo(ref.child, ref.ver); // of the change that created the row
    return no !== undefined && sync.isKept("network", no);
  };

  const setStates = async (refs: readonly FileRef[], state: FileStateNo): Promise<void> => {
    if (refs.length === 0) return;
    await engine.write((tx) => {
      for (const ref of refs) {
        const child = tx.object(ref.child);
        table.setRefState(ref.fileId, state);
        if (child && table.ref(ref.fileId))
          tx.setLocal(child, FILES_DATASET, ref.fileId, { durable: state === FILE_DURABLE });
      }
    });
    deps.changed(refs.map(({ fileId }) => fileId));
  };

  return {
    /**
     * Files whose bytes lie in their rows are durable once the network has acknowledged the change; they cease to be when its
     * log turns out to lack it.
     */
    async confirm(): Promise<void> {
      for (;;) {
        const kept = table.inline(FILE_INFLIGHT, AT_ONCE).filter(isKept);
        if (kept.length === 0) return;
        await setStates(kept, FILE_DURABLE);
      }
    },
    async doubt(): Promise<void> {
      if (sync.doubts() === doubtsBefore) return;
      doubtsBefore = sync.doubts();
      await setStates(
        table.inline(FILE_DURABLE, -1).filter((ref) => !isKept(ref)),
        FILE_INFLIGHT,
      );
    },
  };
}
