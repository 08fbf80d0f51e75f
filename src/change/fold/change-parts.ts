import type { AccountId, SpaceId } from "../../base/ids.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { StoredChange } from "../../store/tables/change-table.ts";
import type { ChangeBody, RecordChange } from "../codec/change-body.ts";
import type { ChangeEnvelope, DatasetRules } from "../codec/dataset-rules.ts";
import { autoRecordId, versionOf } from "../codec/version.ts";
import type { ObjectEntry } from "../graph/object-cache.ts";

/** A change that is in the log, with its opened body: what it does to records follows from this. */
export interface ReplayInput {
  change: Pick<StoredChange, "no" | "id" | "lamport" | "writer" | "counts" | "timeMs">;
  author: Uint8Array;
  object: ObjectEntry;
  body: ChangeBody;
  rules: DatasetRules;
}

/** A change with its position in the graph, as the projection folds it for the first time. */
export interface FoldInput extends ReplayInput {
  /** Local numbers of the parents. */
  parents: readonly number[];
}

const MAX_CACHED_AUTHORS = 10_000;

/** Makes what rules may know of a change. Account ids are kept: few accounts write many changes. */
export function createEnvelopes(spaceId: SpaceId) {
  const authorTexts = new Map<string, AccountId>();
  /** The same by the array that holds the key: changes of one writer and roots in memory share theirs. */
  const textByKey = new WeakMap<Uint8Array, AccountId>();

  const authorText = (key: Uint8Array): AccountId => {
    const known = textByKey.get(key);
    if (known) return known;
    const name = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("latin1");
    let text = authorTexts.get(name);
    if (!text) {
      text = accountIdOf(key);
      if (authorTexts.size > MAX_CACHED_AUTHORS) authorTexts.clear();
      authorTexts.set(name, text);
    }
    textByKey.set(key, text);
    return text;
  };

  return (input: Pick<ReplayInput, "change" | "author" | "object">): ChangeEnvelope => ({
    version: versionOf(input.change.lamport, input.change.id),
    changeId: input.change.id,
    author: authorText(input.author),
    timeMs: input.change.timeMs,
    spaceId,
    objectId: input.object.idText,
    ...(input.object.author ? { objectAuthor: authorText(input.object.author) } : {}),
  });
}

/** The id that one entry of a change is about. `empties` counts the entries without an id before it. */
export function finalRecordId(record: RecordChange, input: ReplayInput, empties: { count: number }): string {
  if (input.rules.idRule === "object") return input.object.idText;
  return record.id === "" ? autoRecordId(input.change.id, empties.count++) : record.id;
}

/**
 * Whether the record's entry may name the id it names, whatever is stored; answers why not. What depends on what is
 * stored belongs to the fold: it may turn out otherwise when an earlier change arrives.
 */
export function recordIdFault(record: RecordChange, input: ReplayInput): Refusal | undefined {
  if (record.id.length > LIMITS.recordIdChars && [...record.id].length > LIMITS.recordIdChars)
    return refusal("id.record_too_long");
  // Stored, they would be other ids than they are, and some of them the same.
  if (!record.id.isWellFormed()) return refusal("id.malformed");
  if (input.rules.idRule === "object" && record.id !== "" && record.id !== input.object.idText)
    return refusal("id.is_the_objects");
  if (input.rules.idRule === "user" && record.id === "") return refusal("id.is_the_callers");
  return undefined;
}

/** The ids that the entries of a change are about, in their order. */
export function finalRecordIds(input: ReplayInput): string[] {
  const empties = { count: 0 };
  return input.body.records.map((record) => finalRecordId(record, input, empties));
}

/** An entry of a change's body, and where it stands there. */
export interface Part {
  index: number;
  record: RecordChange;
}

/** The entries that may name what they name, by record: each record is read once and stored once, however often it is named. */
export function partsByRecord(
  input: ReplayInput,
  ids: readonly string[] = finalRecordIds(input),
  onFault?: (index: number, refusal: Refusal) => void,
): Map<string, Part[]> {
  const partsById = new Map<string, Part[]>();
  for (const [index, record] of input.body.records.entries()) {
    const fault = recordIdFault(record, input);
    if (fault) {
      onFault?.(index, fault);
      continue;
    }
    const part = { index, record };
    const known = partsById.get(ids[index]!);
    if (known) known.push(part);
    else partsById.set(ids[index]!, [part]);
  }
  return partsById;
}
