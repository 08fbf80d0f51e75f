import type { Effect } from "../../change/fold/apply-op.ts";
import type { TouchedRecord } from "../../change/fold/commit-batch.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { mergeEffects } from "./merge-effects.ts";

/** How many characters of a part's text are neither id, doc nor ops. */
const PART_CHARS = '{"id":"","doc":,"ops":[]}'.length;

/** The texts of ops, made once: many windows keep the same ones for readers that are slow. */
const effectTexts = new WeakMap<Effect, string>();

function textOfEffect(effect: Effect): string {
  const known = effectTexts.get(effect);
  if (known !== undefined) return known;
  const text = JSON.stringify(effect);
  effectTexts.set(effect, text);
  return text;
}

/** `{id, doc, ops}` of an added or updated record. Its text is made once, for all who send it. */
export class RecordPart {
  readonly id: string;
  readonly doc: string;
  readonly effects: readonly Effect[];
  #text: string | undefined;

  constructor(id: string, doc: string, effects: readonly Effect[]) {
    this.id = id;
    this.doc = doc;
    this.effects = effects;
  }

  get text(): string {
    if (this.#text === undefined) {
      const ops = this.effects.length === 0 ? "" : `,"ops":[${this.effects.map(textOfEffect).join(",")}]`;
      this.#text = `{"id":${JSON.stringify(this.id)},"doc":${this.doc}${ops}}`;
    }
    return this.#text;
  }

  /** About how many characters `text` has; it need not be made to know. */
  get chars(): number {
    if (this.#text !== undefined) return this.#text.length;
    let chars = this.id.length + this.doc.length + PART_CHARS;
    for (const effect of this.effects) chars += textOfEffect(effect).length + 1;
    return chars;
  }
}

/** What one commit did to one record, all its writes together. Parsed and encoded at most once. */
export class LiveRecord {
  readonly id: string;
  /** The stored text before the commit, or null when the record was not live. */
  readonly before: string | null;
  #doc: string | null;
  #versionId: string;
  #effects: readonly Effect[];
  #parsedBefore: JsonObject | undefined;
  #parsed: JsonObject | undefined;
  #part: RecordPart | undefined;

  constructor(first: TouchedRecord) {
    this.id = first.recordId;
    this.before = first.before;
    this.#doc = first.doc;
    this.#versionId = first.versionId;
    this.#effects = first.effects;
  }

  /** Adds a later write of the same commit. Must be called before anything is read. */
  merge(later: TouchedRecord): void {
    this.#effects = this.#doc === null ? later.effects : mergeEffects(this.#effects, later.effects);
    this.#doc = later.doc;
    this.#versionId = later.versionId;
  }

  /** The stored text after the commit, or null when the record is not live. */
  get doc(): string | null {
    return this.#doc;
  }

  /** The version of the last write. */
  get versionId(): string {
    return this.#versionId;
  }

  get parsedBefore(): JsonObject | undefined {
    if (this.before === null) return undefined;
    this.#parsedBefore ??= JSON.parse(this.before) as JsonObject;
    return this.#parsedBefore;
  }

  get parsed(): JsonObject | undefined {
    if (this.#doc === null) return undefined;
    this.#parsed ??= JSON.parse(this.#doc) as JsonObject;
    return this.#parsed;
  }

  /** Only of a live record. */
  get part(): RecordPart {
    this.#part ??= new RecordPart(this.id, this.#doc ?? "null", this.#effects);
    return this.#part;
  }
}

/**
 * Groups the touched records of a commit by collection, each once, in the order of their last writes. `collectionOf` returns the
 * collections that are wanted.
 */
export function groupTouched<C>(
  touched: readonly TouchedRecord[],
  collectionOf: (touched: TouchedRecord) => C | undefined,
): Map<C, Map<string, LiveRecord>> {
  const byCollection = new Map<C, Map<string, LiveRecord>>();
  for (const one of touched) {
    const collection = collectionOf(one);
    if (collection === undefined) continue;
    let records = byCollection.get(collection);
    if (!records) {
      records = new Map();
      byCollection.set(collection, records);
    }
    const known = records.get(one.recordId);
    if (known) {
      known.merge(one);
      records.delete(one.recordId);
      records.set(one.recordId, known);
    } else records.set(one.recordId, new LiveRecord(one));
  }
  return byCollection;
}
