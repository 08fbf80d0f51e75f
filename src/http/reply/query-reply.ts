import { svcError } from "../../protocol/errors.ts";
import type { PackedRecords } from "../../protocol/packed-records.ts";
import type { CollectionQueryBody } from "../../protocol/record.ts";
import { JsonRecords } from "./reply.ts";

interface QueryResult {
  readonly records: readonly string[] | PackedRecords;
  readonly total?: number;
  readonly hasNext?: boolean;
}

/** A query's records as stored text, without parsing them. */
export function queryReply({ records, total, hasNext }: QueryResult): JsonRecords {
  return new JsonRecords(records, total === undefined ? "" : `,"total":${total},"hasNext":${hasNext}`);
}

/** Refuses an object or a dataset in a query over a collection of its own (QUERY-7). */
export function refuseTarget(
  body: Pick<CollectionQueryBody, "objectId" | "dataset">,
  fields: readonly ("objectId" | "dataset")[] = ["objectId", "dataset"],
): void {
  for (const field of fields) {
    if (body[field])
      throw svcError(
        "request.invalid_field",
        { field, reason: "absent or empty on this collection" },
        `${field} must be absent or empty here: the path names the collection`,
      );
  }
}
