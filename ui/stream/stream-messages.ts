/** The messages between tabs and the hub that keeps the browser's one connection. */
import type { Json } from "../../src/protocol/json.ts";

/** A stream that a tab wants. */
export interface Asked {
  method: "GET" | "POST";
  path: string;
  body?: object;
}

export interface AskedById {
  /** Unique in its tab, and never reused. */
  id: string;
  asked: Asked;
}

export type TabMessage =
  /** Everything that the tab wants now. What is not in it is dropped, so one message tells a new hub everything. */
  | { kind: "announce"; tab: string; wanted: AskedById[] }
  /** The tab was shown, or the machine woke up: a broken connection is opened again at once. */
  | { kind: "wake"; tab: string }
  | { kind: "bye"; tab: string };

export type HubMessage =
  /** A frame of a subscription. After `closed` and `error` it is tried again, unless it was `refused`. */
  | { kind: "frame"; id: string; event: string; data: Json }
  /** The server refuses the subscription; it is not tried again. */
  | { kind: "refused"; id: string; code: string; message: string; details?: { [key: string]: Json } }
  /** The subscription is no longer open and is being opened again. Undefined: all of the tab's. */
  | { kind: "down"; id?: string }
  /** The hub is new to the tab, so the tab announces. The lock shows when the worker is gone. */
  | { kind: "hello"; lock?: string };

/** Connects a tab to the hub. */
export interface HubLink {
  send(message: TabMessage): void;
}
