/**
 * The browser's one connection to the server, for all its tabs: `POST /v1/streams` with the streams that they want. It
 * runs in a shared worker, or in the leading tab.
 */
import type { JsonObject } from "../../src/protocol/json.ts";
import type { SubscriptionRequest } from "../../src/protocol/stream.ts";
import type { Frame } from "./frame-parser.ts";
import { type Connection, readFrames, watchForSilence } from "./stream-connection.ts";
import type { Asked, HubMessage, TabMessage } from "./stream-messages.ts";

export interface HubDeps {
  fetch(path: string, init: RequestInit): Promise<Response>;
  nowMs(): number;
  /** From 0 to below 1. */
  random(): number;
  /** Calls `run` after about `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Resolves when the tab is gone. */
  tabGone(tab: string): Promise<void>;
}

export interface StreamHub {
  receive(message: TabMessage, post: (message: HubMessage) => void): void;
  /** Closes the connection and forgets all tabs. */
  close(): void;
}

/** Most subscriptions that a stream carries. */
const SUBSCRIPTIONS_MAX = 256;
/** When a user looks at the page again, a silence this long ends the connection, not only a full one. */
const SHORT_SILENCE_MS = 30_000;
const BACKOFF_MAX_MS = 30_000;
const BACKOFF_MS = 1_000;
/** A subscription that the server closed is requested again after this long. */
const AGAIN_MS = 1_000;
/** The connection stays for a while after the last subscription, because people go from page to page. */
const LINGER_MS = 2_000;

/** Refusals that may be gone at a later attempt. */
const PASSING = new Set(["server.unavailable", "internal", "storage.full", "network.unavailable", "auth.required"]);

interface Wanted {
  readonly tab: string;
  readonly id: string;
  readonly asked: Asked;
  /** Its id on the current connection; undefined while it is not subscribed there. */
  wire: string | undefined;
  refused: boolean;
  /** It is not requested before this time. */
  notBeforeMs: number;
}

interface Tab {
  post(message: HubMessage): void;
  readonly wantedById: Map<string, Wanted>;
}

export function createStreamHub(deps: HubDeps): StreamHub {
  const tabs = new Map<string, Tab>();
  const wantedByWire = new Map<string, Wanted>();
  let connection: Connection | undefined;
  let wires = 0;
  let failures = 0;
  let closed = false;
  /** Ends the wait for the next attempt. */
  let hurry: (() => void) | undefined;
  let running = false;
  let stopLinger: (() => void) | undefined;

  function* allWanted(): Iterable<Wanted> {
    for (const tab of tabs.values()) for (const wanted of tab.wantedById.values()) if (!wanted.refused) yield wanted;
  }

  const isWanted = (): boolean => !allWanted()[Symbol.iterator]().next().done;

  function receive(message: TabMessage, post: (message: HubMessage) => void): void {
    if (closed) return;
    if (message.kind === "announce") announce(message, post);
    else if (message.kind === "bye") forget(message.tab);
    else wake();
  }

  function announce({ tab: name, wanted }: TabMessage & { kind: "announce" }, post: Tab["post"]): void {
    let tab = tabs.get(name);
    if (!tab) {
      tab = { post, wantedById: new Map() };
      tabs.set(name, tab);
      void deps.tabGone(name).then(() => forget(name));
    }
    tab.post = post;
    const ids = new Set(wanted.map(({ id }) => id));
    for (const [id, one] of tab.wantedById) if (!ids.has(id)) unwant(tab, one);
    for (const { id, asked } of wanted) {
      if (tab.wantedById.has(id)) continue;
      tab.wantedById.set(id, { tab: name, id, asked, wire: undefined, refused: false, notBeforeMs: 0 });
    }
    reconcile();
  }

  function forget(name: string): void {
    const tab = tabs.get(name);
    if (!tab) return;
    for (const wanted of tab.wantedById.values()) unwant(tab, wanted);
    tabs.delete(name);
    reconcile();
  }

  function unwant(tab: Tab, wanted: Wanted): void {
    tab.wantedById.delete(wanted.id);
    if (wanted.wire === undefined) return;
    connection?.drop.push(wanted.wire);
    release(wanted);
  }

  /** Further frames for its wire id are ignored. */
  function release(wanted: Wanted): void {
    if (wanted.wire !== undefined) wantedByWire.delete(wanted.wire);
    wanted.wire = undefined;
  }

  /** Makes the connection carry what is wanted. */
  function reconcile(): void {
    stopLinger?.();
    stopLinger = undefined;
    if (!isWanted()) {
      stopLinger = deps.after(LINGER_MS, () => connection?.leave.abort());
      return;
    }
    if (!running) void run();
    else if (connection?.streamId !== undefined) void change(connection, connection.streamId);
  }

  /** Tries until nobody wants anything: one attempt at a time, for the whole browser. */
  async function run(): Promise<void> {
    running = true;
    while (!closed && isWanted()) {
      const outcome = await attempt();
      for (const wanted of wantedByWire.values()) wanted.wire = undefined;
      wantedByWire.clear();
      connection = undefined;
      if (closed || !isWanted()) break;
      for (const tab of tabs.values()) tab.post({ kind: "down" });
      failures = outcome === "failed" ? failures + 1 : 0;
      if (outcome !== "again") await backOff();
    }
    running = false;
  }

  function backOff(): Promise<void> {
    const ms = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** failures) * (0.5 + deps.random() / 2);
    return new Promise((resolve) => {
      const go = () => {
        hurry = undefined;
        resolve();
      };
      const cancel = deps.after(ms, go);
      hurry = () => {
        cancel();
        go();
      };
    });
  }

  /** Handles one connection from its opening to its end. */
  async function attempt(): Promise<"failed" | "ended" | "again"> {
    const present: Connection = {
      leave: new AbortController(),
      streamId: undefined,
      lastByteMs: deps.nowMs(),
      drop: [],
      changing: false,
    };
    connection = present;
    const sent = takeWaiting();
    const stopWatch = watchForSilence(present, deps);
    try {
      const response = await post("/v1/streams", { subscriptions: sent.map(toRequest) }, present.leave.signal);
      if (!response.ok) return (await refuseNamed(response, sent)) ? "again" : "failed";
      await readFrames(present, response, deps.nowMs, (frame) => take(present, frame));
      return "ended";
    } catch {
      // We ended it, or it broke off; the tabs get `down`.
      return present.streamId === undefined && !present.leave.signal.aborted ? "failed" : "ended";
    } finally {
      stopWatch();
    }
  }

  function take(present: Connection, { event, data }: Frame): void {
    const payload = data as JsonObject;
    if (event === "ready") {
      present.streamId = String(payload["streamId"]);
      failures = 0;
      reconcile();
    } else if (event === "frame") {
      const wanted = wantedByWire.get(String(payload["id"]));
      if (wanted) deliver(wanted, String(payload["event"]), payload["data"] as JsonObject);
    }
  }

  function deliver(wanted: Wanted, event: string, data: JsonObject): void {
    const tab = tabs.get(wanted.tab);
    if (event === "error" && !PASSING.has(errorOf(data).code)) {
      refuse(wanted, data);
    } else if (event === "error" || event === "closed") {
      release(wanted);
      wanted.notBeforeMs = deps.nowMs() + AGAIN_MS;
      deps.after(AGAIN_MS, reconcile);
      tab?.post({ kind: "down", id: wanted.id });
    } else {
      tab?.post({ kind: "frame", id: wanted.id, event, data });
    }
  }

  function refuse(wanted: Wanted, envelope: JsonObject): void {
    release(wanted);
    wanted.refused = true;
    tabs.get(wanted.tab)?.post({ kind: "refused", id: wanted.id, ...errorOf(envelope) });
  }

  /** Sends the changes to the server, one request at a time. */
  async function change(present: Connection, streamId: string): Promise<void> {
    if (present.changing) return;
    present.changing = true;
    try {
      while (connection === present) {
        const drop = present.drop.splice(0);
        const added = takeWaiting();
        if (drop.length === 0 && added.length === 0) return;
        const body = { drop, add: added.map(toRequest) };
        const response = await post(`/v1/streams/${streamId}`, body, present.leave.signal);
        if (response.ok) continue;
        // The request failed as a whole, so what was to be dropped is still to be dropped.
        present.drop.push(...drop);
        for (const wanted of added) if (wanted.wire !== undefined) release(wanted);
        if (!(await refuseNamed(response, added))) throw new Error("the stream is not there");
      }
    } catch {
      // The connection is of no more use, so it is opened again with everything that is wanted.
      present.leave.abort();
    } finally {
      present.changing = false;
    }
  }

  /** Refuses the subscription that the answer names; resolves to false when it names none. */
  async function refuseNamed(response: Response, sent: readonly Wanted[]): Promise<boolean> {
    const envelope = (await response.json()) as JsonObject;
    const { details } = errorOf(envelope);
    const index = /\[(\d+)\]/.exec(String(details?.["field"] ?? details?.["path"]))?.[1];
    const named = index === undefined ? undefined : sent[Number(index)];
    if (named) refuse(named, envelope);
    return named !== undefined;
  }

  /** Gives wire ids to waiting subscriptions, as many as there is room for. */
  function takeWaiting(): Wanted[] {
    const taken: Wanted[] = [];
    const nowMs = deps.nowMs();
    for (const wanted of allWanted()) {
      if (wantedByWire.size >= SUBSCRIPTIONS_MAX) break;
      if (wanted.wire !== undefined || wanted.notBeforeMs > nowMs) continue;
      wanted.wire = String(++wires);
      wantedByWire.set(wanted.wire, wanted);
      taken.push(wanted);
    }
    return taken;
  }

  function wake(): void {
    if (hurry) hurry();
    else if (connection && deps.nowMs() - connection.lastByteMs > SHORT_SILENCE_MS) connection.leave.abort();
  }

  function post(path: string, body: object, signal: AbortSignal): Promise<Response> {
    const headers = { "Content-Type": "application/json" };
    return deps.fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  }

  return {
    receive,
    close() {
      closed = true;
      stopLinger?.();
      tabs.clear();
      connection?.leave.abort();
      hurry?.();
    },
  };
}

function toRequest({ wire, asked }: Wanted): SubscriptionRequest {
  return { id: wire as string, ...asked };
}

interface WireError {
  code: string;
  message: string;
  details?: JsonObject;
}

function errorOf(envelope: JsonObject): WireError {
  return envelope["error"] as unknown as WireError;
}
