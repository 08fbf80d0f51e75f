import type { Json } from "../../protocol/json.ts";

/** Adds to an array, and takes from it, by value; each look-up is one of a key, whatever the array's length. */
export interface ElementKeys {
  /** Appends the value unless an equal one is there. */
  add(value: Json): void;
  /** Removes every value equal to it. */
  remove(value: Json): void;
  has(value: Json): boolean;
}

/** Watches over `items`, which nobody else changes from now on. */
export function createElementKeys(items: Json[]): ElementKeys {
  let keys = items.map(keyOf);
  const known = new Set(keys);
  return {
    add(value) {
      const key = keyOf(value);
      if (known.has(key)) return;
      known.add(key);
      keys.push(key);
      items.push(value);
    },
    has: (value) => known.has(keyOf(value)),
    remove(value) {
      const key = keyOf(value);
      if (!known.delete(key)) return;
      let kept = 0;
      for (let i = 0; i < items.length; i++) if (keys[i] !== key) items[kept++] = items[i]!;
      items.length = kept;
      keys = keys.filter((each) => each !== key);
    },
  };
}

/** Equal texts for equal values: the order of an object's keys does not count. */
function keyOf(value: Json): string {
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(keyOf).join()}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${keyOf(value[name]!)}`).join()}}`;
}
