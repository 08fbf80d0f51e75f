/** Plans which indexes answer a window by their keys alone, and at what cost. */
import type { Database } from "bun:sqlite";
import { BOUND } from "../rows/sql-superset.ts";
import { getRow } from "../rows/statement-cache.ts";
import type { SortKey } from "../value/sort.ts";
import { isPlain, type KeyCondition, type KeyWindow } from "./key-window.ts";
import { type Estimate, keyWalk, walked, worthCounting } from "./plan-cost.ts";

interface Request {
  readonly sort: readonly SortKey[];
  /** How many matches have to be found to reach the last one wanted; Infinity means all. */
  readonly window: number;
  /** How many of them, counted from the end, are returned; absent means all. */
  readonly limit?: number;
}

interface Collection {
  readonly indexes: ReadonlyMap<string, number>;
  readonly live: number;
}

interface Choice {
  readonly window: KeyWindow;
  readonly estimate: Estimate;
}

/** A choice, and how many records match at least if the conditions are independent of each other. */
export interface KeyChoice extends Choice {
  readonly matches: number;
}

/** An index that may be walked: the condition it answers itself, and those that other indexes answer. */
interface Walk {
  readonly path: string;
  readonly no: number;
  readonly condition: KeyCondition | undefined;
  readonly members: readonly KeyCondition[];
  /** How many entries meet the condition, counted up to a bound. */
  readonly entries: number;
}

/** A walk in order gives up once it has passed this many times the entries that were estimated. */
export const PATIENCE = 4;

/** Returns the cheapest window; undefined where the keys do not give the order or some condition. */
export function cheapestKeyWindow(
  db: Database,
  conditions: readonly KeyCondition[],
  request: Request,
  collection: Collection,
): KeyChoice | undefined {
  const { live } = collection;
  const bound = worthCounting(request.window, live);
  const least = new Map(conditions.map((each) => [each, countUpTo(db, each, bound)]));
  // A condition whose entries were not counted to the end may match everything.
  const counted = new Map([...least].map(([each, entries]) => [each, entries < bound ? entries : live]));
  const [first, second] = request.sort;
  if (second && first?.path.text !== "id") return undefined;
  const choices =
    first === undefined || first.path.text === "id"
      ? byIdChoices(conditions, counted, request, collection, first?.descending ?? false)
      : byKeyChoices(db, conditions, counted, request, collection, first);
  const [best] = choices.sort((a, b) => a.estimate.costMs - b.estimate.costMs);
  return best && { ...best, matches: shareOf(conditions, least, live) * live };
}

/** By id, any index of the filter may be walked: the entries of one value are already in the order of ids. */
function byIdChoices(
  conditions: readonly KeyCondition[],
  counted: ReadonlyMap<KeyCondition, number>,
  request: Request,
  { live }: Collection,
  descending: boolean,
): Choice[] {
  return conditions.flatMap((condition): Choice[] => {
    const members = conditions.filter((each) => each !== condition);
    if (!members.every(({ isList }) => isList)) return [];
    const walk: Walk = { ...condition, condition, members, entries: counted.get(condition) ?? live };
    const share = shareOf(members, counted, live);
    const isInOrder = condition.isValue;
    const entries = isInOrder ? walked(request.window, share * walk.entries, walk.entries) : walk.entries;
    return [choice(walk, descending ? "idDescending" : "id", isInOrder, entries, request)];
  });
}

function byKeyChoices(
  db: Database,
  conditions: readonly KeyCondition[],
  counted: ReadonlyMap<KeyCondition, number>,
  request: Request,
  { indexes, live }: Collection,
  { path, descending }: SortKey,
): Choice[] {
  const no = indexes.get(path.text);
  const members = conditions.filter((each) => each.path !== path.text);
  if (no === undefined || !members.every(({ isList }) => isList) || !isPlain(db, no)) return [];
  const condition = conditions.find((each) => each.path === path.text);
  const all = condition ? (counted.get(condition) ?? live) : live;
  const walk: Walk = { path: path.text, no, condition, members, entries: all };
  const entries = Math.min(all, walked(request.window, shareOf(members, counted, live) * live, live));
  return [choice(walk, descending ? "keyDescending" : "key", true, entries, request)];
}

/** The share of all records that meet the conditions, if these are independent of each other. */
function shareOf(members: readonly KeyCondition[], counted: ReadonlyMap<KeyCondition, number>, live: number): number {
  return members.reduce((share, member) => (share * (counted.get(member) ?? live)) / Math.max(1, live), 1);
}

function choice(walk: Walk, order: KeyWindow["order"], isInOrder: boolean, entries: number, request: Request): Choice {
  const { path, no, condition, members } = walk;
  const rows = Math.min(request.window, request.limit ?? Number.POSITIVE_INFINITY, walk.entries);
  return {
    window: { path, no, condition: condition?.sql, members, order, isInOrder, giveUpAfter: entries * PATIENCE },
    estimate: keyWalk({ entries, probes: members.length, isSorted: !isInOrder, rows }),
  };
}

function countUpTo(db: Database, { no, sql }: KeyCondition, bound: number): number {
  const inner = `SELECT 1 FROM query_keys WHERE idx = ${BOUND} AND ${sql.text} LIMIT ?+0`;
  const text = `SELECT count(*) AS n FROM (${inner})`;
  return getRow<{ n: number }>(db, { text, params: [no, ...sql.params, bound] })?.n ?? 0;
}
