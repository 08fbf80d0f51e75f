import type { Platform } from "../protocol/push-node.ts";

/** A device that wants to be woken: an account's name for it, and the token its provider gave it. */
export interface Device {
  readonly account: string;
  readonly device: string;
  readonly platform: Platform;
  readonly token: string;
  readonly registeredMs: number;
  /** Which of Apple's environments took the token last. */
  readonly sandbox?: boolean;
}

export interface SpaceTopic {
  readonly spaceKey: string;
  readonly topic: string;
}

/** One sealed payload for one device. */
export interface Delivery {
  /** The same for the same message and device, however often the message is sent. 32 hex digits. */
  readonly id: string;
  readonly account: string;
  readonly device: string;
  readonly kind: "message" | "read";
  readonly spaceKey: string;
  readonly chat: string;
  readonly keyId: string;
  readonly sealed: string;
  readonly attempts: number;
  readonly dueMs: number;
  /** Given up after this. */
  readonly expiresMs: number;
}

/**
 * What a node knows, behind a port: SQLite for a node of its own, a NATS key-value bucket that several nodes share. Whatever
 * resolves is durable. Methods of several steps leave nothing after a crash that doing them again would not mend.
 */
export interface PushState {
  /** 32 random bytes that all nodes of this state have in common, made on first use. */
  secret(): Promise<Uint8Array>;
  /** Uses a name up. False when somebody did before; it may be forgotten after `untilMs`. */
  spend(name: string, untilMs: number): Promise<boolean>;
  /** A token belongs to the device that registered it last, and to no other. */
  putDevice(device: Device): Promise<void>;
  dropDevice(account: string, device: string): Promise<void>;
  deviceOf(account: string, device: string): Promise<Device | undefined>;
  devicesOf(account: string): Promise<Device[]>;
  addTopics(account: string, spaceKey: string, topics: readonly string[]): Promise<void>;
  dropTopics(account: string, spaceKey: string, topics: readonly string[]): Promise<void>;
  topicCount(account: string): Promise<number>;
  /** An account's topics by space key and name, at most `limit` after the one given. */
  topicsOf(account: string, after: SpaceTopic | undefined, limit: number): Promise<SpaceTopic[]>;
  /** Accounts that watch one of these topics, each once. */
  subscribers(spaceKey: string, topics: readonly string[]): Promise<string[]>;
  /** Takes a message's deliveries on, once: false when a message of this name was taken before. */
  accept(name: string, untilMs: number, deliveries: readonly Delivery[]): Promise<boolean>;
  /** Deliveries that are due, which nobody else is given before the lease ends. */
  takeDue(nowMs: number, limit: number, leaseMs: number): Promise<Delivery[]>;
  /** When the next delivery is due; undefined while there is none. */
  nextDueMs(): Promise<number | undefined>;
  defer(delivery: Delivery, dueMs: number): Promise<void>;
  settle(delivery: Delivery): Promise<void>;
  pending(): Promise<number>;
  /** Forgets names that are past their time. */
  sweep(nowMs: number): Promise<void>;
  close(): Promise<void>;
}
