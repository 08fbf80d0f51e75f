import { type Static, Type } from "@sinclair/typebox";
import { LIMITS } from "./limits.ts";
import { named, oneOf, strict } from "./schema.ts";

/** A stream that carries others is not itself carried by another. */
export const STREAMS_PATH = "/v1/streams";

const SubscriptionId = Type.String({
  minLength: 1,
  maxLength: LIMITS.subscriptionIdChars,
  description: "Chosen by the client; no two of a stream at a time are the same",
});

/** One event stream of this API that a multiplexed stream is to carry. */
const SubscriptionRequest = named(
  "SubscriptionRequest",
  strict({
    id: SubscriptionId,
    method: oneOf(["GET", "POST"]),
    path: Type.String({
      description:
        "Path of an endpoint that answers with an event stream, with its query; segments are percent-encoded",
    }),
    body: Type.Optional(Type.Unknown({ description: "Its JSON body" })),
  }),
);
export type SubscriptionRequest = Static<typeof SubscriptionRequest>;

const Subscriptions = Type.Array(SubscriptionRequest, { maxItems: LIMITS.streamSubscriptions });

export const OpenStreamsBody = named("OpenStreamsBody", strict({ subscriptions: Subscriptions }));

export const ChangeStreamsBody = named(
  "ChangeStreamsBody",
  strict({
    add: Type.Optional(Subscriptions),
    drop: Type.Optional(Type.Array(Type.String(), { description: "Ids; done before anything is added" })),
  }),
);

export const StreamsReady = named(
  "StreamsReady",
  strict({ streamId: Type.String({ description: "For POST /v1/streams/:streamId" }) }),
);
