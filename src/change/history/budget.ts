import { refusedAs } from "../../protocol/errors.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";

/** Counts what an answer about a version holds (HIST-4). Errors: history.view_too_large {limit}. */
export function createViewBudget() {
  let records = 0;
  let bytes = 0;
  const tooLarge = (limit: "records" | "bytes") =>
    refusedAs("history.view_too_large", { limit }, refusal(limit === "bytes" ? "history.bytes" : "history.records"));
  return {
    take(text: string): void {
      records++;
      bytes += Buffer.byteLength(text);
      if (records > LIMITS.historyViewRecords) throw tooLarge("records");
      if (bytes > LIMITS.historyViewBytes) throw tooLarge("bytes");
    },
  };
}
