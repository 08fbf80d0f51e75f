import { svcError } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";

/** Counts what an answer about a version holds. Errors: history.view_too_large {limit}. */
export function createViewBudget() {
  let records = 0;
  let bytes = 0;
  const tooLarge = (limit: string, most: string) =>
    svcError(
      "history.view_too_large",
      { limit },
      `The answer holds more than ${most}; narrow it with dataset or recordId`,
    );
  return {
    take(text: string): void {
      records++;
      bytes += Buffer.byteLength(text);
      if (records > LIMITS.historyViewRecords) throw tooLarge("records", `${LIMITS.historyViewRecords} records`);
      if (bytes > LIMITS.historyViewBytes) throw tooLarge("bytes", `${LIMITS.historyViewBytes >> 20} MiB`);
    },
  };
}
