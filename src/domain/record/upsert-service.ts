import type { Clock } from "../../base/clock.ts";
import type { AccountId } from "../../base/ids.ts";
import type { RecordChange } from "../../change/codec/change-body.ts";
import type { ChangeEnvelope } from "../../change/codec/dataset-rules.ts";
import type { Appended } from "../../change/local-writer.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { SvcError, svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { toWriteResult, type WriteResult } from "./port.ts";
import type { RecordService } from "./record-service.ts";
import { type Page, planPage, type UpsertEntry, type UpsertRejection } from "./upsert-plan.ts";

export interface UpsertRequest {
  objectId: string;
  dataset: string;
  records: UpsertEntry[];
  pageSize?: number;
  traceIds?: string[];
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

interface WrittenPage {
  page: Page;
  /** Undefined when there was nothing to write. */
  written: WriteResult | undefined;
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
          engine.write((tx) => writePage(tx, request, start, Math.min(start + pageSize, request.records.length))),
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

  function writePage(tx: WriteTx, request: UpsertRequest, from: number, to: number): WrittenPage {
    const object = records.objectOf(tx, request.objectId);
    const dataset = records.datasetOf(tx, object, request.dataset);
    if (dataset.rules.idRule !== "user") throw svcError("upsert.requires_user_ids", { dataset: request.dataset });
    const envelope: ChangeEnvelope = {
      version: "",
      changeId: new Uint8Array(32),
      author: deps.accountId,
      timeMs: deps.clock.nowMs(),
      spaceId: engine.spaceId,
      objectId: object.idText,
    };
    const plan = (judge: boolean) => planPage({ tx, object, dataset, envelope, judge }, request.records, from, to);
    const append = (changes: RecordChange[]) =>
      tx.appendPartly(
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
    return { page, written: toWriteResult(append(page.changes)) };
  }
}

/** Thrown to roll back a change of which a part was refused. */
const REFUSED = new Error("something was refused");

/** Returns the change if all of it took effect; otherwise nothing of it is kept. */
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
