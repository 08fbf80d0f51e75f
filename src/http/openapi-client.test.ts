/** What generators make of the description: types that can be used as they are, and how much text they are. */
import { afterAll, beforeAll, describe, expect, mock, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import OPERATION_IDS from "../../test/vectors/operation-ids.json";
import type { JsonObject } from "../protocol/json.ts";
import { buildOpenApi } from "./openapi-document.ts";
import { ROUTES } from "./route-table.ts";
import { openApiRoute } from "./routes/openapi.ts";

const document = buildOpenApi([...ROUTES, openApiRoute(ROUTES)]);
const folder = mkdtempSync(join(tmpdir(), "svc-openapi-"));
afterAll(() => rmSync(folder, { recursive: true }));
let types = "";

beforeAll(async () => {
  // The generator builds on TypeScript's former compiler, which the current package no longer has.
  const former = await import("typescript5");
  await mock.module("typescript", () => ({ ...former, default: former.default }));
  const { default: openapiTS, astToString } = await import("openapi-typescript");
  types = astToString(await openapiTS(JSON.stringify(document)));
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
      ].join("\n"),
    );
    const faults = await compile("wrong.ts", wrong);
    expect(faults.map((line) => /^wrong\.ts\((\d+)/.exec(line)?.[1])).toEqual(["6", "7", "8", "9", "10", "11"]);
  }, 60_000);
});

/** The compiler's complaints, one a line. */
async function compile(name: string, source: string): Promise<string[]> {
  writeFileSync(join(folder, name), source);
  const tsc = resolve(import.meta.dir, "../../node_modules/.bin/tsc");
  const flags = ["--noEmit", "--strict", "--skipLibCheck", "--target", "esnext", "--module", "esnext", "--types", ""];
  const child = Bun.spawn([process.execPath, "--bun", tsc, ...flags, name], {
    cwd: folder,
    stdout: "pipe",
    env: { ...process.env, NO_COLOR: "1" },
  });
  const text = await new Response(child.stdout).text();
  await child.exited;
  return text.split("\n").filter((line) => /error TS/.test(line));
}
