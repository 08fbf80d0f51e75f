/** Table-driven HTTP scenarios: one request, its status, and what its answer must and must not contain. */
import { expect } from "bun:test";
import { rule } from "../rule.ts";
import { type Client, clip, envelopeOf, type Json, type JsonObject, type Reply } from "./client.ts";

export interface Scenario {
  /** `[ID] what is shown`, by the rule that it proves. */
  title: string;
  method: string;
  /** `{name}` stands for a variable of the context, here and in every string of `body`. */
  path: string;
  body?: unknown;
  /** Sent as it stands instead of `body`. */
  raw?: string | Uint8Array;
  headers?: Record<string, string>;
  status: number;
  /** Expected error code. */
  code?: string;
  /** Expected entries of the error's details (others may be there). */
  details?: JsonObject;
  mustContain?: string[];
  mustNotContain?: string[];
  /** Expected part of the JSON body. */
  match?: JsonObject | Json[];
  after?: (reply: Reply, context: ScenarioContext) => void | Promise<void>;
}

export interface ScenarioContext {
  client: Client;
  vars: Record<string, string>;
}

export function runScenarios(context: () => ScenarioContext, scenarios: readonly Scenario[]): void {
  for (const scenario of scenarios) rule(scenario.title, () => runScenario(context(), scenario));
}

async function runScenario(context: ScenarioContext, scenario: Scenario): Promise<void> {
  const { client, vars } = context;
  const path = fill(scenario.path, vars);
  const body = fillDeep(scenario.body, vars);
  const reply = await client.request(scenario.method, path, {
    ...(body === undefined ? {} : { body }),
    ...(scenario.raw === undefined ? {} : { raw: scenario.raw }),
    ...(scenario.headers === undefined ? {} : { headers: scenario.headers }),
  });
  const what = `${scenario.method} ${path} ${clip(JSON.stringify(body))}`;
  if (reply.status !== scenario.status) {
    throw new Error(
      `${what}\nexpected ${scenario.status} ${scenario.code ?? ""}, got ${reply.status} ${clip(reply.text)}`,
    );
  }
  if (scenario.code !== undefined) {
    const error = envelopeOf(reply, what);
    if (error.code !== scenario.code) throw new Error(`${what}\nexpected ${scenario.code}, got ${clip(reply.text)}`);
    if (scenario.details) expect(error.details ?? {}).toMatchObject(fillDeep(scenario.details, vars) as JsonObject);
  }
  for (const part of scenario.mustContain ?? []) expect(reply.text).toContain(fill(part, vars));
  for (const part of scenario.mustNotContain ?? []) expect(reply.text).not.toContain(fill(part, vars));
  if (scenario.match) expect(reply.json as object).toMatchObject(fillDeep(scenario.match, vars) as JsonObject);
  await scenario.after?.(reply, context);
}

function fill(text: string, vars: Record<string, string>): string {
  return text.replace(/\{([A-Za-z]+)\}/g, (whole, name: string) => vars[name] ?? whole);
}

function fillDeep(value: unknown, vars: Record<string, string>): unknown {
  if (typeof value === "string") return fill(value, vars);
  if (Array.isArray(value)) return value.map((item) => fillDeep(item, vars));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [fill(key, vars), fillDeep(item, vars)]));
}
