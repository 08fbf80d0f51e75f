import type { SubscriptionRequest } from "../../protocol/stream.ts";
import type { StreamSource } from "./stream-source.ts";

/** Takes the frames of a stream that was requested inside another one. */
export interface OuterStream {
  /** Starts the source. Throws what the source's start throws. */
  carry(source: StreamSource): Promise<void>;
}

/** Opens, for `POST /v1/streams`, the streams it carries through their own routes. */
export interface InnerStreams {
  /**
   * Why the request does not name an event stream of the API, as the reason of `request.invalid_field`; undefined when it
   * does.
   */
  fault(asked: SubscriptionRequest): string | undefined;
  /** Answers as the stream's route would, but sends the frames to `outer`: an empty 200, or an error envelope. */
  open(asked: SubscriptionRequest, outer: OuterStream, signal: AbortSignal): Promise<Response>;
}
