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
      if (record.delete) {
        docs.delete(record.id);
        tombstones.add(record.id);
        continue;
      }
      let doc = docs.get(record.id);
      if (!doc) {
        if (!record.upsert) continue;
        doc = {};
        docs.set(record.id, doc);
      }
      for (const op of record.ops) applyOp(doc, op);
    }
  }
  return { docs, tombstones };
}

function applyOp(doc: Doc, op: DecodedOp): void {
  if (op.path !== undefined && op.path !== "") {
    applyAt(doc, op.type, op.path.split("."), op.value);
  } else if ((op.type === "$set" || op.type === "$unset") && isObject(op.value)) {
    for (const [path, value] of Object.entries(op.value)) applyAt(doc, op.type, path.split("."), value);
  }
}

/** An op that does not fit what stands at its path is dropped, and leaves everything as it was. */
function applyAt(doc: Doc, type: DecodedOp["type"], path: string[], operand: Value | undefined): void {
  const before = read(doc, path);
  switch (type) {
    case "$set":
      if (operand !== undefined) write(doc, path, clone(operand));
      return;
    case "$unset":
      remove(doc, path);
      return;
    case "$inc":
      if (typeof operand !== "number") return;
      if (before === undefined) write(doc, path, operand);
      else if (typeof before === "number") write(doc, path, before + operand);
      return;
    case "$addToSet":
      if (operand === undefined) return;
      if (before === undefined) write(doc, path, [clone(operand)]);
      else if (Array.isArray(before) && !before.some((item) => equal(item, operand)))
        write(doc, path, [...before, clone(operand)]);
      return;
    case "$pull":
      if (operand !== undefined && Array.isArray(before))
        write(
          doc,
          path,
          before.filter((item) => !equal(item, operand)),
        );
      return;
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

function clone(value: Value): Value {
  if (Array.isArray(value)) return value.map(clone);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clone(item)]));
  return value;
}

/** Deep equality; members in any order. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => equal(item, b[i]!));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equal(a[key]!, b[key]!));
}
