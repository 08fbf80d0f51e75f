import type { Subscription } from "@nats-io/transport-node";
import { utf8ToBytes } from "../../base/bytes.ts";
import type { Log } from "../../base/log.ts";
import { open, SEAL_OVERHEAD_BYTES, seal } from "../../crypto/seal.ts";
import type { NatsLink } from "./nats-link.ts";
import { networkFailure } from "./network-error.ts";
import { type ChannelKeys, eventSubject } from "./subjects.ts";

/**
 * Events over core pub/sub: nothing is stored, nothing is acknowledged, and who is not connected misses them. Payloads
 * come signed and sealed by whoever publishes; the outer seal here only hides them from the network.
 */
export interface EventBus extends Disposable {
  /** Sends to whoever listens now. False when there is no connection. Throws RangeError above the limit. */
  publish(keys: ChannelKeys, topic: string, payload: Uint8Array): boolean;
  /**
   * Payloads on the topics that a pattern names (`ev/process/>`, `*` for one segment), from any peer but this
   * connection, over every loss of the connection until disposed. The topic cannot be read back
   * from the network: the payload has to carry it. What does not open is dropped and counted.
   */
  subscribe(keys: ChannelKeys, pattern: string, handler: (payload: Uint8Array) => void): Disposable;
  dropped(): number;
}

/** 64 KiB of data as JSON, sealed, with room for its envelope. */
const EVENT_PAYLOAD_BYTES_MAX = 128 << 10;

interface Registration {
  readonly subject: string;
  readonly keys: ChannelKeys;
  readonly handler: (payload: Uint8Array) => void;
  subscription?: Subscription;
}

export function createEventBus(link: NatsLink, log: Log): EventBus {
  const registrations = new Set<Registration>();
  let dropped = 0;

  const attach = (registration: Registration) => {
    const connection = link.connection();
    if (!connection) return;
    registration.subscription = connection.nc.subscribe(registration.subject, {
      callback: (error, message) => {
        if (error) return log.warn("network: events are not delivered", { err: networkFailure(error) });
        const fits = message.data.length <= EVENT_PAYLOAD_BYTES_MAX + SEAL_OVERHEAD_BYTES;
        const payload = fits ? open(registration.keys.sealKey, message.data, utf8ToBytes(message.subject)) : undefined;
        if (payload) registration.handler(payload);
        else dropped++;
      },
    });
  };
  const stopFollowing = link.onConnected(() => {
    for (const registration of registrations) attach(registration);
  });

  return {
    publish: (keys, topic, payload) => {
      if (payload.length > EVENT_PAYLOAD_BYTES_MAX) throw new RangeError(`an event of ${payload.length} bytes`);
      const connection = link.connection();
      if (!connection) return false;
      try {
        const subject = eventSubject(keys, topic);
        connection.nc.publish(subject, seal(keys.sealKey, payload, utf8ToBytes(subject)));
        return true;
      } catch (error) {
        log.debug("network: an event was not sent", { err: error }); // the connection closed under it
        return false;
      }
    },
    subscribe: (keys, pattern, handler) => {
      const registration: Registration = { subject: eventSubject(keys, pattern), keys, handler };
      registrations.add(registration);
      attach(registration);
      return {
        [Symbol.dispose]: () => {
          registrations.delete(registration);
          registration.subscription?.unsubscribe();
        },
      };
    },
    dropped: () => dropped,
    [Symbol.dispose]: () => {
      stopFollowing();
      for (const registration of registrations) registration.subscription?.unsubscribe();
      registrations.clear();
    },
  };
}
