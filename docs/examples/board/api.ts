import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./svc-api.d.ts";

export type Schemas = components["schemas"];
export type Api = Client<paths>;

/** The server's address where nothing else is said. */
export const SERVER = "http://127.0.0.1:7001";

export function connect(server: string): Api {
  return createClient<paths>({ baseUrl: server });
}

/** The answer of a call, or its refusal as an exception. */
export function answered<T>(reply: { data?: T; error?: Schemas["ErrorBody"] }): T {
  if (reply.error) throw new Error(`${reply.error.error.message} (${reply.error.error.code})`);
  if (reply.data === undefined) throw new Error("an empty answer");
  return reply.data;
}
