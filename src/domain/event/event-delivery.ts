import type { Clock } from "../../base/clock.ts";
import { createEvents } from "../../base/events.ts";
import { createRateLimit } from "../../base/rate-limit.ts";
import { SvcError } from "../../protocol/errors.ts";
import { encodeFrame } from "../../protocol/sse-frames.ts";
import { type EventFilter, matchesFilter } from "./event-filter.ts";
import { checkEvent } from "./event-rules.ts";
import { namesForeignTopic, parseTopic } from "./event-topic.ts";
import type { BusEvent, DropReason, EventInput, IncomingEvent } from "./port.ts";

/** How many events one device may send over the network in a second, and how many at once. */
export const EVENT_RATE = { perSecond: 30, burst: 60 };
/**
 * What all devices of an account may send together, as a multiple of that: senders choose the names of their devices, so a limit
 * per device alone would not hold.
 */
const DEVICES = 4;

/** A stream: takes the frame of an event, and returns whether it could. */
export type EventReceiver = (frame: Uint8Array) => boolean;

/** What is delivered here, to streams and observers: events from here, and those that the network brings. */
export interface EventDelivery {
  /** Delivers an event. Returns the number of streams that took it. */
  deliver(event: BusEvent): number;
  observe(observer: (event: BusEvent) => void): () => void;
  /** Opens a stream, to which every event that matches is delivered. The result closes it. */
  open(filter: EventFilter, receive: EventReceiver): () => void;
  /** Takes an event from the network. Returns why it was dropped; undefined if it was delivered. */
  receive(incoming: IncomingEvent): DropReason | undefined;
  stats(): { readonly subscribers: number; readonly dropped: Readonly<Record<DropReason, number>> };
}

export function createEventDelivery({ accountId, clock }: { accountId: string; clock: Clock }): EventDelivery {
  const streams = new Set<{ filter: EventFilter; receive: EventReceiver }>();
  const events = createEvents<{ delivered: [event: BusEvent] }>();
  const incomingByDevice = createRateLimit(clock, EVENT_RATE);
  const incomingByAccount = createRateLimit(clock, {
    perSecond: DEVICES * EVENT_RATE.perSecond,
    burst: DEVICES * EVENT_RATE.burst,
  });
  const dropped: Record<DropReason, number> = { malformed: 0, not_owned: 0, too_fast: 0 };

  const deliver = (event: BusEvent): number => {
    events.emit("delivered", event);
    let frame: Uint8Array | undefined;
    let reached = 0;
    for (const stream of streams) {
      if (!matchesFilter(stream.filter, event)) continue;
      frame ??= encodeFrame("event", event);
      if (stream.receive(frame)) reached++;
    }
    return reached;
  };

  return {
    deliver,
    observe: (observer) => events.on("delivered", observer),
    open(filter, receive) {
      const stream = { filter, receive };
      streams.add(stream);
      return () => void streams.delete(stream);
    },
    receive(incoming) {
      const { identity, peerId } = incoming;
      const isSlow = incomingByAccount.take(identity) === 0 && incomingByDevice.take(`${identity} ${peerId}`) === 0;
      const reason = isSlow ? takeIn(incoming, accountId, deliver) : "too_fast";
      if (reason) dropped[reason]++;
      return reason;
    },
    stats: () => ({ subscribers: streams.size, dropped: { ...dropped } }),
  };
}

/** Checks an event from the network as one from a client is checked, and that its topic is its sender's to use. */
function takeIn(
  incoming: IncomingEvent,
  accountId: string,
  deliver: (event: BusEvent) => void,
): DropReason | undefined {
  const { audience, identity, data } = incoming;
  const topic = parseTopic(incoming.topic);
  if (!topic) return "malformed";
  const input: EventInput = {
    type: topic.type,
    scope: audience.scope,
    ...(audience.scope === "space" ? { spaceId: audience.spaceId } : {}),
    ...(topic.target === undefined ? {} : { target: topic.target }),
    ...(data === undefined ? {} : { data }),
  };
  try {
    checkEvent(input);
  } catch (fault) {
    // The sender of an event from the network gets no reason, unlike a client.
    if (fault instanceof SvcError) return "malformed";
    throw fault;
  }
  const owned = topic.owner === undefined || topic.owner === identity;
  if (!owned || namesForeignTopic(topic.type, topic.target, identity)) return "not_owned";
  deliver(toBusEvent(input, identity, accountId));
  return undefined;
}

/** The event as it is shown on the devices of `accountId`. */
export function toBusEvent(input: EventInput, identity: string, accountId: string): BusEvent {
  const { type, scope, spaceId, target, data } = input;
  return {
    type,
    scope,
    ...(spaceId === undefined ? {} : { spaceId }),
    ...(target === undefined ? {} : { target }),
    ...(data === undefined ? {} : { data }),
    sender: { identity, self: identity === accountId },
  };
}
