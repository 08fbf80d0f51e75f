import type { Clock } from "../../base/clock.ts";
import { createRateLimit } from "../../base/rate-limit.ts";
import { refusedAs, SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { encodeFrame } from "../../protocol/sse-frames.ts";
import { type EventFilter, type EventQuery, matchesFilter, readEventFilter } from "./event-filter.ts";
import { checkEvent } from "./event-rules.ts";
import { belowPattern, namesForeignTopic, parseTopic, topicOf } from "./event-topic.ts";
import type { BusEvent, DropReason, EventBus, EventInput, IncomingEvent, NetworkEvents } from "./port.ts";
import { createTopicInterest } from "./topic-interest.ts";

/** How many events one device may send over the network in a second, and how many at once. */
const PER_SECOND = 30;
const BURST = 60;
/**
 * What all devices of an account may send together, as a multiple of that: senders choose the names of their devices, so a limit
 * per device alone would not hold.
 */
const DEVICES = 4;

/** A stream: takes the frame of an event, and returns whether it could. */
type EventReceiver = (frame: Uint8Array) => boolean;

/** What the bus knows about itself, for diagnosis. */
interface EventStats {
  readonly subscribers: number;
  /** Events not sent to the network because there were too many at once. */
  readonly notSent: number;
  /** Events from the network that were not delivered, by reason. */
  readonly dropped: Readonly<Record<DropReason, number>>;
}

export interface EventHub extends EventBus {
  /**
   * Opens a stream; only what is published from now on is delivered, at most once. The result closes it.
   * Errors: request.missing_field, request.invalid_field, events.too_many_patterns, and the space's (not_found, …).
   */
  subscribe(query: EventQuery, receive: EventReceiver): Promise<() => void>;
  /** Takes an event from the network. Returns why it was dropped; undefined if it was delivered. */
  receive(incoming: IncomingEvent): DropReason | undefined;
  /** Connects the network, and announces again what streams want of it; undefined disconnects. */
  connect(network: NetworkEvents | undefined): void;
  stats(): EventStats;
}

export interface EventHubDeps {
  readonly accountId: string;
  readonly clock: Clock;
  /**
   * Opens an active space and returns whether its current read key is here, so that an event can be sealed for it. Fails with the
   * space resolution errors (API-11).
   */
  requireSpace(spaceId: string): Promise<{ readonly hasReadKey: boolean }>;
}

/** Creates the in-process event bus of an account (EVENT-1): no snapshot, no replay. */
export function createEventHub({ accountId, clock, requireSpace }: EventHubDeps): EventHub {
  const streams = new Set<{ filter: EventFilter; receive: EventReceiver }>();
  const observers = new Set<(event: BusEvent) => void>();
  let network: NetworkEvents | undefined;
  const interest = createTopicInterest(() => network);
  const limits = { perSecond: PER_SECOND, burst: BURST };
  const outgoing = createRateLimit(clock, limits);
  const incomingByDevice = createRateLimit(clock, limits);
  const incomingByAccount = createRateLimit(clock, { perSecond: DEVICES * PER_SECOND, burst: DEVICES * BURST });
  let notSent = 0;
  const dropped: Record<DropReason, number> = { malformed: 0, not_owned: 0, too_fast: 0 };

  const deliver = (event: BusEvent): number => {
    for (const observe of observers) observe(event);
    let frame: Uint8Array | undefined;
    let reached = 0;
    for (const stream of streams) {
      if (!matchesFilter(stream.filter, event)) continue;
      frame ??= encodeFrame("event", event);
      if (stream.receive(frame)) reached++;
    }
    return reached;
  };

  const send = (event: EventInput): void => {
    if (!network || event.scope === "device") return;
    if (outgoing.take("") > 0) {
      notSent++;
      return;
    }
    const topic = topicOf(event.type, event.target, accountId);
    const audience = event.scope === "space" ? { scope: event.scope, spaceId: event.spaceId! } : { scope: event.scope };
    network.send(audience, topic, event.data);
  };

  return {
    async publish(input) {
      checkEvent(input);
      const { type, target, scope, spaceId } = input;
      if (namesForeignTopic(type, target, accountId)) {
        throw refusedAs("events.topic_not_owned", { type, target }, refusal("event.foreign_topic", { type }));
      }
      if (scope === "space") {
        const { hasReadKey } = await requireSpace(spaceId!);
        if (!hasReadKey) throw svcError("events.no_read_key", { spaceId });
      }
      send(input);
      return { subscribers: deliver(toEvent(input, accountId, accountId)) };
    },

    observe(observer) {
      observers.add(observer);
      return () => void observers.delete(observer);
    },

    follow: (audience, prefix) => interest.follow(audience, belowPattern(prefix)),

    async subscribe(query, receive) {
      const filter = readEventFilter(query);
      for (const spaceId of filter.spaceIds) await requireSpace(spaceId);
      const forget = interest.add(filter);
      const stream = { filter, receive };
      streams.add(stream);
      return () => {
        streams.delete(stream);
        forget();
      };
    },

    receive(incoming) {
      const { identity, peerId } = incoming;
      const isSlow = incomingByAccount.take(identity) === 0 && incomingByDevice.take(`${identity} ${peerId}`) === 0;
      const reason = isSlow ? takeIn(incoming, accountId, deliver) : "too_fast";
      if (reason) dropped[reason]++;
      return reason;
    },

    connect(next) {
      network = next;
      interest.announceAll();
    },

    stats: () => ({ subscribers: streams.size, notSent, dropped: { ...dropped } }),
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
  deliver(toEvent(input, identity, accountId));
  return undefined;
}

function toEvent(input: EventInput, identity: string, accountId: string): BusEvent {
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
