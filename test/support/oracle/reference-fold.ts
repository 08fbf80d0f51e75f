/**
 * The slow, obvious fold that the engine's rows are compared with. It imports nothing: given the set of decoded
 * changes of one dataset of one object it replays, in the order (lamport, id), every op of every change that counts,
 * with the plain meaning of the op, from nothing, every time. No versions, no shortcuts, no incremental state.
 *
 * The dataset is one with caller-supplied record ids, whose fields anybody may change.
 */

export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };
export type Doc = { [key: string]: Value };

interface DecodedOp {
  type: "$set" | "$unset" | "$inc" | "$addToSet" | "$pull";
  /** Dotted; absent or empty means the keys of `value` are the paths. */
  path?: string;
  value?: Value;
}
interface DecodedRecord {
  id: string;
  upsert?: boolean;
  /** A deletion carries no ops. */
  delete?: boolean;
  ops: DecodedOp[];
}
export interface DecodedChange {
  /** Text form of the change id. */
  id: string;
  lamport: number;
  author: string;
  /** Unix milliseconds, as the author said. */
  time: number;
  records: DecodedRecord[];
  /** Whether it counts: its author had the right at the ACL position it names, and nothing cut it off since. */
  counts: boolean;
}

export interface FoldedState {
  /** Live records by id. */
  docs: Map<string, Doc>;
  tombstones: Set<string>;
}

/** Replays the changes that count, in (lamport, id) order. The input order does not matter; duplicates do not either. */
export function referenceFold(changes: Iterable<DecodedChange>): FoldedState {
  const byId = new Map<string, DecodedChange>();
  for (const change of changes) byId.set(change.id, change);
  const ordered = [...byId.values()].sort((a, b) => a.lamport - b.lamport || (a.id < b.id ? -1 : 1));
  const docs = new Map<string, Doc>();
  const tombstones = new Set<string>();
  for (const change of ordered) {
    if (!change.counts) continue;
    for (const record of change.records) {
      if (tombstones.has(record.id)) continue; // sticky: nothing after a deletion takes effect
      if (!record.id.isWellFormed()) continue; // no id at all
      if (record.delete) {
        docs.delete(record.id);
        tombstones.add(record.id);
        continue;
      }
      const known = docs.get(record.id);
      if (!known && !record.upsert) continue;
      const doc = known ?? {};
      let isWhole = true;
      for (const op of record.ops) if (!applyOp(doc, op)) isWhole = false;
      if (isWhole) docs.set(record.id, doc); // a create is all or nothing
    }
  }
  return { docs, tombstones };
}

/** Answers whether all of it was applied. */
function applyOp(doc: Doc, op: DecodedOp): boolean {
  const value = op.value === undefined ? undefined : asStored(op.value);
  if (op.path !== undefined && op.path !== "") return applyAt(doc, op.type, op.path.split("."), value);
  if ((op.type !== "$set" && op.type !== "$unset") || !isObject(value)) return false;
  const applied = Object.entries(value).map(([path, part]) => applyAt(doc, op.type, path.split("."), part));
  return applied.every((each) => each);
}

/** An op that does not fit what stands at its path is dropped (false), and leaves everything as it was. */
function applyAt(doc: Doc, type: DecodedOp["type"], path: string[], operand: Value | undefined): boolean {
  const before = read(doc, path);
  if (type === "$unset") {
    remove(doc, path);
    return true;
  }
  if (operand === undefined) return false;
  switch (type) {
    case "$set":
      write(doc, path, operand);
      return true;
    case "$inc":
      if (typeof operand !== "number" || (before !== undefined && typeof before !== "number")) return false;
      write(doc, path, (before ?? 0) + operand);
      return true;
    case "$addToSet":
      if (before !== undefined && !Array.isArray(before)) return false;
      if (!before?.some((item) => equal(item, operand))) write(doc, path, [...(before ?? []), operand]);
      return true;
    case "$pull":
      if (before === undefined) return true;
      if (!Array.isArray(before)) return false;
      write(
        doc,
        path,
        before.filter((item) => !equal(item, operand)),
      );
      return true;
  }
}

function read(doc: Doc, path: string[]): Value | undefined {
  let current: Value | undefined = doc;
  for (const segment of path) {
    if (!isObject(current) || !Object.hasOwn(current, segment)) return undefined;
    current = current[segment];
  }
  return current;
}

/** Makes the objects that lie between. The histories under test never set a path through a value that is no object. */
function write(doc: Doc, path: string[], value: Value): void {
  let holder: Doc = doc;
  for (const segment of path.slice(0, -1)) {
    const next = Object.hasOwn(holder, segment) ? holder[segment] : undefined;
    if (isObject(next)) holder = next;
    else {
      const made: Doc = {};
      holder[segment] = made;
      holder = made;
    }
  }
  holder[path.at(-1)!] = value;
}

function remove(doc: Doc, path: string[]): void {
  const holder = read(doc, path.slice(0, -1));
  if (isObject(holder)) delete holder[path.at(-1)!];
}

function isObject(value: Value | undefined): value is Doc {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** A copy in the form that a value has once it was stored: there is one zero, and text is well-formed. */
function asStored(value: Value): Value {
  if (Array.isArray(value)) return value.map(asStored);
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), asStored(item)]));
  if (typeof value === "string") return value.toWellFormed();
  return value === 0 ? 0 : value;
}

/** Deep equality; members in any order. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => equal(item, b[i]!));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equal(a[key]!, b[key]!));
}
