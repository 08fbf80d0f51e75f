import { LIMITS } from "./limits.ts";

interface Operator {
  operator: string;
}

interface Limit {
  limit: number;
}

const listed = (names: readonly string[], by: string): string => names.join(by);

/** What a filter has too much of. */
const FILTER_UNITS = {
  entries: "entries in one list",
  regexChars: "characters in a $regex",
  regexSteps: "steps in a $regex",
  nodes: "conditions and operators",
  levels: "levels",
} as const;

export type FilterUnit = keyof typeof FILTER_UNITS;

/** Wordings for faults in filters, sorts and pipelines; they belong to the one table of `refusals.ts`. */
export const QUERY_WORDS = {
  // A filter
  "filter.no_operator": ({ operator, operators }: Operator & { operators: readonly string[] }) =>
    `The filter uses ${operator}, which is not among the operators: ${listed(operators, " ")}`,
  "filter.too_much": ({ limit, unit }: Limit & { unit: FilterUnit }) =>
    `The filter has more than ${limit} ${FILTER_UNITS[unit]}; make it smaller`,
  "filter.object": "a filter is an object of paths and operators",
  "filter.mixed": "operators and plain keys do not mix in one condition; use only one of them",
  "filter.date_key": "a date is an object of the one key $date",
  "filter.date_path": `a date is one value; compare the path before ".$date" with {"$date": …}`,
  "filter.date_value": "$date takes an RFC 3339 date-time such as 2026-01-31T09:30:00.000Z, or Unix milliseconds",
  "filter.datetime": ({ path }: { path: string }) =>
    `${path} is a datetime; compare it with a date, written {"$date": "2026-01-31T09:30:00.000Z"}`,
  "filter.logical": ({ operator }: Operator) =>
    `${operator} combines whole filters; it does not stand inside a field's condition`,
  "filter.not_logical": ({ operator }: Operator) =>
    `${operator} belongs inside a field's condition, as {"path": {"${operator}": …}}`,
  "filter.filters": ({ operator }: Operator) => `${operator} takes a non-empty array of filters`,
  "filter.filter": ({ operator }: Operator) => `every entry of ${operator} is a filter object`,
  "filter.array": ({ operator }: Operator) => `${operator} takes an array`,
  "filter.plain_values": ({ operator }: Operator) => `${operator} lists plain values; operators do not stand inside it`,
  "filter.size": "$size takes a non-negative integer",
  "filter.exists": "$exists takes a boolean",
  "filter.type_none": "$type names at least one type",
  "filter.type": ({ types }: { types: readonly string[] }) => `$type takes one or more of: ${listed(types, ", ")}`,
  "filter.mod": "$mod takes [divisor, remainder], two integers, the divisor not 0",
  "filter.elem_match": "$elemMatch takes an object: a filter, or operators",
  "filter.all_elem_match": "an entry of $all with $elemMatch has no other key",
  "filter.not": '$not takes an object of operators, as {"$not": {"$gt": 5}}',
  "filter.not_value": "$not takes operators, not a value; $ne says unequal",
  "filter.not_filter": "$not takes operators only; $nor negates whole filters",
  "filter.regex_alone": "a $regex stands alone in its condition; it is nothing to compare with",
  "filter.regex_text": "$regex takes a string",
  "filter.regex_syntax": ({ fault }: { fault: string }) =>
    `$regex does not parse as RE2 syntax (no lookaround, no backreferences): ${fault}`,
  "filter.options_alone": "$options needs a $regex beside it",
  "filter.options": "$options is a string of the letters i, m and s",

  // A sort
  "sort.array": 'sort is an array of paths, as ["-createdAt"]',
  "sort.text": ({ index }: { index: number }) => `sort[${index}] is not a string`,
  "sort.no_path": ({ index }: { index: number }) => `sort[${index}] names no path`,
  "sort.paths": `sort takes at most ${LIMITS.sortKeys} paths`,

  // A pipeline and its stages
  "pipeline.array": "pipeline is an array of stages",
  "pipeline.stages": `a pipeline has at most ${LIMITS.pipelineStages} stages`,
  "pipeline.stage": 'a stage is an object such as {"$match": {…}}',
  "pipeline.one_key": "a stage has exactly one key, its name",
  "pipeline.no_stage": ({ stages }: { stages: readonly string[] }) => `no such stage; there are ${listed(stages, " ")}`,
  "pipeline.limit": ({ name }: { name: string }) => `${name} is an integer; a negative one is no limit`,
  "stage.facet_in_facet": "a $facet does not stand inside another",
  "stage.filter": "takes a filter object",
  "stage.project": "takes an object of the fields to keep or compute",
  "stage.exclusion": "fields are left out by not listing them; there is no exclusion",
  "stage.nested_flag": 'include flags stand at the top; write "$path" to keep a value or {"$literal": 1} to set one',
  "stage.set": "takes an object of the fields to set",
  "stage.group": "takes an object with _id and accumulators",
  "stage.group_key": "needs one key, in _id or id; null puts all into one group",
  "stage.accumulators": ({ names }: { names: readonly string[] }) =>
    `takes one accumulator in an object; there are ${listed(names, " ")}`,
  "stage.no_accumulator": ({ names }: { names: readonly string[] }) =>
    `no such accumulator; there are ${listed(names, " ")}`,
  "stage.empty_object": "takes an empty object",
  "stage.facets": "takes an object of pipelines",
  "stage.facet": "takes an array of stages",
  "stage.sort": 'takes an object such as {"createdAt": -1}',
  "stage.sort_paths": `takes at most ${LIMITS.sortKeys} paths`,
  "stage.direction": "is 1 for ascending or -1 for descending",
  "stage.path_empty": "a path is not empty",
  "stage.integer": ({ least }: { least: number }) => `takes an integer of at least ${least}`,
  "stage.count": "takes the name of the field that holds the count",
  "stage.unwind_option": "is no option; there are path and preserveNullAndEmptyArrays",
  "stage.unwind_path": 'takes a field path such as "$tags"',
  "stage.boolean": "is a boolean",
  "stage.lookup": "takes localField, foreignField and as",
  "stage.lookup_option": "is no option; a $lookup stays in its collection and has localField, foreignField and as",
  "stage.lookup_local": "is a path without $",
  "stage.lookup_foreign": 'is always "id"',
  "stage.lookup_as": "is the name of the field that takes the records",

  // An expression in a pipeline
  "expression.none": ({ operators }: { operators: readonly string[] }) =>
    `no such expression; there are $literal ${listed(operators, " ")}`,
  "expression.alone": "an operator stands alone in its object",
  "expression.date": "$date takes an RFC 3339 date-time or Unix milliseconds",
  "expression.arguments": ({ least, most, got }: { least: number; most?: number; got: number }) => {
    const count = most === undefined ? `at least ${least}` : least === most ? `${least}` : `${least} to ${most}`;
    return `takes ${count} argument${most === 1 ? "" : "s"}, got ${got}`;
  },
  "expression.named": ({ names }: { names: readonly string[] }) => `takes an object with ${listed(names, ", ")}`,
  "expression.no_argument": ({ names }: { names: readonly string[] }) =>
    `is no argument here; there are ${listed(names, ", ")}`,
  "expression.needs": ({ key }: { key: string }) => `needs ${key}`,
  "expression.levels": `expressions nest at most ${LIMITS.expressionDepth} levels deep`,
  "expression.many": `a pipeline holds at most ${LIMITS.expressionNodes} expressions`,
  "expression.variable": "there are no variables; paths begin with one $",
  "expression.path": 'a path is written "$a.b", without empty parts; a text that begins with $ needs $literal',
  "expression.branches": 'takes a non-empty array of {"case": …, "then": …}',
  "expression.positive": "takes a positive integer, written out",
  "expression.one_of": ({ values }: { values: readonly string[] }) =>
    `takes one of ${listed(values, ", ")}, written out`,
  "expression.zone": "takes an IANA name such as Europe/Berlin or an offset such as +05:30, written out",
  "output.nameless": "a field needs a name",
  "output.dotted": "dotted output names are not taken; write a nested document",
  "output.dollar": "a field's name does not begin with $",

  // What running one may take
  "memory.pipeline": ({ limitBytes }: { limitBytes: number }) =>
    `The pipeline holds more than ${limitBytes} bytes; match or project less, or raise memoryLimitBytes`,
  "memory.document": `The pipeline makes a document of more than ${LIMITS.pipelineDocumentBytes} bytes; project less`,
  "memory.lookup": "A $lookup fetches too much into one document",
  "memory.array": ({ limit }: Limit) =>
    `An array of $push or $addToSet has more than ${limit} entries; match less, or raise accumArrayLimit`,
  "memory.groups": ({ limit }: Limit) => `$group makes more than ${limit} groups; group by less, or raise groupLimit`,
  "search.terms": ({ limit }: Limit) => `A search has at most ${limit} different terms`,
  "search.phrase_words": ({ limit }: Limit) => `The phrases of a search have at most ${limit} words together`,
  "query.reply_too_long": ({ limitChars }: { limitChars: number }) =>
    `The records are longer than ${limitChars} characters together; ask for fewer with limit`,
  "query.match_too_long": "A record that was just written takes long to match: subscribe again",
  "query.cancelled": "The query was cancelled",
} as const;
