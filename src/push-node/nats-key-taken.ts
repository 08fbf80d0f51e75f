import { JetStreamApiError } from "@nats-io/jetstream";

/** NATS' "wrong last sequence": the key existed already, or changed meanwhile. */
const WRONG_SEQUENCE = 10_071;

/** Whether a write lost to another write of the same key. */
export function isKeyTaken(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === WRONG_SEQUENCE;
}
