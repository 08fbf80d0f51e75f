import type { SubscriptionRequest } from "../protocol/stream.ts";
import type { StreamSource } from "./stream-source.ts";

/** Takes the frames of a stream that was asked for inside another one. */
export interface OuterStream {
  /** Starts the source. Throws what the source's start throws. */
  carry(source: StreamSource): Promise<void>;
}

/** The way from `POST /v1/streams` to the routes of the streams it carries. */
export interface InnerStreams {
  /** Why this names no event stream of the API, as the reason of `request.invalid_field`; undefined when it does. */
  fault(asked: SubscriptionRequest): string | undefined;
  /** Answers it as its route would, the frames going to `outer`: an empty 200, or an error envelope. */
  open(asked: SubscriptionRequest, outer: OuterStream, signal: AbortSignal): Promise<Response>;
}
