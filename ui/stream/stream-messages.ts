/** What tabs and the hub that keeps the browser's one connection say to each other. */
import type { Json } from "../../src/protocol/json.ts";

/** A stream that somebody wants. */
export interface Asked {
  method: "GET" | "POST";
  path: string;
  body?: object;
}

export interface AskedById {
  /** Unique in its tab, and never used again. */
  id: string;
  asked: Asked;
}

export type TabMessage =
  /** All that the tab wants now: what is not in it is dropped, so that a hub that knows nothing learns everything. */
  | { kind: "announce"; tab: string; wanted: AskedById[] }
  /** The tab was shown, or the machine has woken: a connection that is down is tried at once. */
  | { kind: "wake"; tab: string }
  | { kind: "bye"; tab: string };

export type HubMessage =
  /** A frame of a subscription; `closed` and `error` are followed by a new attempt unless `refused`. */
  | { kind: "frame"; id: string; event: string; data: Json }
  /** The server will not have it; it is not tried again. */
  | { kind: "refused"; id: string; code: string; message: string; details?: { [key: string]: Json } }
  /** What was open is not; it is being opened again. Undefined: all of the tab's. */
  | { kind: "down"; id?: string }
  /** The hub is new to the tab, which announces. A worker's death is shown by the lock it holds. */
  | { kind: "hello"; lock?: string };

/** The way from a tab to the hub. */
export interface HubLink {
  send(message: TabMessage): void;
}
