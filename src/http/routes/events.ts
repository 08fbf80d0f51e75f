import { EventBody, EventFrame, EventQuery, Published } from "../../protocol/event.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { type Route, route } from "../route.ts";
import { openStream } from "../sse.ts";

/** The event bus: it delivers at most once, without snapshot or replay (EVENT-1). */
export const eventRoutes: Route[] = [
  route({
    method: "POST",
    path: "/v1/events",
    id: "publishEvent",
    tag: "Events",
    summary: "Publish an event",
    description: "The server stamps the sender. An event is delivered at most once, to whoever listens now.",
    body: EventBody,
    example: { type: "ui.open_object", scope: "account", target: "bafyobject", data: { focus: true } },
    responses: { 200: { description: "Published", schema: Published, example: { subscribers: 1 } } },
    errors: [
      "events.payload_too_large",
      "events.no_read_key",
      "events.too_many_patterns",
      "events.topic_not_owned",
      "space.not_found",
      "space.not_accepted",
      "space.deleted",
    ],
    handler: async ({ engine, body }) => engine.events.publish(body),
  }),
  route({
    method: "GET",
    path: "/v1/events/subscribe",
    id: "watchEvents",
    tag: "Events",
    summary: "Listen to events",
    description:
      "Every parameter may be repeated: one of its values has to match, in every parameter that is given. `type` is an exact slug, or `x.*` for `x` and everything below it. Without parameters: all events of device and account scope.",
    query: EventQuery,
    responses: {
      200: {
        description: `Events published from now on. ${LIMITS.forwarderCapacity} are kept for a slow reader, then the stream closes with overflow`,
        frames: { event: EventFrame },
      },
    },
    errors: ["events.too_many_patterns", "space.not_found", "space.not_accepted", "space.deleted"],
    handler: async (ctx) =>
      openStream(ctx, {
        capacity: LIMITS.forwarderCapacity,
        overflow: "close",
        async start(sink) {
          const close = await ctx.engine.events.subscribe(ctx.query, (frame) => {
            sink.send(frame);
            return !sink.ended;
          });
          return { stop: close };
        },
      }),
  }),
];
