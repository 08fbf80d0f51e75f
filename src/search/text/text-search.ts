/** Finds what a request asks for in one space's index; the process that owns the index runs this. */

import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { filterToken, type IndexStore, sampleToken, type UnitScope } from "../../store/search/index-store.ts";
import type { UnitFilter } from "../../store/search/vector-table.ts";
import { allOf, anyOf, filterExpression, termExpression, without } from "./match-expression.ts";
import { queryTerms, strictTerm, type Term } from "./query-terms.ts";

/** A request with more terms is a text rather than a query. */
const MAX_TERMS = 256;
/** Tokens of all its phrases together; words by themselves are not counted. */
const MAX_PHRASE_TOKENS = 1_024;
/** How many texts are scored by their words for one search; only words that most texts have exceed it. */
const MOST_WEIGHED = 5_000;

export interface SearchFilter extends UnitScope {
  readonly require?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
}

export interface ParsedSearch {
  readonly terms: readonly Term[];
  readonly required: readonly Term[];
  /** Whether there is a required term that no text can have. */
  readonly impossible: boolean;
  /** For each excluded term, the expression of what must not be found. */
  readonly excluded: readonly string[];
  /** For each filter, the expression of where a result may be. */
  readonly filters: readonly string[];
  readonly filter: SearchFilter;
}

export function parseSearch(query: string, filter: SearchFilter): ParsedSearch {
  const terms = queryTerms(query);
  const required = (filter.require ?? []).map(strictTerm);
  const excluded = (filter.exclude ?? []).map(strictTerm);
  if (terms.length + required.length + excluded.length > MAX_TERMS)
    throw refusedAs("search.too_complex", { limit: MAX_TERMS }, refusal("search.terms", { limit: MAX_TERMS }));
  const all = [...terms, ...required, ...excluded].flatMap((term) => term ?? []);
  const adjacent = all.reduce((sum, { tokens }) => sum + (tokens.length > 1 ? tokens.length : 0), 0);
  if (adjacent > MAX_PHRASE_TOKENS)
    throw refusedAs(
      "search.too_complex",
      { limit: MAX_PHRASE_TOKENS },
      refusal("search.phrase_words", { limit: MAX_PHRASE_TOKENS }),
    );
  const filters: string[] = [];
  if (filter.scopes && filter.scopes.length > 0)
    filters.push(filterExpression([...new Set(filter.scopes)].map((scope) => filterToken("scope", scope))));
  if (filter.objectId) filters.push(filterExpression([filterToken("object", filter.objectId)]));
  if (filter.dataset) filters.push(filterExpression([filterToken("dataset", filter.dataset)]));
  return {
    terms,
    required: required.filter((term) => term !== undefined),
    impossible: required.includes(undefined),
    excluded: excluded.flatMap((term) => (term ? [termExpression(term)] : [])),
    filters,
    filter,
  };
}

/** Returns the best matches by their words, best first. */
export function searchText(store: IndexStore, parsed: ParsedSearch, limit: number): { id: number; score: number }[] {
  if (parsed.impossible) return [];
  const expressionOf = (words: readonly string[]): string =>
    without(allOf([...words, ...parsed.required.map(termExpression), ...parsed.filters]), parsed.excluded);
  if (parsed.terms.length === 0) return parsed.required.length > 0 ? store.match(expressionOf([]), limit) : [];
  const met = parsed.terms
    .map(termExpression)
    .map((term) => ({ term, texts: store.countMatches(expressionOf([term]), MOST_WEIGHED + 1) }))
    .filter(({ texts }) => texts > 0)
    .sort((a, b) => a.texts - b.texts);
  let weighed = 0;
  const distinctive = met.flatMap(({ term, texts }) => {
    weighed += texts;
    return weighed <= MOST_WEIGHED ? [term] : [];
  });
  if (distinctive.length > 0) return store.match(expressionOf([anyOf(distinctive)]), limit);
  const common = met.map(({ term }) => term);
  return common.length === 0 ? [] : commonest(store, expressionOf, common, limit);
}

/**
 * Searches for words that are everywhere: texts with all of them come before texts with any. Where even those are too many to
 * score, a sample of them is scored; the sample is the same however the index came about.
 */
function commonest(
  store: IndexStore,
  expressionOf: (words: readonly string[]) => string,
  common: readonly string[],
  limit: number,
): { id: number; score: number }[] {
  const whole = store.match(weighable(store, expressionOf, allOf(common)), limit);
  if (common.length === 1 || whole.length === limit) return whole;
  return store.match(weighable(store, expressionOf, anyOf(common)), limit);
}

function weighable(store: IndexStore, expressionOf: (words: readonly string[]) => string, words: string): string {
  const expression = expressionOf([words]);
  if (store.countMatches(expression, MOST_WEIGHED + 1) <= MOST_WEIGHED) return expression;
  return expressionOf([words, filterExpression([sampleToken(0)])]);
}

/** Returns the units that may be found at all, whatever the query is; undefined where all may. */
export function unitsToSearch(store: IndexStore, parsed: ParsedSearch): UnitFilter | undefined {
  if (parsed.impossible) return { count: () => 0, all: () => [] };
  const { required, excluded, filters, filter } = parsed;
  const parts = [...required.map(termExpression), ...filters];
  if (parts.length === 0 && excluded.length === 0) return undefined;
  if (parts.length === 0) return { count: (most) => most, all: () => store.allExcept(anyOf(excluded)) };
  const expression = without(allOf(parts), excluded);
  return {
    count: (most) => store.countMatches(expression, most),
    all: () => store.matchAll(expression),
    ...(required.length + excluded.length === 0 ? { among: (ids) => store.withinScope(ids, filter) } : {}),
  };
}
