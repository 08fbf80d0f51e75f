import type { HistoryDiff, HistoryPage } from "../../src/protocol/history.ts";
import { call, spacePath } from "./api-client.ts";

/** Requests on the history of one object. */
export function historyApi(spaceId: string, objectId: string) {
  const path = (query: Record<string, string>, ...rest: string[]) =>
    `${spacePath(spaceId, "objects", objectId, "history", ...rest)}?${new URLSearchParams(query)}`;
  return {
    page: (cursor: string | undefined) => call<HistoryPage>("GET", path(cursor === undefined ? {} : { cursor })),
    /** What a version changed, compared with the versions it was based on. */
    effect: (version: string) => call<HistoryDiff>("GET", path({ version }, "diff")),
  };
}

export type HistoryApi = ReturnType<typeof historyApi>;
