import { type Argon2Parameters, argon2 } from "node:crypto";
import { utf8ToBytes } from "../base/bytes.ts";
import { createSemaphore } from "../base/semaphore.ts";

export interface PasskeyCost {
  readonly memoryKiB: number;
  readonly passes: number;
  readonly parallelism: number;
}

/** The cost for new wallets: RFC 9106 § 4's second recommendation on one lane. About 0.3 s and 64 MiB. */
export const PASSKEY_COST: PasskeyCost = { memoryKiB: 64 * 1024, passes: 3, parallelism: 1 };
export const PASSKEY_SALT_BYTES = 16;

/** The costs accepted from a file, so that a hostile file can demand neither all memory nor hours of work. */
const COST_BOUNDS: Readonly<Record<keyof PasskeyCost, readonly [min: number, max: number]>> = {
  memoryKiB: [8 * 1024, 512 * 1024],
  passes: [1, 10],
  parallelism: [1, 4],
};

/** Names the first parameter that is out of bounds, with its bounds; returns undefined when all are acceptable. */
export function passkeyCostFault(
  cost: PasskeyCost,
): { part: keyof PasskeyCost; least: number; most: number } | undefined {
  for (const part of ["memoryKiB", "passes", "parallelism"] as const) {
    const [least, most] = COST_BOUNDS[part];
    const value = cost[part];
    if (!Number.isInteger(value) || value < least || value > most) return { part, least, most };
  }
  return undefined;
}

/** Guesses that are sent in parallel must not multiply the memory. */
const inTurn = createSemaphore(1);

/**
 * Derives the 32-byte key of a passkey (NFKC, so that it does not depend on the keyboard), by argon2id on a native
 * thread.
 */
export function passkeyToKey(passkey: string, salt: Uint8Array, cost: PasskeyCost): Promise<Uint8Array> {
  const message = utf8ToBytes(passkey.normalize("NFKC"));
  const { memoryKiB, passes, parallelism } = cost;
  return inTurn(() => argon2id({ message, nonce: salt, memory: memoryKiB, passes, parallelism, tagLength: 32 }));
}

/** RFC 9106 argon2id, version 0x13. `memory` is in KiB. */
export function argon2id(parameters: Argon2Parameters): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    argon2("argon2id", parameters, (error, tag) => (error ? reject(error) : resolve(new Uint8Array(tag))));
  });
}
