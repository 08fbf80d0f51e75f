import { isJsonObject } from "../../src/protocol/json.ts";
import { ApiError, CliError, EXIT } from "./exit.ts";
import { readJson, send } from "./http-client.ts";
import type { Target } from "./target.ts";

/**
 * The control API of a server's runtime, which has a listener of its own: the server says where. An address at which a control
 * API answers itself, which knows no `/v1/health`, is taken as it is.
 */
export async function controlTarget(server: Target): Promise<Target> {
  const health = await healthOf(server);
  if (health === undefined) return server;
  const url = isJsonObject(health) ? health["controlUrl"] : undefined;
  if (typeof url !== "string")
    throw new CliError(`the runtime of the server at ${server.addr} is turned off (runtime.enabled)`, EXIT.user);
  return { ...server, addr: new URL(url).host };
}

async function healthOf(server: Target) {
  try {
    return await readJson(server, await send(server, { method: "GET", path: "/v1/health" }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
