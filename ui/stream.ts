/** A server stream that is followed: opened again when it ends, until the server refuses it or nobody looks. */
import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type ApiError, send, toApiError } from "./api-client.ts";
import { createFrameParser, type Frame } from "./frame-parser.ts";

export type StreamState = "connecting" | "live" | "retrying" | "refused";

export interface StreamRequest {
  method: "GET" | "POST";
  path: string;
  body?: object;
  /** The frame from which on the stream counts as live; `ready` unless something has to come first. */
  liveFrom?: string;
  /**
   * Stay connected while the page is hidden: for streams without a snapshot. The others are let go, because a browser
   * opens only six connections to one server, for all its tabs.
   */
  whileHidden?: boolean;
}

export interface StreamStatus {
  state: Signal<StreamState>;
  /** Why the stream is refused; it is not tried again. */
  error: Signal<ApiError | undefined>;
}

const RETRY_MS = 2000;

export function createStreamStatus(): StreamStatus {
  return { state: signal<StreamState>("connecting"), error: signal<ApiError | undefined>(undefined) };
}

/** Reads frames until aborted or refused; what else ends the stream is waited out. */
async function followStream(
  request: StreamRequest,
  status: StreamStatus,
  take: (frame: Frame) => void,
  aborted: AbortSignal,
): Promise<void> {
  const { method, path, body, liveFrom = "ready" } = request;
  while (!aborted.aborted) {
    try {
      const response = await send(method, path, body, aborted);
      await readFrames(response, (frame) => {
        take(frame);
        if (frame.event === liveFrom) status.state.value = "live";
      });
    } catch (fault) {
      if (aborted.aborted) return;
      const error = toApiError(fault);
      if (error.status >= 400 && error.status < 500) {
        status.error.value = error;
        status.state.value = "refused";
        return;
      }
    }
    if (aborted.aborted) return;
    status.state.value = "retrying";
    await pause(RETRY_MS, aborted);
  }
}

/** Follows a stream for as long as the component stands and asks for the same. */
export function useStream(request: StreamRequest, take: (frame: Frame) => void, status?: StreamStatus): StreamStatus {
  const own = useSignal(createStreamStatus());
  const used = status ?? own.value;
  // The newest `take` gets the frames; a new one alone opens no new stream.
  const newest = useRef(take);
  newest.current = take;
  useEffect(() => {
    let controller: AbortController | undefined;
    const update = () => {
      const wanted = request.whileHidden === true || document.visibilityState === "visible";
      if (wanted && !controller) {
        controller = new AbortController();
        void followStream(request, used, (frame) => newest.current(frame), controller.signal);
      } else if (!wanted && controller) {
        controller.abort();
        controller = undefined;
      }
    };
    update();
    document.addEventListener("visibilitychange", update);
    return () => {
      document.removeEventListener("visibilitychange", update);
      controller?.abort();
    };
  }, [JSON.stringify(request), used]);
  return used;
}

async function readFrames(response: Response, take: (frame: Frame) => void): Promise<void> {
  if (!response.body) return;
  const parse = createFrameParser();
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const frame of parse(decoder.decode(value, { stream: true }))) take(frame);
  }
}

function pause(ms: number, aborted: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    aborted.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
