/** What generators make of the description: the types must be usable, and their text must stay within bounds. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientTypes, compilerFaults } from "../../../test/support/server/client-types.ts";
import OPERATION_IDS from "../../../test/vectors/operation-ids.json";
import type { JsonObject } from "../../protocol/json.ts";
import { openApiRoute } from "../routes/openapi.ts";
import { ROUTES } from "../routes/route-table.ts";
import { buildOpenApi } from "./openapi-document.ts";

const document = buildOpenApi([...ROUTES, openApiRoute(ROUTES)]);
const folder = mkdtempSync(join(tmpdir(), "svc-openapi-"));
afterAll(() => rmSync(folder, { recursive: true }));
let types = "";

beforeAll(async () => {
  types = await clientTypes(document);
  writeFileSync(join(folder, "api.d.ts"), types);
}, 60_000);

describe("[API-12] operation ids", () => {
  const routeById: Record<string, string> = {};
  for (const [path, item] of Object.entries(document["paths"] as JsonObject)) {
    for (const [method, operation] of Object.entries(item as JsonObject)) {
      routeById[String((operation as JsonObject)["operationId"])] = `${method.toUpperCase()} ${path}`;
    }
  }

  test("stay what they are: clients call them", () => {
    expect(routeById).toMatchObject(OPERATION_IDS);
  });

  test("are all held by test/vectors/operation-ids.json", () => {
    expect(Object.keys(routeById).filter((id) => !Object.hasOwn(OPERATION_IDS, id))).toEqual([]);
  });

  test("read as methods: a verb first, no path in camel case", () => {
    const pathLike = Object.keys(routeById).filter(
      (id) => !/^[a-z]+[A-Za-z0-9]*$/.test(id) || /^(post|put|patch)[A-Z]/.test(id),
    );
    expect(pathLike).toEqual([]);
  });
});

describe("[API-12] types made by openapi-typescript", () => {
  test("are as long as the API is large, not as its errors are repeated", () => {
    const operations = Object.keys(OPERATION_IDS).length;
    expect(types.split("\n").length / operations).toBeLessThan(95);
  });

  test("name what recurs", () => {
    for (const name of [
      "SpaceInfo",
      "Member",
      "WriteReply",
      "QueryReply",
      "DatasetDef",
      "PropertyDef",
      "WindowEvent",
      "ErrorBody",
    ]) {
      expect(types).toContain(`\n        ${name}: {`);
    }
  });

  test("serve a task board as they are, and refuse what the server would", async () => {
    const program = (lines: string) => `
      import type { components, operations } from "./api.d.ts";
      type Schemas = components["schemas"];
      type Body<Id extends keyof operations> =
        NonNullable<operations[Id]["requestBody"]> extends { content: { "application/json": infer T } } ? T : never;
      ${lines}`;
    const right = program(`
      export const board: Body<"declareDataset"> = {
        name: "tasks", idRule: "user", deleteBy: "author",
        fields: [
          { key: "title", kind: "string", mutableBy: "any", scope: "synced" },
          { key: "by", stamp: "creator" },
          { key: "tags", kind: "array", shape: { kind: "array", items: { kind: "string" } } },
        ],
      };
      export const state: Body<"addProperty"> = {
        name: "State", format: { type: "select", options: { doing: { name: "Doing", color: "blue" } } },
      };
      export const said: Body<"sendChatMessage"> = { text: "done", agent: { name: "board", done: true } };
      export function apply(event: Schemas["WindowEvent"], rows: Map<string, Schemas["AnyRecord"]>): string | undefined {
        if (event.event === "snapshot") for (const record of event.data.records) rows.set(record.id, record);
        else if (event.event === "changes") {
          for (const { added = [], updated = [], removed = [] } of event.data) {
            for (const { id, doc } of [...added, ...updated]) rows.set(id, doc);
            for (const { id, reason } of removed) if (reason !== "displaced") rows.delete(id);
          }
        } else if (event.event === "closed") return event.data.reason;
        return undefined;
      }
      export function carry(event: Schemas["OpenStreamsEvent"], rows: Map<string, Schemas["AnyRecord"]>): string | undefined {
        if (event.event !== "frame") return event.event === "ready" ? event.data.streamId : event.data.reason;
        const frame = event.data;
        switch (frame.event) {
          case "snapshot":
          case "changes":
            return apply(frame, rows);
          case "closed":
            return \`\${frame.id} ended: \${frame.data.reason}\`;
          case "error":
            return said400(frame.data);
          case "member":
            return frame.data.member.name;
          default:
            return undefined;
        }
      }
      export const said400 = ({ error }: Schemas["ErrorBody"]): string => \`\${error.code}: \${error.message}\`;
      export const refused = (answer: components["responses"]["BadBody"]["content"]["application/json"]) => said400(answer);
      export const newestFirst = (a: Schemas["AnyRecord"], b: Schemas["AnyRecord"]) =>
        (a._ver?.id ?? "") < (b._ver?.id ?? "") ? 1 : -1;
      export const mayWrite = ({ ownRole, status }: Schemas["SpaceInfo"]) =>
        status === "active" && (ownRole === "owner" || ownRole === "admin" || ownRole === "writer");
    `);
    expect(await compile("right.ts", right)).toEqual([]);
    const wrong = program(
      [
        'export const a: Body<"declareDataset"> = { name: "x", fields: [{ key: "k", kind: "text" }] };',
        'export const b: Body<"declareDataset"> = { name: "x", fields: [{ key: "k", mutableBy: "all" }] };',
        'export const c: Body<"declareDataset"> = { name: "x", idRule: "mine", fields: [] };',
        'export const d: Body<"sendChatMessage"> = { text: "x", agent: { name: 5, done: true } };',
        'export const e = (event: Schemas["WindowEvent"]) => event.event === "nonsense";',
        'export const f = (member: Schemas["Member"]) => member.permission === "boss";',
        'export const g = (frame: Schemas["SubscriptionFrame"]) => frame.event === "snapshots";',
        'export const h = (answer: Schemas["ErrorBody"]) => answer.error.code === "record.unheard_of";',
      ].join("\n"),
    );
    const faults = await compile("wrong.ts", wrong);
    expect(faults.map((line) => /^wrong\.ts\((\d+)/.exec(line)?.[1])).toEqual([
      "6",
      "7",
      "8",
      "9",
      "10",
      "11",
      "12",
      "13",
    ]);
  }, 60_000);
});

/** The compiler's errors, one per line. */
async function compile(name: string, source: string): Promise<string[]> {
  writeFileSync(join(folder, name), source);
  return compilerFaults(folder, [
    "--strict",
    "--skipLibCheck",
    "--target",
    "esnext",
    "--module",
    "esnext",
    "--types",
    "",
    name,
  ]);
}
