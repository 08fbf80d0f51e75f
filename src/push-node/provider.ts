import type { Delivery, Device } from "./state.ts";

/** What a provider is to deliver: a sealed payload, and what it needs to show it in time. */
export interface Notification {
  readonly delivery: Delivery;
  readonly device: Device;
  /** At most 64 characters: a later notification with the same id replaces those that are not shown yet. */
  readonly collapseId: string;
}

/** The outcome of a delivery. */
export type Outcome =
  | { readonly kind: "accepted" /** The Apple environment that accepted it. */; readonly sandbox?: boolean }
  /** The token is no longer valid. `certain`: the provider says so of this token; otherwise the fault may be ours. */
  | { readonly kind: "dead"; readonly certain: boolean; readonly reason: string }
  /**
   * Try again, after `delayMs` where the provider said so. `everyone`: this holds for all tokens of the provider.
   * `unreachable`: the provider did not answer.
   */
  | {
      readonly kind: "later";
      readonly delayMs?: number;
      readonly everyone: boolean;
      readonly unreachable?: true;
      readonly reason: string;
    }
  /** It can never be delivered, and the token is not the reason. */
  | { readonly kind: "refused"; readonly reason: string };

/** Reaches devices. `send` never rejects for a fault of the provider or the network. */
export interface Provider {
  readonly name: string;
  send(notification: Notification): Promise<Outcome>;
  close(): Promise<void>;
}

/** Time after which a provider forgets what it could not deliver to a device. */
export const PROVIDER_EXPIRY_SECONDS = 7 * 24 * 60 * 60;
/** How long a provider may take over one notification. */
export const SEND_DEADLINE_MS = 10_000;

/** What a device gets in addition to its platform's own fields: the sealed bytes, and which keys open them. */
export function sealedData({ delivery }: Notification): Record<string, string> {
  const { kind, spaceKey, keyId, sealed } = delivery;
  return { v: "1", kind, spaceKey, keyId, sealed };
}

/** Why a call over the network failed, for the log. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
