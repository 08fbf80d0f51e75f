import type { JsonObject } from "../../protocol/json.ts";
import { compareEntries, type SortEntry, type SortKey, toSortEntry } from "../../query/value/sort.ts";
import type { LiveRecord } from "./live-record.ts";

/** How a record's text begins, nearly always. */
const ID_FIRST = /^\{"id":("(?:[^"\\]|\\.)*")/;

function idOf(text: string): unknown {
  const id = ID_FIRST.exec(text)?.[1];
  return id === undefined ? (JSON.parse(text) as JsonObject)["id"] : JSON.parse(id);
}

/**
 * Brings what a reader has read up to date: `texts` are the records that matched at some moment since it began, in the order of
 * `sort`, and `touched` is what commits have done to records since then, in their last states. It does not matter which commit
 * the reader saw, because untouched records are the same in all of them.
 * @throws what `matches` throws
 */
export function withTouched(
  texts: readonly string[],
  touched: ReadonlyMap<string, LiveRecord>,
  sort: readonly SortKey[],
  matches: (record: LiveRecord) => boolean,
): readonly string[] {
  if (touched.size === 0) return texts;
  const untouched = texts.filter((text) => !touched.has(idOf(text) as string));
  const compare = compareEntries(sort);
  const entryOf = (text: string): SortEntry => toSortEntry(sort, JSON.parse(text) as JsonObject);
  const news = [...touched.values()].flatMap((record) => {
    const { doc } = record;
    return doc !== null && matches(record) ? [{ doc, entry: entryOf(doc) }] : [];
  });
  news.sort((a, b) => compare(a.entry, b.entry));
  const merged: string[] = [];
  let from = 0;
  for (const { doc, entry } of news) {
    let [low, high] = [from, untouched.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(entryOf(untouched[middle] as string), entry) < 0) low = middle + 1;
      else high = middle;
    }
    for (; from < low; from++) merged.push(untouched[from] as string);
    merged.push(doc);
  }
  for (; from < untouched.length; from++) merged.push(untouched[from] as string);
  return merged;
}
