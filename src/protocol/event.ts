import { type Static, Type } from "@sinclair/typebox";
import { EVENT_TYPE_GRAMMAR, TARGET_GRAMMAR } from "./event-grammar.ts";
import type { Json } from "./json.ts";
import { named, oneOf, strict } from "./schema.ts";

/**
 * Who receives an event: the clients of this server; those of all devices of the account; those of all members of a
 * space.
 */
export const EVENT_SCOPES = ["device", "account", "space"] as const;
export type EventScope = (typeof EVENT_SCOPES)[number];

const TYPE = /^[a-z0-9_]+(\.[a-z0-9_]+)*$/;
const TARGET = /^[A-Za-z0-9._-]{1,128}$/;
const MAX_TYPE_CHARS = 128;

export function isEventType(text: string): boolean {
  return text.length <= MAX_TYPE_CHARS && TYPE.test(text);
}

/** The grammar of event targets and of process ids. */
export function isTarget(text: string): boolean {
  return TARGET.test(text);
}

const scopeField = oneOf(EVENT_SCOPES, { description: "Who the event reaches" });
const spaceField = Type.Optional(Type.String({ description: "With scope space, and only then" }));
const targetField = Type.Optional(Type.String({ description: `What it is about; ${TARGET_GRAMMAR}` }));

export const EventBody = named(
  "EventBody",
  strict({
    type: Type.String({ description: `What happened; ${EVENT_TYPE_GRAMMAR}` }),
    scope: scopeField,
    spaceId: spaceField,
    target: targetField,
    data: Type.Optional(Type.Unsafe<Json>(Type.Unknown({ description: "Any JSON of at most 64 KiB" }))),
  }),
);

/** Reply to whatever publishes an event. */
export const Published = named(
  "Published",
  strict({
    subscribers: Type.Integer({ minimum: 0, description: "Streams of this server that the event reached" }),
  }),
);

export const EventFrame = named(
  "EventFrame",
  strict({
    type: Type.String(),
    scope: scopeField,
    spaceId: spaceField,
    target: targetField,
    data: Type.Optional(Type.Unknown()),
    sender: strict({
      identity: Type.String({ description: "Account that published it" }),
      self: Type.Boolean({ description: "True for every device of this account" }),
    }),
  }),
);

const values = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));

export const EventQuery = Type.Object({
  scope: values("device, account or space; without one device and account, or with spaceId those spaces"),
  spaceId: values("Spaces whose events are wanted; required with scope space"),
  type: values("An exact type, or `x.*` for `x` and everything below it"),
  target: values("An exact target"),
});

export const ProcessStartBody = named(
  "ProcessStartBody",
  strict({
    id: Type.String({ description: `Chosen by the publisher; ${TARGET_GRAMMAR}` }),
    kind: Type.String({ description: "What kind of work it is, at most 128 bytes" }),
    title: Type.String({ description: "For people, at most 256 bytes" }),
    scope: scopeField,
    spaceId: spaceField,
    target: Type.Optional(Type.String({ description: `What it works on; ${TARGET_GRAMMAR}` })),
  }),
);
export type ProcessStartBody = Static<typeof ProcessStartBody>;

export const ProcessProgressBody = named(
  "ProcessProgressBody",
  strict({
    done: Type.Optional(Type.Number({ minimum: 0 })),
    total: Type.Optional(Type.Number({ minimum: 0, description: "0: unknown" })),
    message: Type.Optional(Type.String({ description: "At most 1024 bytes; empty clears it" })),
  }),
);
export type ProcessProgressBody = Static<typeof ProcessProgressBody>;

export const ProcessError = named(
  "ProcessError",
  strict({
    code: Type.Optional(Type.String()),
    message: Type.String(),
  }),
);
export type ProcessError = Static<typeof ProcessError>;

export const ProcessFinishBody = named(
  "ProcessFinishBody",
  strict({
    status: oneOf(["done", "failed", "cancelled"]),
    error: Type.Optional(
      Type.Unknown({ description: "With status failed, and only then: an object {code?, message}" }),
    ),
  }),
);
export type ProcessFinishBody = Static<typeof ProcessFinishBody>;

export const ProcessCancelBody = named(
  "ProcessCancelBody",
  strict({
    identity: Type.Optional(Type.String({ description: "Whose process, where several accounts run one with this id" })),
  }),
);

export const ProcessRow = named(
  "ProcessRow",
  strict({
    identity: Type.String({ description: "Account that runs it" }),
    self: Type.Boolean(),
    id: Type.String(),
    kind: Type.String(),
    title: Type.String(),
    scope: scopeField,
    spaceId: spaceField,
    target: targetField,
    state: oneOf(["running", "done", "failed", "cancelled"]),
    done: Type.Number({ minimum: 0 }),
    total: Type.Optional(Type.Number({ description: "Absent: unknown" })),
    message: Type.Optional(Type.String()),
    error: Type.Optional(ProcessError),
    startedAt: Type.Integer({ description: "Unix seconds of this device's clock" }),
    updatedAt: Type.Integer({ description: "Unix seconds of this device's clock" }),
  }),
);
export type ProcessRow = Static<typeof ProcessRow>;
