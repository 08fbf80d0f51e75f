import { keysBetween } from "../../base/position-key.ts";
import type { RecordChange, RecordOp } from "../../change/codec/change-body.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import { refusedAs, refusedPart, svcError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { OneSpaceEvents } from "../../space/one-space-events.ts";
import { type PartialWriteResult, toPartialWriteResult, toWriteResult, type WriteResult } from "../record/port.ts";
import type { BlockRow } from "./block.ts";
import { createBlockRenderer } from "./block-render.ts";
import { createDocumentCache } from "./document-cache.ts";
import { type DocumentPlan, planAppend, planDocument, planEdits, planRemoval } from "./document-plan.ts";
import { type DocumentWrite, documentWrite, inParts } from "./document-write.ts";
import { blockFault, EDITOR_DATASET, EDITOR_RULES } from "./editor-rules.ts";
import type { MarkdownEdit } from "./markdown-edit.ts";
import { atOnce, inTurns, STEP_BLOCKS, type Steps } from "./steps.ts";

/** Reply of the routes that write markdown. */
export interface MarkdownResult {
  inserted: string[];
  updated: string[];
  deleted: string[];
  unchanged: number;
}

export interface NewBlockInput {
  type: string;
  style?: JsonObject;
  text?: string;
  nav?: { parentId?: string; pos?: string };
}

interface EditorServiceDeps {
  engine: ChangeEngine;
  events: OneSpaceEvents;
  requireWriter(): void;
  attachType(tx: WriteTx, object: ObjectEntry, typeId: string): void;
  /** From 0 up to 1, for the jitter of positions. */
  random(): number;
}

/** A document or a text with more is planned before the write's turn. */
const LONG_CHARS = 128 << 10;

/** All blocks of a request are written in one turn of the loop, so that there are all of them or none (EDIT-8). */
function refuseMany(blocks: number): void {
  const limit = LIMITS.markdownBlocks;
  if (blocks > limit) throw refusedAs("request.too_large", { limit }, refusal("markdown.blocks", { blocks, limit }));
}

type Planner = (blocks: readonly BlockRow[]) => Steps<DocumentPlan>;

/** All that a write needs to know, made from the blocks alone. */
interface PreparedEdit extends Pick<DocumentWrite, "continuations"> {
  readonly blocks: readonly BlockRow[];
  readonly plan: DocumentPlan;
  /** The records to write, those of each change. */
  readonly changes: readonly RecordChange[][];
}

/** The block document of an object, as markdown and block by block (EDIT-2). */
export type EditorService = ReturnType<typeof createEditorService>;

export function createEditorService(deps: EditorServiceDeps) {
  const { engine } = deps;
  const renderer = createBlockRenderer();
  const documents = createDocumentCache(engine, deps.events);
  const planDeps = { renderer, random: deps.random };

  const objectOf = (object: ObjectEntry | undefined, objectId: string): ObjectEntry => {
    if (!object || object.deleted) throw svcError("object.not_found", { objectId });
    return object;
  };

  /**
   * Plans against the document as it is when the write's turn comes, and carries the plan out. What takes long is planned
   * beforehand, in turns of the loop that others share; that plan holds if the document is still the same.
   */
  const edit = async (objectId: string, plan: Planner, chars = 0): Promise<MarkdownResult> => {
    deps.requireWriter();
    const ahead = await prepareAhead(objectId, plan, chars);
    return guarded(objectId, (tx) => {
      const object = objectOf(tx.object(objectId), objectId);
      const blocks = documents.blocks(object, tx.touched());
      return carryOut(tx, object, ahead?.blocks === blocks ? ahead : atOnce(prepare(blocks, plan)));
    });
  };

  const prepareAhead = async (objectId: string, plan: Planner, chars: number): Promise<PreparedEdit | undefined> => {
    const object = objectOf(engine.object(objectId), objectId);
    const blocks = documents.blocks(object);
    const isLong = blocks.length > STEP_BLOCKS || chars > LONG_CHARS;
    return isLong ? inTurns(prepare(blocks, plan)) : undefined;
  };

  function* prepare(blocks: readonly BlockRow[], planner: Planner): Steps<PreparedEdit> {
    const plan = yield* planner(blocks);
    refuseMany(plan.inserts.length);
    yield;
    const { records, continuations } = documentWrite(plan, blocks, deps.random);
    yield;
    return { blocks, plan, changes: inParts(records), continuations };
  }

  /** A write after whose failure the cached document is not trusted. */
  const guarded = async <T>(objectId: string, run: (tx: WriteTx) => T): Promise<T> => {
    try {
      return await engine.write((tx) => {
        tx.scope.onRollback(() => documents.drop(objectId));
        return run(tx);
      });
    } catch (error) {
      documents.drop(objectId);
      throw error;
    }
  };

  const carryOut = (tx: WriteTx, object: ObjectEntry, prepared: PreparedEdit): MarkdownResult => {
    const { plan, changes, continuations } = prepared;
    const result: MarkdownResult = {
      inserted: [],
      updated: plan.updates.map(({ id }) => id),
      deleted: [...plan.deletes],
      unchanged: plan.unchanged,
    };
    if (changes.length === 0) return result;
    deps.attachType(tx, object, "editor");
    result.inserted = append(tx, object, changes);
    append(tx, object, inParts(continuations(result.inserted)));
    return result;
  };

  /** Writes records, a change for each list of them; answers the ids of new ones. */
  const append = (tx: WriteTx, object: ObjectEntry, changes: readonly RecordChange[][]): string[] =>
    changes.flatMap((records) => {
      const { recordIds } = tx.append(object, { dataset: EDITOR_DATASET, records }, EDITOR_RULES);
      return recordIds.filter((_, index) => records[index]!.id === "");
    });

  const blockIn = (tx: WriteTx, object: ObjectEntry, blockId: string): JsonObject => {
    const block = tx.record(object, EDITOR_DATASET, blockId);
    if (!block) throw refusedAs("sdk.not_found", { blockId }, refusal("block.unknown"));
    return block;
  };

  /** Position after the last child of a parent. */
  const nextPosition = (tx: WriteTx, object: ObjectEntry, parentId: string): string => {
    const last =
      parentId === "" ? documents.blocks(object, tx.touched()).at(-1)?.pos : lastChildPosition(object, parentId);
    const [key] = keysBetween(last, undefined, 1, deps.random) ?? [];
    return key ?? `${last}V`;
  };

  const lastChildPosition = (object: ObjectEntry, parentId: string): string | undefined => {
    let last: string | undefined;
    for (const text of engine.recordTexts(object, EDITOR_DATASET)) {
      const nav = (JSON.parse(text) as JsonObject)["nav"] as { parentId?: string; pos?: string } | undefined;
      if (nav?.parentId === parentId && nav.pos !== undefined && (last === undefined || nav.pos > last)) last = nav.pos;
    }
    return last;
  };

  return {
    /** The document as markdown: for what came from markdown, its very bytes. */
    markdown(objectId: string): string {
      const object = objectOf(engine.object(objectId), objectId);
      return renderer.render(documents.blocks(object)).content;
    },

    /** Brings the document to a text with the fewest writes; unchanged blocks keep their ids and are not written. */
    put: (objectId: string, content: string): Promise<MarkdownResult> =>
      edit(objectId, (blocks) => planDocument(blocks, content, planDeps), content.length),

    /** Applies edits to the current rendering, all or none. Errors: markdown.*, request.invalid_field. */
    patch: (objectId: string, edits: readonly MarkdownEdit[]): Promise<MarkdownResult> =>
      edit(objectId, (blocks) => planEdits(blocks, edits, planDeps)),

    append: (objectId: string, fragment: string): Promise<MarkdownResult> =>
      edit(objectId, (blocks) => planAppend(blocks.at(-1), fragment, planDeps), fragment.length),

    /** Errors: request.invalid_field {field, reason}, object.not_found, space.read_only. */
    async createBlock(objectId: string, input: NewBlockInput): Promise<WriteResult> {
      deps.requireWriter();
      const refused = blockFault(input);
      if (refused) throw refusedPart("request.invalid_field", { field: refused.field }, refused.why, "block");
      return guarded(objectId, (tx) => {
        const object = objectOf(tx.object(objectId), objectId);
        deps.attachType(tx, object, "editor");
        const parentId = input.nav?.parentId ?? "";
        const value: JsonObject = {
          type: input.type,
          ...(input.style === undefined ? {} : { style: input.style }),
          ...(input.text === undefined ? {} : { text: input.text }),
          nav: { parentId, pos: input.nav?.pos ?? nextPosition(tx, object, parentId) },
        };
        const appended = tx.append(
          object,
          { dataset: EDITOR_DATASET, records: [{ id: "", upsert: true, ops: [{ type: "$set", path: "", value }] }] },
          EDITOR_RULES,
        );
        return toWriteResult(appended);
      });
    },

    /** Sets and unsets fields of a block. What a block cannot be without is refused op by op, the rest applies. */
    patchBlock(
      objectId: string,
      blockId: string,
      set: Record<string, Json>,
      unset: readonly string[],
    ): Promise<PartialWriteResult> {
      deps.requireWriter();
      return guarded(objectId, (tx) => {
        const object = objectOf(tx.object(objectId), objectId);
        blockIn(tx, object, blockId);
        const ops: RecordOp[] = [
          ...Object.entries(set).map(([path, value]) => ({ type: "$set" as const, path, value })),
          ...unset.map((path) => ({ type: "$unset" as const, path })),
        ];
        if (ops.length === 0) return { versionId: "", changeId: "", recordIds: [blockId] };
        const body = { dataset: EDITOR_DATASET, records: [{ id: blockId, ops }] };
        const appended = tx.appendPartly(object, body, EDITOR_RULES);
        const result = toPartialWriteResult(appended);
        return appended.effective ? result : tx.rollBackWith(result);
      });
    },

    /** Deletes a block for ever; its children stay. What keeps its neighbours apart is written with it. */
    deleteBlock(objectId: string, blockId: string): Promise<WriteResult> {
      deps.requireWriter();
      return guarded(objectId, (tx) => {
        const object = objectOf(tx.object(objectId), objectId);
        blockIn(tx, object, blockId);
        const blocks = documents.blocks(object, tx.touched());
        const index = blocks.findIndex((block) => block.id === blockId);
        const write = index < 0 ? undefined : documentWrite(planRemoval(blocks, index, planDeps), blocks, deps.random);
        const records = write?.records ?? [{ id: blockId, delete: true, ops: [] }];
        // The caller's block stands first in the result.
        const ordered = [
          ...records.filter((record) => record.id === blockId),
          ...records.filter((record) => record.id !== blockId),
        ];
        const appended = tx.append(object, { dataset: EDITOR_DATASET, records: ordered }, EDITOR_RULES);
        append(tx, object, inParts(write?.continuations([]) ?? []));
        return toWriteResult(appended);
      });
    },

    close: documents.stop,
  };
}
