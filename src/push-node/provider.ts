import type { Delivery, Device } from "./state.ts";

/** What a provider is asked to carry: a sealed payload, and what it needs to know to show it in time. */
export interface Notification {
  readonly delivery: Delivery;
  readonly device: Device;
  /** At most 64 characters: a later notification of the same one replaces those that are not shown yet. */
  readonly collapseId: string;
}

/** How it went. */
export type Outcome =
  | { readonly kind: "accepted" /** Apple's environment that took it. */; readonly sandbox?: boolean }
  /** The token is nobody's any more. `certain` when the provider says so of this token; else it might be a fault of ours. */
  | { readonly kind: "dead"; readonly certain: boolean; readonly reason: string }
  /**
   * Try again: after `delayMs` where the provider said so. `everyone`: it holds for all tokens of the provider. `unreachable`:
   * nothing was heard of it.
   */
  | {
      readonly kind: "later";
      readonly delayMs?: number;
      readonly everyone: boolean;
      readonly unreachable?: true;
      readonly reason: string;
    }
  /** Never, and not for a reason of the token's. */
  | { readonly kind: "refused"; readonly reason: string };

/** A way to devices. `send` never rejects for what a provider or the network does. */
export interface Provider {
  readonly name: string;
  send(notification: Notification): Promise<Outcome>;
  close(): Promise<void>;
}

/** Days after which a provider forgets what it could not bring to a device. */
export const PROVIDER_EXPIRY_SECONDS = 7 * 24 * 60 * 60;
/** How long a provider may take over one notification. */
export const SEND_DEADLINE_MS = 10_000;

/** What a device is given beside what its platform wants: the sealed bytes, and by which keys to open them. */
export function sealedData({ delivery }: Notification): Record<string, string> {
  const { kind, spaceKey, keyId, sealed } = delivery;
  return { v: "1", kind, spaceKey, keyId, sealed };
}

/** Why a call over the network failed, for the log. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
