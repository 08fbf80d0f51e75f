import type { EventScope } from "../../protocol/event.ts";
import type { Json } from "../../protocol/json.ts";

/** Body of `POST /v1/events`, its JSON types already checked. */
export interface EventInput {
  readonly type: string;
  readonly scope: EventScope;
  readonly spaceId?: string;
  readonly target?: string;
  readonly data?: Json;
}

/** An event as subscribers see it: the payload of an `event` frame. */
export interface BusEvent extends EventInput {
  /** Set by the server. `self` is true for every device of this account. */
  readonly sender: { readonly identity: string; readonly self: boolean };
}

/** The event bus as other features see it. */
export interface EventBus {
  /**
   * Publishes to every matching stream and, beyond device scope, to the network. Returns the number of local streams reached.
   * Errors: those of `POST /v1/events`.
   */
  publish(input: EventInput): Promise<{ subscribers: number }>;
  /** Calls back for every event of the bus, from here or from the network. Observers are not counted as subscribers. */
  observe(observer: (event: BusEvent) => void): () => void;
  /**
   * Receives events of an audience of the network whose types are below a prefix, even when no stream wants them. The result ends it.
   */
  follow(audience: EventAudience, prefix: string): () => void;
}

/** Where an event travels on the network: among the account's devices, or among a space's members. */
export type EventAudience = { readonly scope: "account" } | { readonly scope: "space"; readonly spaceId: string };

/**
 * What carries events between devices: core publish and subscribe, sealed for the audience. At most once: nothing is kept,
 * queued or sent again.
 */
export interface NetworkEvents {
  /** Sends one event; does nothing while there is no network. */
  send(audience: EventAudience, topic: string, data: Json | undefined): void;
  /** Replaces the topic patterns wanted from an audience; none means that nobody listens any more. */
  watch(audience: EventAudience, patterns: readonly string[]): void;
}

/** An event from the network, opened and with its sender proved; nothing else in it is trusted. */
export interface IncomingEvent {
  readonly audience: EventAudience;
  readonly topic: string;
  readonly data?: Json;
  /** Account that sent it. */
  readonly identity: string;
  /** Device it came from: the one whose rate is limited. */
  readonly peerId: string;
}

/** Why an event from the network was dropped. */
export type DropReason = "malformed" | "not_owned" | "too_fast";
