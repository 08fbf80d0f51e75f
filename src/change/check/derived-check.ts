import { compareBytes, equalBytes } from "../../base/bytes.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { StoredFileError } from "../../protocol/storage-fault.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import { CHANGE_STUB, CHANGE_WHOLE, type StoredChange } from "../../store/tables/change-table.ts";
import type { PendingBodyWait } from "../../store/tables/pending-body-table.ts";
import type { BodyOpener } from "../codec/body-opener.ts";
import { type Change, decodeCheckedChange, isDerivedRoot } from "../codec/change-codec.ts";
import type { AclView, OnRepair, RulesRegistry } from "../codec/ports.ts";
import { partsByRecord, type ReplayInput } from "../fold/change-parts.ts";
import type { ChangeVerdicts } from "../fold/change-verdicts.ts";
import { collectionOf, findCollection } from "../fold/datasets.ts";
import type { Projection } from "../fold/projection.ts";
import { traceKeys } from "../fold/trace-key.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { WriterChains } from "../graph/writer-chains.ts";
import { contentOf } from "../intake/content.ts";

export interface DerivedCheckDeps {
  store: SpaceStore;
  objects: ObjectCache;
  chains: Pick<WriterChains, "clear">;
  acl: AclView;
  registry: RulesRegistry;
  opener: BodyOpener;
  projection: Pick<Projection, "replayOf" | "markRow">;
  verdicts: Pick<ChangeVerdicts, "isWrong" | "retakeOne">;
  /** False: the space keeps no history. */
  keepsHistory: boolean;
  foldLater(stored: StoredChange): void;
  onRepair: OnRepair;
  /** Runs a write soon, behind those that wait. */
  soon(run: () => void): void;
}

/** A table that says of a change what does not follow from it, and how that is set right, within a write. */
interface Difference {
  readonly table: string;
  mend(): void;
}

export type DerivedCheck = ReturnType<typeof createDerivedCheck>;

/**
 * Derives from a change again what tables say of it beside its record rows: who wrote it, in which dataset, whether it counts,
 * where it stands in the history, which rows it touched, what it waits for. What differs is made to agree, in a write.
 */
export function createDerivedCheck(deps: DerivedCheckDeps) {
  const { store, objects, chains, acl, registry, opener, projection, verdicts, onRepair } = deps;
  const { changes, rows, history, pendingBodies, derived } = store;

  const writerDifference = ({ writer }: StoredChange, { author, writer: id }: Change["header"]): Difference[] => {
    const known = changes.findWriterByNo(writer);
    if (!known || (equalBytes(known.author, author) && equalBytes(known.id, id)) || changes.writer(author, id))
      return [];
    const mend = (): void => {
      derived.nameWriter(writer, author, id);
      chains.clear();
    };
    return [{ table: "writers", mend }];
  };

  const verdictDifference = (stored: StoredChange, { acl: named }: Change["header"]): Difference[] => {
    const pos = acl.at(named)?.pos;
    const retake = (): void => verdicts.retakeOne(stored.no);
    if (pos !== undefined && pos !== stored.aclPos) {
      const mend = (): void => {
        changes.setAclPos(stored.no, pos);
        retake();
      };
      return [{ table: "changes.acl_pos", mend }];
    }
    return pos !== undefined && verdicts.isWrong(stored) ? [{ table: "changes.counts", mend: retake }] : [];
  };

  const edgeDifference = (
    stored: StoredChange,
    { parents }: Change["header"],
    object: ObjectEntry,
    input: ReplayInput | undefined,
  ): Difference[] => {
    if (!deps.keepsHistory) return [];
    const numbers = parents.flatMap((parent) => changes.noOf(parent) ?? []);
    const { no, lamport, writer, timeMs } = stored;
    const found = derived.edge(object.no, lamport, no);
    const shown = input
      ? {
          datasetNo: store.findDatasetNo(input.body.dataset) ?? stored.datasetNo,
          hidden: input.rules.skipHistory === true,
        }
      : { datasetNo: 0, hidden: true };
    const isSame =
      found !== undefined &&
      found.writer === writer &&
      found.time === timeMs &&
      String(found.parents ?? "") === numbers.join(",") &&
      (!input || (found.datasetNo === shown.datasetNo && (found.hidden === 1) === shown.hidden));
    const mend = (): void => {
      history.add(object.no, { change: no, lamport, writer, timeMs, parents: numbers, ...shown });
      history.amended(object.no);
    };
    return isSame ? [] : [{ table: "history", mend }];
  };

  const traceDifference = (stored: StoredChange, object: ObjectEntry, input: ReplayInput): Difference[] => {
    if (!deps.keepsHistory || input.rules.skipHistory === true || object.deleted) return [];
    const keys = traceKeys(input.body.traceIds);
    const missing = keys.filter((key) => !derived.isTraced(object.no, key, stored.lamport, stored.no));
    const mend = (): void => {
      derived.dropFalseTraces(object.no, stored.lamport, stored.no, keys);
      for (const key of missing) history.addTrace(object.no, key, stored.lamport, stored.no);
    };
    return missing.length > 0 ? [{ table: "history_traces", mend }] : [];
  };

  const touchDifference = (stored: StoredChange, object: ObjectEntry, input: ReplayInput): Difference[] => {
    if (object.deleted) return [];
    const { dataset } = input.body;
    const collection = findCollection(store, object, dataset);
    const ids = [...partsByRecord(input).keys()];
    const missing =
      collection === undefined
        ? ids
        : ids.filter((id) => !derived.isTouched(collection, id, stored.lamport, stored.no));
    const mend = (): void => {
      const collectionId = collectionOf(store, object, dataset);
      for (const id of missing) {
        const row = rows.get(collectionId, id) ?? { no: rows.insertAbsent(collectionId, id), ops: 0 };
        rows.touch(row.no, stored.lamport, stored.no);
        projection.markRow(row, stored, object, dataset);
      }
      dropFalseTouches(collectionId, stored.lamport, object, dataset);
    };
    return missing.length > 0 ? [{ table: "touches", mend }] : [];
  };

  /** What is missing stands somewhere else: at another row or change of the same position in the order. */
  const dropFalseTouches = (collectionId: number, lamport: number, object: ObjectEntry, dataset: string): void => {
    const touched = new Map<number, ReadonlySet<string> | undefined>();
    for (const { row, id, change } of derived.touchesAt(collectionId, lamport)) {
      const stored = changes.byNo(change);
      if (!touched.has(change)) {
        const input = stored && inputOf(stored, object);
        touched.set(change, input && new Set(partsByRecord(input).keys()));
      }
      const ids = touched.get(change);
      if (!stored || !ids || ids.has(id)) continue;
      derived.untouch(row, lamport, change);
      const head = rows.byNo(row);
      if (head) projection.markRow(head, stored, object, dataset);
    }
  };

  /** Its body, where it is folded. */
  const inputOf = (stored: StoredChange, object: ObjectEntry): ReplayInput | undefined => {
    if (stored.datasetNo === 0 || stored.kind !== CHANGE_WHOLE || stored.bytes.length === 0) return undefined;
    try {
      return projection.replayOf(stored, object);
    } catch (error) {
      if (!(error instanceof StoredFileError)) throw error;
      onRepair("change.unreadable", {
        change: cidFromDigest(stored.id),
        why: error.message,
      });
      return undefined;
    }
  };

  const datasetDifference = (stored: StoredChange, { body }: ReplayInput): Difference[] => {
    if (store.datasetName(stored.datasetNo) === body.dataset) return [];
    const mend = (): void => {
      store.forgetNumbers();
      const right = store.findDatasetNo(body.dataset);
      if (right === undefined) derived.nameDataset(stored.datasetNo, body.dataset);
      else derived.setDataset(stored.no, right);
      store.forgetNumbers();
    };
    return [{ table: "datasets", mend }];
  };

  /** A change that counts and is not folded waits for something, and is missed. */
  const waitDifference = (stored: StoredChange, object: ObjectEntry): Difference[] => {
    if (stored.datasetNo !== 0 || !stored.counts || object.deleted) return [];
    const put = (kind: PendingBodyWait, what: Uint8Array): Difference[] => {
      const known = pendingBodies.get(stored.no);
      if (known && known.waitKind === kind && compareBytes(known.waitFor, what) === 0) return [];
      return [{ table: "pending_bodies", mend: () => pendingBodies.put(stored.no, object.no, kind, what) }];
    };
    if (stored.kind === CHANGE_STUB) return put("body", stored.id);
    if (stored.kind !== CHANGE_WHOLE) return [];
    const content = contentOf(opener.openStored(stored.bytes, object.idText), stored.id, registry);
    if ("broken" in content) return [];
    if ("wait" in content) return put(content.wait, content.what);
    return pendingBodies.has(stored.no) ? [] : [{ table: "changes.datasetNo", mend: () => deps.foldLater(stored) }];
  };

  const differences = (stored: StoredChange): Difference[] => {
    if (stored.bytes.length === 0) return [];
    const change = decodeCheckedChange(stored.bytes, stored.id);
    if (isDerivedRoot(change)) return [];
    const { header } = change;
    const object = objects.byId(header.object ?? stored.id);
    if (!object) return [];
    const named = writerDifference(stored, header);
    // The rest is read through the writer's name.
    if (named.length > 0) return named;
    const judged = verdictDifference(stored, header);
    if (!header.object) return judged;
    const input = inputOf(stored, object);
    if (input) {
      const filed = datasetDifference(stored, input);
      if (filed.length > 0) return [...judged, ...filed];
    }
    return [
      ...judged,
      ...waitDifference(stored, object),
      ...edgeDifference(stored, header, object, input),
      ...(input ? [...traceDifference(stored, object, input), ...touchDifference(stored, object, input)] : []),
    ];
  };

  /** Looks at one change; its bytes are sound. */
  return (stored: StoredChange): void => {
    if (differences(stored).length === 0) return;
    deps.soon(() => {
      const again = changes.byNo(stored.no);
      const found = again ? differences(again) : [];
      for (const { mend } of found) mend();
      if (found.length > 0)
        onRepair("change.derived", {
          change: cidFromDigest(stored.id),
          tables: found.map(({ table }) => table),
        });
    });
  };
}
