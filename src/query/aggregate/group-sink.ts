/** $group: one hash table of groups in the order of their first document (AGG-3). */
import { refusedAs } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { Expression } from "../expression/expression-types.ts";
import { setField } from "../expression/output-field.ts";
import { valueKey } from "../value/value-key.ts";
import { type Accumulator, createAccumulator } from "./accumulators.ts";
import type { AggregateLimits, GroupField, Sink } from "./aggregate-types.ts";
import { type MemoryMeter, measureValue } from "./memory-meter.ts";

interface Group {
  readonly id: Json;
  readonly accumulators: readonly Accumulator[];
}

const GROUP_BYTES = 160;
const ACCUMULATOR_BYTES = 80;

export function createGroupSink(
  key: Expression,
  fields: readonly GroupField[],
  next: Sink,
  { limits, meter }: { readonly limits: AggregateLimits; readonly meter: MemoryMeter },
): Sink {
  const groupByKey = new Map<string, Group>();
  const bounds = { meter, arrayLimit: limits.accumArrayLimit };
  const openGroup = (id: Json, bytes: number): Group => {
    checkGroupLimit(groupByKey.size + 1, limits.groupLimit);
    meter.add(GROUP_BYTES + 2 * bytes + fields.length * ACCUMULATOR_BYTES);
    return { id, accumulators: fields.map(({ accumulator }) => createAccumulator(accumulator, bounds)) };
  };
  return {
    push(doc) {
      // A missing key is null.
      const id = key.evaluate(doc) ?? null;
      const bytes = measureValue(id);
      const text = valueKey(id);
      let group = groupByKey.get(text);
      if (!group) {
        group = openGroup(id, bytes);
        groupByKey.set(text, group);
      }
      for (let i = 0; i < fields.length; i++)
        (group.accumulators[i] as Accumulator).add((fields[i] as GroupField).operand.evaluate(doc));
      return true;
    },
    end() {
      for (const { id, accumulators } of groupByKey.values()) {
        const doc: JsonObject = { id };
        fields.forEach(({ name }, i) => {
          setField(doc, name, (accumulators[i] as Accumulator).result());
        });
        if (!next.push(doc)) break;
      }
      next.end();
    },
  };
}

/** @throws SvcError aggregate.limit_exceeded with limit "group" */
export function checkGroupLimit(groups: number, limit: number): void {
  if (limit >= 0 && groups > limit)
    throw refusedAs("aggregate.limit_exceeded", { limit: "group" }, refusal("memory.groups", { limit }));
}
