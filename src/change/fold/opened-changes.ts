import { createWeightedCache } from "../../base/weighted-cache.ts";
import { isJsonObject } from "../../protocol/json.ts";
import type { ChangeTable } from "../../store/tables/change-table.ts";
import type { RecordChange } from "../codec/change-body.ts";
import type { ChangeEnvelope } from "../codec/dataset-rules.ts";
import type { DamagedChanges } from "../graph/damaged-changes.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";
import { type createEnvelopes, partsByRecord, type ReplayInput } from "./change-parts.ts";
import { type ChangeReader, UnreadableChangeError } from "./change-reader.ts";

/** Opened text of the changes that are kept at a time. */
const KEPT_BYTES = 16 << 20;
/** What an entry of an opened body weighs besides its text. */
const ENTRY_BYTES = 128;

/** A change that is in the log, opened once for all the rows that it touches. */
export interface OpenedChange {
  readonly input: ReplayInput;
  readonly envelope: ChangeEnvelope;
  readonly bytes: number;
  /** What it does to one record, to be taken over by the fold. */
  partsOf(id: string): RecordChange[];
}

/** Changes by their numbers, those used last. */
export type OpenedChanges = ReturnType<typeof createOpenedChanges>;

export function createOpenedChanges(
  changes: Pick<ChangeTable, "byNo">,
  reader: ChangeReader,
  envelopeOf: ReturnType<typeof createEnvelopes>,
  damaged: Pick<DamagedChanges, "setAside">,
) {
  const make = () => createWeightedCache<OpenedChange>(KEPT_BYTES);
  let kept = make();

  /** Undefined for a change that the disk changed: it is set aside. */
  const inputOf = (no: number, object: ObjectEntry): ReturnType<ChangeReader["replayOf"]> | undefined => {
    const stored = changes.byNo(no)!;
    try {
      return reader.replayOf(stored, object);
    } catch (error) {
      if (error instanceof UnreadableChangeError && damaged.setAside(stored)) return undefined;
      throw error;
    }
  };

  const open = (no: number, object: ObjectEntry): OpenedChange | undefined => {
    const input = inputOf(no, object);
    if (!input) return undefined;
    const parts = partsByRecord(input);
    const bytes = input.openedBytes + ENTRY_BYTES * input.body.records.length;
    return {
      input,
      envelope: envelopeOf(input),
      bytes,
      partsOf: (id) => parts.get(id)?.map(({ record }) => ownValues(record)) ?? [],
    };
  };

  return {
    /** Undefined for a change that the disk changed. */
    get(no: number, object: ObjectEntry): OpenedChange | undefined {
      const known = kept.get(`${no}`);
      if (known) return known;
      const opened = open(no, object);
      if (opened) kept.keep(`${no}`, opened, opened.bytes);
      return opened;
    },
    forget(): void {
      kept = make();
    },
  };
}

/** The fold keeps objects and changes them in place later, but an opened change is folded more than once. */
function ownValues(record: RecordChange): RecordChange {
  if (!record.ops.some(({ value }) => isJsonObject(value))) return record;
  return {
    ...record,
    ops: record.ops.map((op) => (isJsonObject(op.value) ? { ...op, value: structuredClone(op.value) } : op)),
  };
}
