import type { Random } from "../../base/position-key.ts";
import type { RecordChange } from "../../change/codec/change-body.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { type BlockRow, CONTINUATION, type LongText, type Stretch } from "./block.ts";
import type { DocumentPlan } from "./document-plan.ts";
import { fitsRecord, planStretches } from "./long-block.ts";

/** About how much of a plan goes into one change; all changes of a plan commit together. */
const CHANGE_BYTES = 256 << 10;

/** The records that a plan writes. */
export interface DocumentWrite {
  /** Those of blocks, and the continuations that are there; inserted blocks in the plan's order. */
  readonly records: RecordChange[];
  /** New continuations, which name the blocks that they go on: `inserted` are the ids of the plan's new blocks. */
  continuations(inserted: readonly string[]): RecordChange[];
}

/** Shares a plan out to records: most blocks are one each, a long one goes on in others (EDIT-7). */
export function documentWrite(plan: DocumentPlan, blocks: readonly BlockRow[], random: Random): DocumentWrite {
  const longById = new Map(blocks.flatMap((block) => (block.stretches ? [[block.id, block.stretches]] : [])));
  const more: { of: string | number; stretch: Omit<Stretch, "id"> }[] = [];

  /** What is written of a block whose source, and perhaps text, are to be these; `own`: of its own record. */
  const share = (id: string, set: { text?: string; source: string }): { own: JsonObject; others: RecordChange[] } => {
    const long = longById.get(id);
    const { text = "", source } = set;
    if (!long && fitsRecord({ text, source })) return { own: set, others: [] };
    const old = long ?? [wholeOf(blocks.find((block) => block.id === id)!)];
    const whole = old.map((stretch) => stretch.text).join("");
    const stretches = planStretches(old, { text: set.text ?? whole, source }, random);
    for (const stretch of stretches.inserts) more.push({ of: id, stretch });
    return {
      own: stretches.own === undefined ? {} : said(old[0]!, stretches.own),
      others: [
        ...stretches.deletes.map(removal),
        ...stretches.updates.map(({ id: record, text: part, source: from }) =>
          change(record, { text: part, source: from }),
        ),
        ...stretches.moves.map((move) => change(move.id, { "nav.pos": move.pos })),
      ],
    };
  };

  const records = plan.deletes.flatMap((id) => [id, ...continuationsOf(longById.get(id))].map(removal));
  for (const { id, set, unsetStyle } of plan.updates) {
    const { text, source, ...fields } = set;
    const { own, others } = share(id, text === undefined ? { source } : { text, source });
    const value = { ...fields, ...own };
    const ops = Object.keys(value).length > 0 ? [{ type: "$set" as const, path: "", value }] : [];
    const unset = unsetStyle ? [{ type: "$unset" as const, path: "style" }] : [];
    if (ops.length + unset.length > 0) records.push({ id, ops: [...ops, ...unset] });
    records.push(...others);
  }
  for (const { id, source } of plan.touches) {
    const { own, others } = share(id, { source });
    if (Object.keys(own).length > 0) records.push(change(id, own));
    records.push(...others);
  }
  for (const { id, pos } of plan.moves) records.push(change(id, { "nav.pos": pos }));
  for (const [index, { pos, ...block }] of plan.inserts.entries()) {
    const shared = fitsRecord(block) ? undefined : planStretches([NOTHING], block, random);
    for (const stretch of shared?.inserts ?? []) more.push({ of: index, stretch });
    records.push(creation({ ...block, ...shared?.own, nav: { parentId: "", pos } }));
  }

  return {
    records,
    continuations: (inserted) =>
      more.map(({ of, stretch: { text, source, pos } }) =>
        creation({
          type: CONTINUATION,
          text,
          source,
          nav: { parentId: typeof of === "number" ? inserted[of]! : of, pos },
        }),
      ),
  };
}

const NOTHING: Stretch = { id: "", pos: "", text: "", source: "" };

/** Cuts a long list of records into parts that fit into a change each. */
export function inParts(records: readonly RecordChange[]): RecordChange[][] {
  const parts: RecordChange[][] = [];
  let part: RecordChange[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = Buffer.byteLength(JSON.stringify(record));
    if (part.length > 0 && bytes + size > CHANGE_BYTES) {
      parts.push(part);
      part = [];
      bytes = 0;
    }
    part.push(record);
    bytes += size;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

/** A block that is one record, as that record. */
function wholeOf({ id, pos, text = "", source = "" }: BlockRow): Stretch {
  return { id, pos, text, source };
}

function continuationsOf(stretches: readonly Stretch[] | undefined): string[] {
  return stretches?.slice(1).map(({ id }) => id) ?? [];
}

/** What a record is to say that it does not say yet. */
function said(old: LongText, next: LongText): JsonObject {
  return {
    ...(old.text === next.text ? {} : { text: next.text }),
    ...(old.source === next.source ? {} : { source: next.source }),
  };
}

const change = (id: string, value: JsonObject): RecordChange => ({ id, ops: [{ type: "$set", path: "", value }] });

const removal = (id: string): RecordChange => ({ id, delete: true, ops: [] });

const creation = (value: object): RecordChange => ({
  id: "",
  upsert: true,
  ops: [{ type: "$set", path: "", value: value as JsonObject }],
});
