/** The accumulators of $group (AGG-3). */
import { refusedAs } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import { finite } from "../expression/expression-types.ts";
import { valueKey } from "../value/value-key.ts";
import { compareValues } from "../value/value-order.ts";
import { type MemoryMeter, measureValue } from "./memory-meter.ts";

export const ACCUMULATOR_NAMES = [
  ...(["$sum", "$avg", "$min", "$max", "$count"] as const),
  ...(["$first", "$last", "$push", "$addToSet"] as const),
];
export type AccumulatorName = (typeof ACCUMULATOR_NAMES)[number];

export interface Accumulator {
  add(value: Json | undefined): void;
  result(): Json;
}

export interface AccumulatorBounds {
  readonly meter: MemoryMeter;
  /** Entries of one array; negative is unlimited. */
  readonly arrayLimit: number;
}

/** A fresh accumulator for one group. */
export function createAccumulator(name: AccumulatorName, bounds: AccumulatorBounds): Accumulator {
  switch (name) {
    case "$sum":
      return createSum();
    case "$avg":
      return createAverage();
    case "$min":
      return createExtreme(-1);
    case "$max":
      return createExtreme(1);
    case "$count":
      return createCount();
    case "$first":
      return createFirst();
    case "$last":
      return createLast();
    case "$push":
      return createPush(bounds);
    case "$addToSet":
      return createAddToSet(bounds);
  }
}

/** Numbers only, added in the order they come; 0 without any. */
function createSum(): Accumulator {
  let sum = 0;
  return {
    add(value) {
      if (typeof value === "number") sum += value;
    },
    result: () => finite(sum),
  };
}

function createAverage(): Accumulator {
  let sum = 0;
  let count = 0;
  return {
    add(value) {
      if (typeof value !== "number") return;
      sum += value;
      count++;
    },
    result: () => (count === 0 ? null : finite(sum / count)),
  };
}

/** The least (-1) or greatest (1) value of the value order; null and missing do not count. */
function createExtreme(sign: -1 | 1): Accumulator {
  let best: Json = null;
  return {
    add(value) {
      if (value === undefined || value === null) return;
      if (best === null || compareValues(value, best) * sign > 0) best = value;
    },
    result: () => best,
  };
}

function createCount(): Accumulator {
  let count = 0;
  return {
    add: () => {
      count++;
    },
    result: () => count,
  };
}

function createFirst(): Accumulator {
  let first: Json | undefined;
  let seen = false;
  return {
    add(value) {
      if (!seen) first = value;
      seen = true;
    },
    result: () => first ?? null,
  };
}

function createLast(): Accumulator {
  let last: Json | undefined;
  return {
    add(value) {
      last = value;
    },
    result: () => last ?? null,
  };
}

/** Skips missing, keeps null. */
function createPush({ meter, arrayLimit }: AccumulatorBounds): Accumulator {
  const values: Json[] = [];
  return {
    add(value) {
      if (value === undefined) return;
      checkArrayLimit(values.length + 1, arrayLimit);
      meter.add(measureValue(value));
      values.push(value);
    },
    result: () => values,
  };
}

/** Different values in the order of their first appearance. */
function createAddToSet({ meter, arrayLimit }: AccumulatorBounds): Accumulator {
  const valueByKey = new Map<string, Json>();
  return {
    add(value) {
      if (value === undefined) return;
      const bytes = measureValue(value);
      const key = valueKey(value);
      if (valueByKey.has(key)) return;
      checkArrayLimit(valueByKey.size + 1, arrayLimit);
      meter.add(bytes + 2 * key.length);
      valueByKey.set(key, value);
    },
    result: () => [...valueByKey.values()],
  };
}

function checkArrayLimit(length: number, limit: number): void {
  if (limit >= 0 && length > limit)
    throw refusedAs("aggregate.limit_exceeded", { limit: "accumArray" }, refusal("memory.array", { limit }));
}
