/** Follows a server stream: opens it again when it ends, until the server refuses it or nobody needs it. */
import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ApiError } from "../api/api-client.ts";
import type { Frame } from "./frame-parser.ts";
import { follow } from "./stream-client.ts";
import type { Asked } from "./stream-messages.ts";

export type StreamState = "connecting" | "live" | "retrying" | "refused";

export interface StreamRequest extends Asked {
  /** The frame from which on the stream counts as live: `ready`, unless another one must come first. */
  liveFrom?: string;
  /**
   * Follow it while the page is hidden too. Needed for streams without a snapshot; the others get one when the page is
   * shown again.
   */
  whileHidden?: boolean;
}

export interface StreamStatus {
  state: Signal<StreamState>;
  /** Why the server refused the stream; it is not tried again. */
  error: Signal<ApiError | undefined>;
}

export function createStreamStatus(): StreamStatus {
  return { state: signal<StreamState>("connecting"), error: signal<ApiError | undefined>(undefined) };
}

/** Follows a stream while the component is mounted and its request stays the same. */
export function useStream(request: StreamRequest, take: (frame: Frame) => void, status?: StreamStatus): StreamStatus {
  const own = useSignal(createStreamStatus());
  const used = status ?? own.value;
  // The newest `take` gets the frames; a new `take` alone does not open a new stream.
  const newest = useRef(take);
  newest.current = take;
  useEffect(() => {
    let leave: (() => void) | undefined;
    const update = () => {
      const wanted = request.whileHidden === true || document.visibilityState === "visible";
      if (wanted && !leave) {
        leave = followInto(request, used, (frame) => newest.current(frame));
      } else if (!wanted && leave) {
        leave();
        leave = undefined;
      }
    };
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
      document.removeEventListener("visibilitychange", update);
      leave?.();
    };
  }, [JSON.stringify(request), used]);
  return used;
}

/** Follows a stream and keeps its status. */
function followInto(request: StreamRequest, status: StreamStatus, take: (frame: Frame) => void): () => void {
  const { method, path, body, liveFrom = "ready" } = request;
  return follow(
    { method, path, ...(body ? { body } : {}) },
    {
      frame(frame) {
        take(frame);
        if (frame.event === liveFrom) status.state.value = "live";
      },
      down() {
        if (status.state.peek() !== "connecting") status.state.value = "retrying";
      },
      refused(error) {
        status.error.value = error;
        status.state.value = "refused";
      },
    },
  );
}
