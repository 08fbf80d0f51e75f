/**
 * The stages at run time. Documents are pushed from one sink to the next; a sink returns whether it wants more, so that a
 * `$limit` ends the reading. Documents are never changed in place, because branches of a `$facet` share them.
 */
import type { Json, JsonObject } from "../../protocol/json.ts";
import { type Evaluate, isTruthy } from "../expression/expression-types.ts";
import { setField, withField } from "../expression/output-field.ts";
import { compileFilter, type Spend } from "../filter/filter-match.ts";
import { type FieldPath, isSubdocument, ownValue } from "../value/field-path.ts";
import { compareEntries, type SortEntry, type SortKey, toSortEntry } from "../value/sort.ts";
import { createTopK } from "../value/top-k.ts";
import type { AggregateLimits, FacetBranch, OutputField, Sink, Stage } from "./aggregate-types.ts";
import { createGroupSink } from "./group-sink.ts";
import { createLookupSink, type FetchById } from "./lookup-sink.ts";
import { charsOf, type MemoryMeter, measureValue } from "./memory-meter.ts";

export interface StageContext {
  readonly limits: AggregateLimits;
  readonly meter: MemoryMeter;
  readonly fetchById: FetchById;
  /** Throws when the run was told to stop. Called where one document can become very many. */
  readonly check: () => void;
  /** Throws when the run may not do so many steps of the matcher. */
  readonly spend: Spend;
  /** Throws when the run was told to stop, or may not let expressions see a document of so many characters. */
  readonly enter: (chars: number) => void;
}

/** The sink that runs `stages` in order and pushes what comes out into `last`. */
export function chainStages(stages: readonly Stage[], last: Sink, context: StageContext): Sink {
  let sink = last;
  for (let i = stages.length - 1; i >= 0; i--) {
    const stage = stages[i] as Stage;
    sink = createStageSink(stage, keptBySort(stages, i), sink, context);
  }
  return sink;
}

/** How many documents of a `$sort` the `$skip` and `$limit` directly after it can let through. */
function keptBySort(stages: readonly Stage[], at: number): number {
  let skipped = 0;
  for (const next of stages.slice(at + 1)) {
    if (next.kind === "limit") return skipped + next.count;
    if (next.kind !== "skip") break;
    skipped += next.count;
  }
  return Number.POSITIVE_INFINITY;
}

function createStageSink(stage: Stage, kept: number, next: Sink, context: StageContext): Sink {
  switch (stage.kind) {
    case "match": {
      const match = compileFilter(stage.filter, context.spend);
      const { conditions } = stage;
      return { push: (doc) => !(match(doc) && allTrue(conditions, doc)) || next.push(doc), end: () => next.end() };
    }
    case "sort":
      return createSortSink(stage.keys, kept, next, context.meter);
    case "skip":
      return createSkipSink(stage.count, next);
    case "limit":
      return createLimitSink(stage.count, next);
    case "count":
      return createCountSink(stage.name, next);
    case "project":
      return createMapSink(next, stage.mayGrow, context, (doc) => projectFields(stage.fields, doc));
    case "addFields":
      return createMapSink(next, stage.mayGrow, context, (doc) => addFields(stage.fields, doc));
    case "unwind":
      return createUnwindSink(stage.path, stage.preserve, next, context.check);
    case "group":
      return createGroupSink(stage.key, stage.fields, next, context);
    case "facet":
      return createFacetSink(stage.branches, next, context);
    case "lookup":
      return createLookupSink(stage.localField, stage.as, next, context.fetchById);
  }
}

function allTrue(conditions: readonly Evaluate[], doc: JsonObject): boolean {
  for (const condition of conditions) if (!isTruthy(condition(doc))) return false;
  return true;
}

interface Sorted {
  readonly doc: JsonObject;
  readonly entry: SortEntry;
  /** The position at which the document arrived; documents with equal keys keep this order. */
  readonly index: number;
  readonly bytes: number;
}

function createSortSink(keys: readonly SortKey[], kept: number, next: Sink, meter: MemoryMeter): Sink {
  const compareKeys = compareEntries(keys);
  const best = createTopK<Sorted>(kept, (a, b) => compareKeys(a.entry, b.entry) || a.index - b.index);
  let index = 0;
  let held = 0;
  return {
    push(doc) {
      const bytes = measureValue(doc);
      // The id is left out: documents inside a pipeline need not have one, and ties keep the order of arrival.
      const entry: SortEntry = { values: toSortEntry(keys, doc).values, id: "" };
      const dropped = best.offer({ doc, entry, index: index++, bytes });
      const change = bytes - (dropped?.bytes ?? 0);
      held += change;
      meter.add(change);
      return kept > 0;
    },
    end() {
      for (const { doc } of best.drain()) if (!next.push(doc)) break;
      meter.release(held);
      next.end();
    },
  };
}

function createSkipSink(count: number, next: Sink): Sink {
  let left = count;
  return {
    push(doc) {
      if (left === 0) return next.push(doc);
      left--;
      return true;
    },
    end: () => next.end(),
  };
}

function createLimitSink(count: number, next: Sink): Sink {
  let left = count;
  return {
    push: (doc) => left > 0 && next.push(doc) && --left > 0,
    end: () => next.end(),
  };
}

function createCountSink(name: string, next: Sink): Sink {
  let count = 0;
  return {
    push() {
      count++;
      return true;
    },
    end() {
      const doc: JsonObject = {};
      setField(doc, name, count);
      next.push(doc);
      next.end();
    },
  };
}

function createMapSink(
  next: Sink,
  mayGrow: boolean,
  { enter }: StageContext,
  map: (doc: JsonObject) => JsonObject,
): Sink {
  return {
    push(doc) {
      const mapped = map(doc);
      if (mayGrow) enter(charsOf(mapped));
      return next.push(mapped);
    },
    end: () => next.end(),
  };
}

function projectFields(fields: readonly OutputField[], doc: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const { name, evaluate } of fields) {
    const value = evaluate(doc);
    if (value !== undefined) setField(result, name, value);
  }
  return result;
}

/** Every field is computed from the document as it came in; a missing value removes the field. */
function addFields(fields: readonly OutputField[], doc: JsonObject): JsonObject {
  const result: JsonObject = { ...doc };
  for (const { name, evaluate } of fields) {
    const value = evaluate(doc);
    if (value === undefined) delete result[name];
    else setField(result, name, value);
  }
  return result;
}

const ELEMENTS_BETWEEN_CHECKS = 32;

function createUnwindSink({ segments }: FieldPath, preserve: boolean, next: Sink, check: () => void): Sink {
  let elements = 0;
  return {
    push(doc) {
      const value = valueAt(doc, segments);
      if (Array.isArray(value)) {
        if (value.length === 0) return !preserve || next.push(replaceAt(doc, segments, undefined));
        for (const element of value) {
          if (++elements % ELEMENTS_BETWEEN_CHECKS === 0) check();
          if (!next.push(replaceAt(doc, segments, element))) return false;
        }
        return true;
      }
      return (value === undefined || value === null) && !preserve ? true : next.push(doc);
    },
    end: () => next.end(),
  };
}

/** Returns the value at a path that leads through objects only. */
function valueAt(doc: JsonObject, segments: readonly string[]): Json | undefined {
  let value: Json | undefined = doc;
  for (const segment of segments) {
    if (!isSubdocument(value)) return undefined;
    value = ownValue(value, segment);
  }
  return value;
}

/** Copies the objects along the path and replaces or removes the value at its end. The path must exist. */
function replaceAt(doc: JsonObject, segments: readonly string[], value: Json | undefined): JsonObject {
  const [first = "", ...rest] = segments;
  if (rest.length === 0) return withField(doc, first, value);
  return withField(doc, first, replaceAt(ownValue(doc, first) as JsonObject, rest, value));
}

function createFacetSink(branches: readonly FacetBranch[], next: Sink, context: StageContext): Sink {
  const results = branches.map(({ name, stages }) => {
    const docs: JsonObject[] = [];
    const sink = chainStages(stages, createCollectSink(docs, context.meter), context);
    return { name, docs, sink, open: true };
  });
  return {
    push(doc) {
      let open = false;
      for (const result of results) {
        if (result.open) result.open = result.sink.push(doc);
        open ||= result.open;
      }
      return open;
    },
    end() {
      const doc: JsonObject = {};
      for (const { name, docs, sink } of results) {
        sink.end();
        setField(doc, name, docs);
      }
      next.push(doc);
      next.end();
    },
  };
}

function createCollectSink(docs: JsonObject[], meter: MemoryMeter): Sink {
  return {
    push(doc) {
      meter.add(measureValue(doc));
      docs.push(doc);
      return true;
    },
    end() {},
  };
}

/** Creates the last sink: it stores documents as JSON texts, which count against the memory limit. */
export function createTextSink(records: string[], meter: MemoryMeter): Sink {
  return {
    push(doc) {
      pushText(records, JSON.stringify(doc), meter);
      return true;
    },
    end() {},
  };
}

export function pushText(records: string[], text: string, meter: MemoryMeter): void {
  meter.add(2 * text.length);
  records.push(text);
}
