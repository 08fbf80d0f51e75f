import type { ComponentChildren } from "preact";
import type { StreamState } from "../stream/stream.ts";

const STATES = { connecting: "Loading", live: "Live", retrying: "Reconnecting", refused: "Refused" } as const;

/** Shows whether the content follows the server, with a text beside it. */
export function LiveLine({ state, children }: { state: StreamState; children?: ComponentChildren }) {
  return (
    <p class="live-line" role="status">
      <span class={`dot dot-${state}`} /> {STATES[state]}
      {state !== "refused" && children !== undefined && <span class="faint"> · {children}</span>}
    </p>
  );
}
