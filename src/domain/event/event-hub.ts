import type { Clock } from "../../base/clock.ts";
import { createRateLimit } from "../../base/rate-limit.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { EVENT_RATE, type EventDelivery, type EventReceiver, toBusEvent } from "./event-delivery.ts";
import { type EventQuery, readEventFilter } from "./event-filter.ts";
import { checkEvent } from "./event-rules.ts";
import { belowPattern, namesForeignTopic, topicOf } from "./event-topic.ts";
import type { DropReason, EventBus, EventInput, NetworkEvents } from "./port.ts";
import { createTopicInterest } from "./topic-interest.ts";

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
  stats(): EventStats;
}

export interface EventHubDeps {
  readonly accountId: string;
  readonly clock: Clock;
  readonly delivery: EventDelivery;
  readonly network: NetworkEvents;
  /**
   * Opens an active space and returns whether its current read key is here, so that an event can be sealed for it. Fails with the
   * space resolution errors (API-11).
   */
  requireSpace(spaceId: string): Promise<{ readonly hasReadKey: boolean }>;
}

/** Creates the in-process event bus of an account (EVENT-1): no snapshot, no replay. */
export function createEventHub({ accountId, clock, delivery, network, requireSpace }: EventHubDeps): EventHub {
  const interest = createTopicInterest(network);
  const outgoing = createRateLimit(clock, EVENT_RATE);
  let notSent = 0;

  const send = (event: EventInput): void => {
    if (event.scope === "device") return;
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
      return { subscribers: delivery.deliver(toBusEvent(input, accountId, accountId)) };
    },

    observe: delivery.observe,

    follow: (audience, prefix) => interest.follow(audience, belowPattern(prefix)),

    async subscribe(query, receive) {
      const filter = readEventFilter(query);
      for (const spaceId of filter.spaceIds) await requireSpace(spaceId);
      const forget = interest.add(filter);
      const close = delivery.open(filter, receive);
      return () => {
        close();
        forget();
      };
    },

    stats: () => ({ ...delivery.stats(), notSent }),
  };
}
