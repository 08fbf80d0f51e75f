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
  const listeners: ((transport: Transport) => void)[] = [];
  return {
    joined,
    join(transport) {
      joined.push(transport);
      for (const listener of listeners) listener(transport);
    },
    onJoined: (listener) => void listeners.push(listener),
  };
}
