import { type Static, Type } from "@sinclair/typebox";
import { oneOf, strict } from "./schema.ts";

/** The HTTP interface of a push node: shapes, bounds and refusals (docs/push.md). */

export const PUSH_BOUNDS = {
  /** Body of a request to the node. */
  bodyBytes: 256 << 10,
  /** Base64 of a sealed payload: with the rest of a notification it stays under the 4,096 bytes that providers take. */
  sealedChars: 3_600,
  messageTopics: 256,
  /** Topics in one request that adds or drops them, and in one page of a list. */
  requestTopics: 1_000,
  /** Spaces whose topics one request adds or drops. */
  requestSpaces: 256,
  tokenChars: 4_096,
  /** Devices of one account in one answer. */
  listedDevices: 1_000,
  listedTopics: 100_000,
  /** A provider's reason for refusing something. */
  reasonChars: 10_000,
  /** Longest time that a node may be told to wait. */
  delayMs: 60 * 60_000,
} as const;

/** For how long a challenge may be answered. */
export const CHALLENGE_MS = 2 * 60_000;

/**
 * Headers of a request that proves an account, and of its answer. `state` names the node's state: when it differs from
 * before, the node has lost everything.
 */
export const PUSH_HEADERS = {
  account: "svc-account",
  challenge: "svc-challenge",
  signature: "svc-signature",
  state: "svc-state",
} as const;

export const PUSH_PATHS = {
  challenge: "/v1/challenge",
  token: "/v1/token",
  tokenDrop: "/v1/token/drop",
  devices: "/v1/devices",
  topics: "/v1/topics",
  topicsList: "/v1/topics/list",
  messages: "/v1/messages",
  deliveries: "/v1/deliveries",
  health: "/v1/health",
} as const;

export const PLATFORMS = ["ios", "android"] as const;
export type Platform = (typeof PLATFORMS)[number];

const BASE58 = "[1-9A-HJ-NP-Za-km-z]";
const HEX_32 = "^[0-9a-f]{32}$";
const HEX_64 = "^[0-9a-f]{64}$";
const account = () => Type.String({ pattern: `^A${BASE58}{20,80}$` });
const spaceKey = () =>
  Type.String({ pattern: `^${BASE58}{32,44}$`, description: "Base58 of the space's public push key" });
/** A topic is `chats`, `chats/<sha256 of the chat's id>`, either of them narrowed to an account, or an account. */
const topic = () =>
  Type.String({ pattern: `^(chats|(chats/[0-9a-f]{64}/)?A${BASE58}{20,80}|chats/[0-9a-f]{64})$`, maxLength: 200 });
const signature = () => Type.String({ pattern: "^[A-Za-z0-9_-]{86}$", description: "Base64url of 64 bytes" });
const device = () => Type.String({ pattern: HEX_32, description: "What the account calls the device" });
const token = () => Type.String({ minLength: 1, maxLength: PUSH_BOUNDS.tokenChars, pattern: "^[!-~]+$" });
const sealed = () =>
  Type.String({ minLength: 1, maxLength: PUSH_BOUNDS.sealedChars, pattern: "^[A-Za-z0-9+/]+={0,2}$" });
const kind = () => oneOf(["message", "read"]);
const reason = () => Type.String({ maxLength: PUSH_BOUNDS.reasonChars });

export const ChallengeBody = strict({ account: account() });

export const NodeTokenBody = strict({
  platform: oneOf(PLATFORMS),
  token: token(),
  device: device(),
  /** When the app gave the token to its server, which sends it to the node again at every start. */
  registeredMs: Type.Integer({ minimum: 0 }),
});
export type NodeTokenBody = Static<typeof NodeTokenBody>;

export const TokenDropBody = strict({ device: device() });

const TopicsOfSpace = {
  spaceKey: spaceKey(),
  topics: Type.Array(topic(), { minItems: 1, maxItems: PUSH_BOUNDS.requestTopics }),
};
export const TopicsBody = strict({
  add: Type.Optional(
    Type.Array(strict({ ...TopicsOfSpace, signature: signature() }), { maxItems: PUSH_BOUNDS.requestSpaces }),
  ),
  drop: Type.Optional(Type.Array(strict(TopicsOfSpace), { maxItems: PUSH_BOUNDS.requestSpaces })),
});
export type TopicsBody = Static<typeof TopicsBody>;

export const TopicsListBody = strict({ after: Type.Optional(strict({ spaceKey: spaceKey(), topic: topic() })) });

/** `more`: there are further topics after the last of these, which fill the page. */
export const TopicsPage = Type.Object({
  topics: Type.Array(Type.Object({ spaceKey: spaceKey(), topic: topic() }), { maxItems: PUSH_BOUNDS.requestTopics }),
  more: Type.Boolean(),
});
export type TopicsPage = Static<typeof TopicsPage>;

export const MessageBody = strict({
  /** 32 hex digits: a message sent again under the same id is accepted only once. */
  id: Type.String({ pattern: HEX_32 }),
  kind: kind(),
  spaceKey: spaceKey(),
  topics: Type.Array(topic(), { minItems: 1, maxItems: PUSH_BOUNDS.messageTopics }),
  /** Hex sha256 of the chat's id: notifications of one chat replace each other. */
  chat: Type.String({ pattern: HEX_64 }),
  /** The sender's own device, to which a `read` is not delivered. */
  device: device(),
  /** Names the key that opens the payload. */
  keyId: Type.String({ pattern: HEX_64 }),
  sealed: sealed(),
  /** Signature over the message, by the space's push key. */
  signature: signature(),
});
export type MessageBody = Static<typeof MessageBody>;

/** What a node without a provider's credentials asks its upstream node to deliver. */
export const DeliveryBody = strict({
  id: Type.String({ pattern: HEX_32 }),
  kind: kind(),
  platform: oneOf(PLATFORMS),
  token: token(),
  registeredMs: Type.Integer({ minimum: 0 }),
  chat: Type.String({ pattern: HEX_64 }),
  spaceKey: spaceKey(),
  keyId: Type.String({ pattern: HEX_64 }),
  sealed: sealed(),
});
export type DeliveryBody = Static<typeof DeliveryBody>;

/** A node's answer; unknown further fields are allowed. */
export const ChallengeReply = Type.Object({ challenge: Type.String({ minLength: 1, maxLength: 100 }) });
export const DevicesReply = Type.Object({
  devices: Type.Array(Type.Object({ device: device(), platform: oneOf(PLATFORMS) }), {
    maxItems: PUSH_BOUNDS.listedDevices,
  }),
});
export const MessageReply = Type.Object({ devices: Type.Integer({ minimum: 0 }) });
/** There is no body. */
export const NoReply = Type.Undefined();
/** The provider's outcome for a notification from a downstream node (`Outcome`). */
export const DeliveryReply = Type.Union([
  Type.Object({ kind: Type.Literal("accepted"), sandbox: Type.Optional(Type.Boolean()) }),
  Type.Object({ kind: Type.Literal("dead"), certain: Type.Boolean(), reason: reason() }),
  Type.Object({
    kind: Type.Literal("later"),
    delayMs: Type.Optional(Type.Number({ minimum: 0, maximum: PUSH_BOUNDS.delayMs })),
    everyone: Type.Boolean(),
    unreachable: Type.Optional(Type.Literal(true)),
    reason: reason(),
  }),
  Type.Object({ kind: Type.Literal("refused"), reason: reason() }),
]);

/** Refusals of a node: the status, and the default message. */
export const PUSH_NODE_ERRORS = {
  "push.bad_request": { status: 400, message: "The request does not match the route's schema; docs/push.md has it" },
  "push.unauthenticated": {
    status: 401,
    message: "The request is not signed by its account over a fresh challenge; POST /v1/challenge gives one",
  },
  "push.forbidden": { status: 403, message: "The space's push key did not sign this" },
  "push.not_downstream": { status: 403, message: "This node forwards for the nodes of its `downstreams` alone" },
  "push.not_found": { status: 404, message: "There is no such route" },
  "push.no_token": { status: 409, message: "Register a token first: without one there is nobody to notify" },
  "push.quota": { status: 409, message: "A quota of the account is used up" },
  "push.too_large": { status: 413, message: `A request has at most ${PUSH_BOUNDS.bodyBytes} bytes` },
  "push.too_often": { status: 429, message: "Too many requests; Retry-After says when to come again" },
  "push.unavailable": { status: 503, message: "The node cannot take this now; Retry-After says when to come again" },
  "push.internal": { status: 500, message: "Something failed inside the node; its log has the details" },
} as const satisfies Record<string, { status: number; message: string }>;
export type PushNodeErrorCode = keyof typeof PUSH_NODE_ERRORS;
