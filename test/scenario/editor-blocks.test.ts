/** Single blocks: what a new one may be (EDIT-1, § 9). */
import { describe, expect } from "bun:test";
import { rule, useServer } from "../support/rule.ts";
import type { ErrorBody, JsonObject, WriteResult } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";

let blocks: string;
const shared = useServer({}, async ({ client }) => {
  const space = await createSpace(client);
  blocks = `/v1/spaces/${space.id}/objects/${(await createObject(client, space.id)).id}/editor/blocks`;
});
const refusal = async (body: JsonObject): Promise<[number, string, unknown]> => {
  const reply = await shared.client.request("POST", blocks, { body });
  const { error } = reply.json as unknown as { error: ErrorBody };
  return [reply.status, error.code, error.details?.["field"] ?? error.details?.["path"]];
};

describe("a new block", () => {
  rule("[EDIT-1] type is required, 1 to 64 bytes; a place is not empty", async () => {
    expect(await refusal({})).toEqual([400, "request.missing_field", "type"]);
    expect(await refusal({ type: 5 })).toEqual([400, "request.schema", "type"]);
    expect(await refusal({ type: "" })).toEqual([400, "request.invalid_field", "type"]);
    expect(await refusal({ type: "é".repeat(33) })).toEqual([400, "request.invalid_field", "type"]);
    expect(await refusal({ type: "quote", nav: { pos: "" } })).toEqual([400, "request.invalid_field", "nav.pos"]);
    const { recordIds } = await shared.client.post<WriteResult>(blocks, { type: "é".repeat(32) }, 201);
    expect(recordIds).toHaveLength(1);
  });
});
