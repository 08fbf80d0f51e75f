/** The operators of the filter language (QUERY-1), by where they may stand. */
export const LOGICAL_OPERATORS: ReadonlySet<string> = new Set(["$and", "$or", "$nor"]);

export const FIELD_OPERATORS: ReadonlySet<string> = new Set([
  ...["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$all", "$exists", "$size", "$type", "$mod"],
  ...["$elemMatch", "$regex", "$options", "$not"],
]);

export const OPERATORS: ReadonlySet<string> = new Set([...LOGICAL_OPERATORS, ...FIELD_OPERATORS]);
