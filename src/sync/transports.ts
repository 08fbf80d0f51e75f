import { createEvents } from "../base/events.ts";
import type { Transport } from "./transport.ts";

/** The transports that have joined. There are none at first: each joins when it has started, behind the listener. */
export interface Transports {
  readonly joined: readonly Transport[];
  join(transport: Transport): void;
  /** Calls back with each transport that joins from now on. */
  onJoined(listener: (transport: Transport) => void): void;
}

export function createTransports(): Transports {
  const joined: Transport[] = [];
  const events = createEvents<{ joined: [transport: Transport] }>();
  return {
    joined,
    join(transport) {
      joined.push(transport);
      events.emit("joined", transport);
    },
    onJoined: (listener) => void events.on("joined", listener),
  };
}
