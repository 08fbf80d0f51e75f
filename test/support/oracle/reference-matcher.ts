/**
 * The filter language and the sort order once more, written as plainly as possible from MongoDB's rules and sharing no
 * code with the product: values are listed first and tested after, nothing is compiled, nothing is fast.
 */
// biome-ignore lint/suspicious/noExplicitAny: raw JSON of any shape is what a reference over JSON handles.
type Any = any;

const MISSING = Symbol("missing");
type Found = Any | typeof MISSING;

const isArray = Array.isArray;
const isPlain = (v: Found): boolean => typeof v === "object" && v !== null && !isArray(v) && dateOf(v) === null;
const own = (o: object, k: string): Found => (Object.hasOwn(o, k) ? (o as Any)[k] : MISSING);

/** Unix ms of a date, else null. */
export function dateOf(v: Found): number | null {
  if (typeof v !== "object" || v === null || isArray(v)) return null;
  if (Object.keys(v).length !== 1 || own(v, "$date") === MISSING) return null;
  const inner = v.$date;
  const inRange = (ms: number) =>
    ms >= Date.parse("0000-01-01T00:00:00Z") && ms <= Date.parse("9999-12-31T23:59:59.999Z");
  if (typeof inner === "number") return Number.isInteger(inner) && inRange(inner) ? inner : null;
  if (typeof inner !== "string") return null;
  const m = /^(\d\d\d\d-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.exec(inner);
  if (!m) return null;
  const [, day, time, fraction = ".0", zone = "Z"] = m;
  const wall = Date.parse(`${day}T${time}${fraction.padEnd(4, "0").slice(0, 4)}Z`);
  if (Number.isNaN(wall) || new Date(wall).toISOString().slice(0, 19) !== `${day}T${time}`) return null;
  const z = /^([+-])(\d\d):(\d\d)$/.exec(zone);
  if (z && (Number(z[2]) > 23 || Number(z[3]) > 59)) return null;
  const shift = z ? (z[1] === "-" ? -1 : 1) * (Number(z[2]) * 60 + Number(z[3])) * 60_000 : 0;
  return inRange(wall - shift) ? wall - shift : null;
}

const RANK = ["null", "number", "string", "object", "array", "bool", "date"];
function kind(v: Found): string {
  if (v === MISSING || v === null || v === undefined) return "null";
  if (typeof v === "boolean") return "bool";
  if (typeof v !== "object") return typeof v;
  if (isArray(v)) return "array";
  return dateOf(v) === null ? "object" : "date";
}

function codePoints(a: string, b: string): number {
  const x = [...a].map((c) => c.codePointAt(0) as number);
  const y = [...b].map((c) => c.codePointAt(0) as number);
  for (let i = 0; i < x.length && i < y.length; i++) if (x[i] !== y[i]) return (x[i] as number) - (y[i] as number);
  return x.length - y.length;
}

export function referenceCompare(a: Found, b: Found): number {
  const k = kind(a);
  const byRank = RANK.indexOf(k) - RANK.indexOf(kind(b));
  if (byRank !== 0) return byRank;
  if (k === "number") return a === b ? 0 : a < b ? -1 : 1;
  if (k === "string") return codePoints(a, b);
  if (k === "bool") return Number(a) - Number(b);
  if (k === "date") return (dateOf(a) as number) - (dateOf(b) as number);
  if (k === "array") {
    for (let i = 0; i < Math.min(a.length, b.length); i++) {
      const c = referenceCompare(a[i], b[i]);
      if (c !== 0) return c;
    }
    return a.length - b.length;
  }
  if (k === "object") {
    const x = Object.entries(a);
    const y = Object.entries(b);
    for (let i = 0; i < Math.min(x.length, y.length); i++) {
      const [ka, va] = x[i] as [string, Any];
      const [kb, vb] = y[i] as [string, Any];
      const c = RANK.indexOf(kind(va)) - RANK.indexOf(kind(vb)) || codePoints(ka, kb) || referenceCompare(va, vb);
      if (c !== 0) return c;
    }
    return x.length - y.length;
  }
  return 0;
}

/** What the path leads to. `root` documents are read by key even when they are arrays (inside $elemMatch). */
function reach(v: Found, path: string[], root = false): { value: Found; expand: boolean }[] {
  const [head, ...rest] = path;
  if (head === undefined) return [{ value: v, expand: true }];
  if (isArray(v)) {
    const index = String(Number(head)) === head && Number(head) >= 0 ? Number(head) : -1;
    const hit = Number.isInteger(index) && index >= 0 && index < v.length;
    if (root) return reach(hit ? v[index] : MISSING, rest);
    return v.flatMap((element, i) => {
      const through = isPlain(element) ? reach(element, path) : [];
      if (!hit || i !== index) return through;
      // An element picked by its index is itself the value; a further path goes on only into objects and arrays.
      if (rest.length === 0) return [...through, { value: element, expand: false }];
      return isPlain(element) || isArray(element) ? [...through, ...reach(element, rest)] : through;
    });
  }
  return isPlain(v) ? reach(own(v, head), rest) : [{ value: MISSING, expand: true }];
}

const TYPES: Record<string, (v: Found) => boolean> = {
  null: (v) => v === null,
  number: (v) => typeof v === "number",
  int: (v) => Number.isSafeInteger(v),
  double: (v) => typeof v === "number" && !Number.isSafeInteger(v),
  string: (v) => typeof v === "string",
  bool: (v) => typeof v === "boolean",
  array: isArray,
  object: (v) => v !== MISSING && kind(v) === "object",
  date: (v) => v !== MISSING && kind(v) === "date",
};

/** One operator against one candidate value. */
function test(v: Found, op: string, x: Any, all: Any): boolean {
  const same = kind(v) === kind(x);
  const order = same ? referenceCompare(v, x) : 0;
  switch (op) {
    case "$eq":
      return same && order === 0;
    case "$gt":
      return same && order > 0;
    case "$gte":
      return same && order >= 0;
    case "$lt":
      return same && order < 0;
    case "$lte":
      return same && order <= 0;
    case "$in":
      return x.some((y: Any) => test(v, "$eq", y, all));
    case "$exists":
      return v !== MISSING;
    case "$size":
      return isArray(v) && v.length === x;
    case "$type":
      return (isArray(x) ? x : [x]).some((t: string) => (TYPES[t] as (v: Found) => boolean)(v));
    case "$mod":
      return typeof v === "number" && Math.abs(v) < 2 ** 63 && Math.trunc(v) % x[0] === x[1];
    case "$regex":
      return typeof v === "string" && new RegExp(x, `u${all.$options ?? ""}`).test(v);
    case "$elemMatch": {
      if (!isArray(v)) return false;
      const first = Object.keys(x)[0] ?? "";
      if (first.startsWith("$") && !["$and", "$or", "$nor"].includes(first)) return v.some((e) => conditions([], e, x));
      return v.some((e) => (isArray(e) || isPlain(e)) && referenceMatch(e, x));
    }
  }
  throw new Error(`the reference knows no ${op}`);
}

const WHOLE = ["$exists", "$size", "$elemMatch"];

function conditions(path: string[], doc: Any, ops: Any): boolean {
  const candidates = (op: string): Found[] => {
    const reached = path.length === 0 ? [{ value: doc, expand: false }] : reach(doc, path, true);
    return reached.flatMap(({ value, expand }) =>
      expand && isArray(value) && !WHOLE.includes(op) ? [...value, value] : [value],
    );
  };
  const holds = (op: string, x: Any): boolean => candidates(op).some((v) => test(v, op, x, ops));
  return Object.entries<Any>(ops).every(([op, x]) => {
    if (op === "$options") return true;
    if (op === "$ne") return !holds("$eq", x);
    if (op === "$nin") return !holds("$in", x);
    if (op === "$exists") return holds("$exists", x) === (x === true || x === 1);
    if (op === "$not") return !conditions(path, doc, x);
    if (op === "$all")
      return (
        x.length > 0 &&
        x.every((y: Any) => (y && own(y, "$elemMatch") !== MISSING ? conditions(path, doc, y) : holds("$eq", y)))
      );
    return holds(op, x);
  });
}

/** Whether a document matches a filter given as raw, valid JSON. */
export function referenceMatch(doc: Any, filter: Any): boolean {
  return Object.entries<Any>(filter ?? {}).every(([key, condition]) => {
    if (key === "$and") return condition.every((f: Any) => referenceMatch(doc, f));
    if (key === "$or") return condition.some((f: Any) => referenceMatch(doc, f));
    if (key === "$nor") return !condition.some((f: Any) => referenceMatch(doc, f));
    const operators = kind(condition) === "object" && Object.keys(condition).some((k) => k.startsWith("$"));
    return conditions(key.split("."), doc, operators ? condition : { $eq: condition });
  });
}

const EMPTY = Symbol("empty array");

function sortValues(v: Found, path: string[]): Found[] {
  const [head, ...rest] = path;
  if (head === undefined) return isArray(v) ? (v.length === 0 ? [EMPTY] : v) : [v];
  if (isArray(v)) {
    if (/^(0|[1-9]\d*)$/.test(head) && Number(head) < v.length) return sortValues(v[Number(head)], rest);
    if (v.length === 0) return [MISSING];
    return v.flatMap((e) => sortValues(isArray(e) ? MISSING : e, path));
  }
  return sortValues(isPlain(v) ? own(v, head) : MISSING, rest);
}

/** Sorted copies of the documents by `["a", "-b.c"]`, ids last. */
export function referenceSort(docs: Any[], sort: string[]): Any[] {
  const compare = (a: Found, b: Found) =>
    a === EMPTY || b === EMPTY ? Number(b === EMPTY) - Number(a === EMPTY) : referenceCompare(a, b);
  const key = (doc: Any, path: string, sign: number) =>
    sortValues(doc, path.split(".")).reduce((best, v) => (compare(v, best) * sign < 0 ? v : best));
  return [...docs].sort((a, b) => {
    for (const entry of sort) {
      const sign = entry.startsWith("-") ? -1 : 1;
      const path = sign < 0 ? entry.slice(1) : entry;
      const order = compare(key(a, path, sign), key(b, path, sign)) * sign;
      if (order !== 0) return order;
    }
    return codePoints(a.id, b.id);
  });
}
