import type { Clock } from "../../base/clock.ts";
import type { AccountId } from "../../base/ids.ts";
import type { RecordChange } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope } from "../../change/codec/dataset-rules.ts";
import { ABSENT, foldRecord } from "../../change/fold/record-fold.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { Appended } from "../../change/local-writer.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { SvcError, svcError, type UpsertRejectionCode } from "../../protocol/errors.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { canonicalInstants } from "../../query/canonical-instants.ts";
import { ROW_LIVE, ROW_TOMBSTONE } from "../../store/row-table.ts";
import { NOT_AUTHOR, WRITE_ONCE, type WritableDataset } from "../type/port.ts";
import { toWriteResult, type WriteResult } from "./port.ts";
import type { RecordService } from "./record-service.ts";

export interface UpsertRequest {
  objectId: string;
  dataset: string;
  records: { id: string; fields: JsonObject }[];
  pageSize?: number;
  traceIds?: string[];
}

interface UpsertRejection {
  index: number;
  id: string;
  code: UpsertRejectionCode;
  reason: string;
}

export interface UpsertResult {
  pages: Pick<WriteResult, "versionId" | "changeId" | "recordIds">[];
  created: number;
  updated: number;
  skipped: number;
  rejections: UpsertRejection[];
}

interface UpsertDeps {
  engine: ChangeEngine;
  records: RecordService;
  accountId: AccountId;
  clock: Clock;
  requireWriter(): void;
}

interface Page {
  changes: RecordChange[];
  created: number;
  updated: number;
  skipped: number;
  rejections: UpsertRejection[];
}

/**
 * `POST {S}/upsert` (DATA-3): brings records to the given fields, one change a page. A rerun with the same input finds
 * everything in place and writes nothing. The record id is the idempotency key.
 */
export function createUpsertService(deps: UpsertDeps) {
  const { engine, records } = deps;
  return {
    async upsert(request: UpsertRequest): Promise<UpsertResult> {
      deps.requireWriter();
      const result: UpsertResult = { pages: [], created: 0, updated: 0, skipped: 0, rejections: [] };
      const pageSize = request.pageSize ?? LIMITS.upsertPageDefault;
      const starts: number[] = [];
      for (let start = 0; start < Math.max(1, request.records.length); start += pageSize) starts.push(start);
      // Enqueued together: pages of one request share commits, in order.
      const pages = await Promise.all(
        starts.map((start) =>
          engine.write((tx): { page: Page; written: WriteResult | undefined } => {
            const object = records.objectOf(tx, request.objectId);
            const dataset = records.datasetOf(tx, object, request.dataset);
            if (dataset.rules.idRule !== "user")
              throw svcError("upsert.requires_user_ids", { dataset: request.dataset });
            const plan = (judge: boolean) =>
              planPage(
                tx,
                object,
                dataset,
                request.records,
                start,
                Math.min(start + pageSize, request.records.length),
                judge,
              );
            const append = (changes: RecordChange[]) =>
              tx.append(
                object,
                {
                  dataset: dataset.rules.name,
                  ...(dataset.definition ? { definition: dataset.definition } : {}),
                  records: changes,
                  ...(request.traceIds && request.traceIds.length > 0 ? { traceIds: request.traceIds } : {}),
                },
                dataset.rules,
              );
            const unjudged = plan(false);
            if (unjudged && unjudged.changes.length > 0) {
              const appended = attemptWhole(tx, () => append(unjudged.changes));
              if (appended) return { page: unjudged, written: toWriteResult(appended) };
            }
            const page = unjudged?.changes.length === 0 ? unjudged : plan(true)!;
            if (page.changes.length === 0) return tx.rollBackWith({ page, written: undefined });
            const appended = append(page.changes);
            return { page, written: toWriteResult(appended) };
          }),
        ),
      );
      for (const { page, written } of pages) {
        result.created += page.created;
        result.updated += page.updated;
        result.skipped += page.skipped;
        result.rejections.push(...page.rejections);
        if (written)
          result.pages.push({ versionId: written.versionId, changeId: written.changeId, recordIds: written.recordIds });
      }
      return result;
    },
  };

  /**
   * What a page changes. Unless told to judge them, new records are taken to pass the rules, so that the fold of the
   * change is their only one; undefined then when two entries of the page are about one record.
   */
  function planPage(
    tx: WriteTx,
    object: ObjectEntry,
    dataset: WritableDataset,
    all: UpsertRequest["records"],
    from: number,
    to: number,
    judge: boolean,
  ): Page | undefined {
    const page: Page = { changes: [], created: 0, updated: 0, skipped: 0, rejections: [] };
    const envelope: ChangeEnvelope = {
      version: "",
      changeId: new Uint8Array(32),
      author: deps.accountId,
      timeMs: deps.clock.nowMs(),
      spaceId: engine.spaceId,
      objectId: object.idText,
    };
    // A later record of the page with the same id sees what the earlier one will have written.
    const planned = new Map<string, JsonObject>();
    const seen = new Set<string>();
    const ids = all.slice(from, to).map(({ id }) => id);
    const states = tx.recordStates(object, dataset.rules.name, ids);
    for (let index = from; index < to; index++) {
      const { id } = all[index]!;
      const fields = canonicalInstants(all[index]!.fields) as JsonObject;
      const reject = (code: UpsertRejectionCode, reason: string) =>
        void page.rejections.push({ index, id, code, reason });
      if (!judge) {
        if (seen.has(id)) return undefined;
        seen.add(id);
      }
      const known = planned.get(id);
      const stored = known ?? (states.get(id) === ROW_LIVE ? tx.record(object, dataset.rules.name, id) : undefined);
      if (!stored && states.get(id) === ROW_TOMBSTONE) {
        reject("upsert.record_deleted", "the record is deleted");
        continue;
      }
      const misnamed = nameFault(id, fields);
      if (misnamed) {
        reject("upsert.rejected", misnamed);
        continue;
      }
      if (!stored) {
        const change: RecordChange = {
          id,
          upsert: true,
          ops: Object.keys(fields).length > 0 ? [{ type: "$set", path: "", value: fields }] : [],
        };
        if (id === "") {
          reject("upsert.rejected", "the id is empty");
          continue;
        }
        if (judge) {
          const { state, drops } = foldRecord(ABSENT, id, [change], envelope, dataset.rules);
          if (drops.length > 0) {
            reject("upsert.rejected", drops[0]!.reason);
            continue;
          }
          if (state.kind === "live") planned.set(id, state.doc);
        }
        page.changes.push(change);
        page.created++;
        continue;
      }
      const differing = Object.entries(fields).filter(
        ([key, value]) => key !== "id" && !Bun.deepEquals(stored[key], value, true),
      );
      if (differing.length === 0) {
        page.skipped++;
        continue;
      }
      const change: RecordChange = { id, upsert: true, ops: [] };
      const changed = known ?? { ...stored };
      for (const [key, value] of differing) {
        const op = { type: "$set" as const, path: key, value };
        const refusal = dataset.rules.refuseOp?.(stored, [key], op, false, envelope);
        if (refusal) {
          const code = upsertCode(refusal);
          // The other reasons name the field themselves.
          reject(code, code === "upsert.rejected" ? refusal : `${key}: ${refusal}`);
          continue;
        }
        change.ops.push(op);
        changed[key] = value;
      }
      if (change.ops.length === 0) continue;
      planned.set(id, changed);
      page.changes.push(change);
      page.updated++;
    }
    return page;
  }
}

/** Why the names of an entry's fields are refused. A dot would be a path to a create and a name to an update. */
function nameFault(id: string, fields: JsonObject): string | undefined {
  for (const key of Object.keys(fields)) {
    if (key.includes(".")) return `${key}: a field's name has no dots; give the object that holds it`;
    if (key === "id" && fields[key] !== id) return "the fields name another id than the entry";
  }
  return undefined;
}

/** Thrown to take a change back of which a part was refused. */
const REFUSED = new Error("something was refused");

/** The change, when all of it took effect; otherwise nothing of it stays. */
function attemptWhole(tx: WriteTx, append: () => Appended): Appended | undefined {
  try {
    return tx.attempt(() => {
      const appended = append();
      if (appended.rejections.length > 0) throw REFUSED;
      return appended;
    });
  } catch (error) {
    // A change that does not fit may fit without what the rules refuse.
    if (error === REFUSED || (error instanceof SvcError && error.code === "request.too_large")) return undefined;
    throw error;
  }
}

/** Reasons of the compiled rules, as codes: a write-once field, somebody else's record, or any other refusal. */
function upsertCode(reason: string): UpsertRejectionCode {
  if (reason === WRITE_ONCE) return "upsert.immutable_field";
  if (reason === NOT_AUTHOR) return "upsert.not_author";
  return "upsert.rejected";
}
