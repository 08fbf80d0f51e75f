/** Writes that a record has no room for: refused with the reason, and what was acknowledged is there. */
import { describe, expect } from "bun:test";
import type { ErrorCode } from "../../src/protocol/errors.ts";
import { rule, useServer } from "../support/rule.ts";
import type { JsonObject, SpaceInfo } from "../support/server/client.ts";
import { until } from "../support/server/client.ts";
import { createObject, createSpace } from "../support/server/fixtures.ts";

const shared = useServer();
const large = (letter: string): string => letter.repeat(600_000);
const REASON = "the record would be larger than 1048576 bytes of JSON";
/** The longest name, and one character more. */
const LONGEST = 16_384;
const TOO_LONG = `must have at most ${LONGEST} characters`;

/** Fills a record in two steps, of which the second finds no room. Answers what is read afterwards. */
async function fillTwice<T>(
  method: string,
  path: string,
  bodies: [JsonObject, JsonObject],
  read: () => Promise<T>,
  code: ErrorCode = "dataset.validation",
  reason = REASON,
) {
  const { client } = shared;
  expect((await client.request(method, path, { body: bodies[0] })).status).toBe(204);
  const before = await read();
  const error = await client.fails(method, path, bodies[1], 400, code);
  expect(error.details).toMatchObject({ reason });
  expect(Bun.deepEquals(await read(), before)).toBe(true);
  return before;
}

describe("a record has at most 1 MiB", () => {
  rule("[SPACE-11] settings that no longer fit are refused; those before stay", async () => {
    const { id } = await createSpace(shared.client);
    const row = await fillTwice(
      "PATCH",
      `/v1/spaces/${id}/settings`,
      [{ set: { a: large("a") } }, { set: { b: large("b") } }],
      () => shared.client.get<SpaceInfo>(`/v1/spaces/${id}`),
    );
    expect(row.settings?.["a"]).toBe(large("a"));
  });

  rule("[SPACE-1] a description that no longer fits is refused; the name before stays", async () => {
    const { id } = await createSpace(shared.client);
    const row = await fillTwice(
      "PATCH",
      `/v1/spaces/${id}`,
      [{ name: "n".repeat(LONGEST) }, { description: "d".repeat(LONGEST + 1) }],
      async () => {
        const row = () => shared.client.get<SpaceInfo>(`/v1/spaces/${id}`);
        await until(async () => (await row()).name?.length === LONGEST, "the row to follow the space");
        return row();
      },
      "request.invalid_field",
      TOO_LONG,
    );
    expect(row.name).toBe("n".repeat(LONGEST));
  });

  rule("[ACC-6] a profile that no longer fits is refused; what was told before stays", async () => {
    const account = await fillTwice(
      "PUT",
      "/v1/account/metadata",
      [{ name: "n".repeat(LONGEST) }, { description: "d".repeat(LONGEST + 1) }],
      () => shared.client.get<{ metadata?: JsonObject }>("/v1/account"),
      "request.invalid_field",
      TOO_LONG,
    );
    expect(account.metadata).toEqual({ name: "n".repeat(LONGEST) });
    await shared.client.put("/v1/account/metadata", { name: "" }, 204);
  });

  rule("[DEV-1] apps that a device's row has no room for are refused; those before stay", async () => {
    const row = await fillTwice(
      "PUT",
      "/v1/devices/me",
      [{ apps: { one: { a: large("a") } } }, { apps: { two: { b: large("b") } } }],
      () => shared.client.get<{ devices: JsonObject[] }>("/v1/devices"),
    );
    expect(row.devices[0]?.["apps"]).toEqual({ one: { a: large("a") } });
  });

  rule("[EDIT-1] a field of a block that no longer fits is a rejection of its op", async () => {
    const { client } = shared;
    const { id } = await createSpace(client);
    const object = await createObject(client, id);
    const blocks = `/v1/spaces/${id}/objects/${object.id}/editor/blocks`;
    const made = await client.post<{ recordIds: string[] }>(blocks, { type: "paragraph", text: large("t") }, 201);
    const set = { style: { big: large("s") } };
    const reply = await client.request("PATCH", `${blocks}/${made.recordIds[0]}`, { body: { set } });
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ versionId: "", rejections: [{ opIndex: 0, reason: REASON }] });
  });

  rule("[DATA-1] markdown that a block has no room for is refused whole: the document stays as it was", async () => {
    const { client } = shared;
    const { id } = await createSpace(client);
    const object = await createObject(client, id);
    const path = `/v1/spaces/${id}/objects/${object.id}/editor/markdown`;
    const content = "# Title\n\nkeep me";
    const { inserted } = await client.put<{ inserted: string[] }>(path, { content }, 200);
    // The client's own style leaves the record no room for a long text.
    const set = { "style.mine": "s".repeat(900_000) };
    await client.patch(path.replace("markdown", `blocks/${encodeURIComponent(inserted[1]!)}`), { set }, 200);
    const text = "p".repeat(150_000);
    for (const [method, body] of [
      ["PUT", { content: `# New title\n\n${text}` }],
      [
        "PATCH",
        {
          edits: [
            { oldText: "keep me", newText: text },
            { oldText: "Title", newText: "New" },
          ],
        },
      ],
    ] as const) {
      const error = await client.fails(method, path, body, 400, "dataset.validation");
      expect(error.details).toMatchObject({ reason: REASON });
      expect(await client.get<JsonObject>(path)).toEqual({ content });
    }
  });
});
