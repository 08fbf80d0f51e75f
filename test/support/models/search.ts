/** Searching over HTTP, and where the index lies. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { SearchReply } from "../../../src/protocol/search.ts";
import type { Client, JsonObject } from "../server/client.ts";

export type SearchAnswer = SearchReply;
type Hit = SearchReply["hits"][number];

export function search(client: Client, spaceId: string, body: JsonObject): Promise<SearchAnswer> {
  return client.post<SearchAnswer>(`/v1/spaces/${spaceId}/search`, body, 200);
}

/** Searches until the answer is as wanted; throws with the last one when that does not come. */
export async function searchUntil(
  client: Client,
  spaceId: string,
  body: JsonObject,
  isWanted: (answer: SearchAnswer) => boolean,
  timeoutMs = 20_000,
): Promise<SearchAnswer> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await search(client, spaceId, body);
    if (isWanted(answer)) return answer;
    if (performance.now() > deadline)
      throw new Error(`not what was waited for: ${JSON.stringify(answer).slice(0, 2_000)}`);
    await Bun.sleep(50);
  }
}

/** The answer once everything is indexed that was written. */
export function searchWhole(client: Client, spaceId: string, body: JsonObject): Promise<SearchAnswer> {
  return searchUntil(client, spaceId, body, (answer) => !answer.incomplete);
}

/** The answer once everything is embedded that was written, so that it is found by meaning too. */
export function searchByMeaning(
  client: Client,
  spaceId: string,
  body: JsonObject,
  timeoutMs?: number,
): Promise<SearchAnswer> {
  return searchUntil(
    client,
    spaceId,
    body,
    (answer) => answer.vectorStatus === "used" && !answer.incomplete,
    timeoutMs,
  );
}

/** Where a hit was found. */
export const foundBy = (hit: Hit): [scope: string, dataset: string] => [hit.scope, hit.dataset];

/** `<account-dir>/index` of the one account of a data root. */
export function indexDirectory(dataDir: string): string {
  const account = readdirSync(dataDir).find((name) => /^A[1-9A-HJ-NP-Za-km-z]{20,}$/.test(name));
  return join(dataDir, account ?? ".", "index");
}
