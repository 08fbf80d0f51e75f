import type { EventScope, ProcessRow } from "../../src/protocol/event.ts";
import type { Json } from "../../src/protocol/json.ts";
import { call } from "./api-client.ts";

export interface BusEvent {
  type: string;
  scope: EventScope;
  spaceId?: string;
  target?: string;
  data?: Json;
  sender: { identity: string; self: boolean };
}

export const busApi = {
  publish: (event: Omit<BusEvent, "sender">) => call<{ subscribers: number }>("POST", "/v1/events", event),
  processes: async () => (await call<{ processes: ProcessRow[] }>("GET", "/v1/processes")).processes,
  cancelProcess: (id: string, identity: string) =>
    call<{ subscribers: number }>("POST", `/v1/processes/${encodeURIComponent(id)}/cancel`, { identity }),
};
