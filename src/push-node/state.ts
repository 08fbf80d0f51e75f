import type { Platform } from "../protocol/push-node.ts";

/** A device to be woken: the account's name for it, and its token from the provider. */
export interface Device {
  readonly account: string;
  readonly device: string;
  readonly platform: Platform;
  readonly token: string;
  readonly registeredMs: number;
  /** Which of Apple's environments last accepted the token. */
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
  /** It is given up after this time. */
  readonly expiresMs: number;
}

/**
 * What a node stores, behind a port: SQLite for a single node, or a NATS key-value bucket that several nodes share.
 * Whatever resolves is durable. After a crash within a method of several steps, calling it again repairs whatever it
 * left.
 */
export interface PushState {
  /** 32 random bytes that all nodes of this state share, made on first use. */
  secret(): Promise<Uint8Array>;
  /** Uses up a name. Resolves to false when it was used before; it may be forgotten after `untilMs`. */
  spend(name: string, untilMs: number): Promise<boolean>;
  /** Gives the token to this device; any other device that had it loses it. */
  putDevice(device: Device): Promise<void>;
  dropDevice(account: string, device: string): Promise<void>;
  deviceOf(account: string, device: string): Promise<Device | undefined>;
  devicesOf(account: string): Promise<Device[]>;
  addTopics(account: string, spaceKey: string, topics: readonly string[]): Promise<void>;
  dropTopics(account: string, spaceKey: string, topics: readonly string[]): Promise<void>;
  topicCount(account: string): Promise<number>;
  /** An account's topics in the order of space key and name: at most `limit`, after the given one. */
  topicsOf(account: string, after: SpaceTopic | undefined, limit: number): Promise<SpaceTopic[]>;
  /** Accounts that watch one of these topics, each once. */
  subscribers(spaceKey: string, topics: readonly string[]): Promise<string[]>;
  /** Accepts a message's deliveries once; resolves to false when a message of this name was accepted before. */
  accept(name: string, untilMs: number, deliveries: readonly Delivery[]): Promise<boolean>;
  /** Takes due deliveries; nobody else gets them before the lease ends. */
  takeDue(nowMs: number, limit: number, leaseMs: number): Promise<Delivery[]>;
  /** When the next delivery is due; undefined while there is none. */
  nextDueMs(): Promise<number | undefined>;
  defer(delivery: Delivery, dueMs: number): Promise<void>;
  /** A delivery was made, or is made no more. */
  finish(delivery: Delivery): Promise<void>;
  pending(): Promise<number>;
  /** Forgets expired names. */
  sweep(nowMs: number): Promise<void>;
  close(): Promise<void>;
}
