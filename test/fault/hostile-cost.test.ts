/** Requests that take long on a single text: they are left to a reader, and nobody else waits for them. */
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject } from "../support/server/client.ts";
import { createCollection, createSpace } from "../support/server/fixtures.ts";

let spaceId: string;
const shared = useServer({}, async ({ client }) => {
  spaceId = (await createSpace(client)).id;
});

/** A text on which an automaton for such a pattern has a state of its own at nearly every character. */
const dearText = (): string => Array.from(randomBytes(900_000), (byte) => "ab"[byte & 1]).join("");
const DEAR: Record<string, { path: string; body: JsonObject }> = {
  query: { path: "query", body: { filter: { s: { $regex: "a[ab]{250}d" } } } },
  count: { path: "query", body: { filter: { s: { $regex: "a[ab]{250}d" } }, limit: 1, includeTotal: true } },
  "pipeline's $match": { path: "aggregate", body: { pipeline: [{ $match: { s: { $regex: "a[ab]{250}d" } } }] } },
  "$match behind another stage": {
    path: "aggregate",
    body: { pipeline: [{ $addFields: { t: "$s" } }, { $match: { t: { $regex: "a[ab]{250}d" } } }] },
  },
  "pipeline of many trims": {
    path: "aggregate",
    body: {
      pipeline: [{ $project: { t: Array.from({ length: 100 }, () => ({ $strLenCP: { $trim: { input: "$s" } } })) } }],
    },
  },
  "pipeline of texts that double": {
    path: "aggregate",
    body: {
      pipeline: [
        ...Array.from({ length: 3 }, () => ({ $addFields: { s: { $concat: ["$s", "$s"] } } })),
        { $project: { t: Array.from({ length: 8 }, () => ({ $strLenCP: { $trim: { input: "$s" } } })) } },
      ],
    },
  },
};
for (const [what, { path, body }] of Object.entries(DEAR)) {
  rule(
    `[INDEX-5] a ${what} that takes long on one text holds nobody up: who asks later is answered first`,
    async () => {
      const dear = await createCollection(shared.client, spaceId, { dynamic: true });
      await dear.upsert([{ id: "long", fields: { s: `${dearText()}d` } }]);
      const ended: string[] = [];
      const asked = shared.client
        .request("POST", `${dear.path}/${path}`, { body: { ...dear.target, ...body }, timeoutMs: 60_000 })
        .then((reply) => {
          ended.push("dear");
          return reply;
        });
      for (let round = 0; round < 5; round++) {
        await shared.client.get("/v1/health");
        ended.push("health");
      }
      expect(ended).toEqual(Array(5).fill("health"));
      expect((await asked).status).toBe(200);
      await dear.deleteRecords(["long"]);
    },
    60_000,
  );
}
