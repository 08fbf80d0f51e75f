/** A parsed pipeline (AGG-1). */
import type { JsonObject } from "../../protocol/json.ts";
import type { Evaluate, Expression } from "../expression/expression-types.ts";
import type { Filter } from "../filter/filter-types.ts";
import type { FieldPath } from "../value/field-path.ts";
import type { SortKey } from "../value/sort.ts";
import type { AccumulatorName } from "./accumulators.ts";

export interface OutputField {
  readonly name: string;
  readonly evaluate: Evaluate;
}

export interface GroupField {
  readonly name: string;
  readonly accumulator: AccumulatorName;
  readonly operand: Expression;
}

export type StageAction =
  /** A filter, and the `$expr` conditions beside it. */
  | { readonly kind: "match"; readonly filter: Filter; readonly conditions: readonly Evaluate[] }
  | { readonly kind: "sort"; readonly keys: readonly SortKey[] }
  | { readonly kind: "skip"; readonly count: number }
  | { readonly kind: "limit"; readonly count: number }
  | { readonly kind: "count"; readonly name: string }
  /** `mayGrow`: its documents can be much larger than those that come in, so each one is measured. */
  | { readonly kind: "project"; readonly fields: readonly OutputField[]; readonly mayGrow: boolean }
  | { readonly kind: "addFields"; readonly fields: readonly OutputField[]; readonly mayGrow: boolean }
  | { readonly kind: "unwind"; readonly path: FieldPath; readonly preserve: boolean }
  | { readonly kind: "group"; readonly key: Expression; readonly fields: readonly GroupField[] }
  | { readonly kind: "facet"; readonly branches: readonly FacetBranch[] }
  | { readonly kind: "lookup"; readonly localField: string; readonly as: string };

export interface FacetBranch {
  readonly name: string;
  readonly stages: readonly Stage[];
}

export type Stage = StageAction & {
  /** The stage as it was written, shortened, for explain. */
  readonly text: string;
};

export interface Pipeline {
  readonly stages: readonly Stage[];
  /** How many expressions its stages hold. */
  readonly expressions: number;
}

export interface AggregateLimits {
  /** Groups of one $group. Negative is unlimited, as for the others. */
  readonly groupLimit: number;
  /** Entries of one $push or $addToSet array. */
  readonly accumArrayLimit: number;
  /** Estimated bytes that sorting, grouping, facets and the result hold together. */
  readonly memoryLimitBytes: number;
}

export interface Sink {
  /** Takes a document. Returns false when further documents would change nothing. */
  push(doc: JsonObject): boolean;
  /** Called once, after the last document. */
  end(): void;
}
