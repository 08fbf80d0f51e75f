import type { SearchReply } from "../../src/protocol/search.ts";
import { type AnyRecord, call, spacePath } from "./api-client.ts";
import { objectTitle } from "./object-row.ts";

export interface Found {
  reply: SearchReply;
  titleByObject: ReadonlyMap<string, string>;
}

const LIMIT = 20;

/** Searches a space; resolves to the hits, with the names of the objects that contain them. */
export async function searchSpace(spaceId: string, query: string): Promise<Found> {
  const reply = await call<SearchReply>("POST", spacePath(spaceId, "search"), { query, limit: LIMIT });
  const ids = [...new Set(reply.hits.map(({ objectId }) => objectId))];
  if (ids.length === 0) return { reply, titleByObject: new Map() };
  const body = { filter: { id: { $in: ids } } };
  const { records } = await call<{ records: AnyRecord[] }>("POST", spacePath(spaceId, "objects", "query"), body);
  return { reply, titleByObject: new Map(records.map((record) => [record.id, objectTitle(record)])) };
}
