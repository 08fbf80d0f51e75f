import type { Json, JsonObject } from "../../protocol/json.ts";

/** What one call came to: its reply, and what it used. */
export interface HostReply {
  readonly output: Json;
  readonly usage?: JsonObject;
}
