/** The page's knowledge of the server: polled every few seconds, and read again after any action that changes it. */
import { signal } from "@preact/signals";
import type { IdentityInfo } from "../../src/protocol/identity.ts";
import type { AuthStatus, Health } from "../../src/protocol/meta.ts";
import type { SpaceInfo } from "../../src/protocol/space.ts";
import { type ApiError, api, toApiError } from "../api/api-client.ts";

const POLL_MS = 5000;

export const health = signal<Health | undefined>(undefined);
export const authStatus = signal<AuthStatus | undefined>(undefined);
export const spaces = signal<readonly SpaceInfo[] | undefined>(undefined);
/** The other accounts with which this account shares spaces. */
export const contacts = signal<readonly IdentityInfo[]>([]);
/** Why the last poll failed. */
export const serverError = signal<ApiError | undefined>(undefined);
/**
 * A phrase that was just generated. It is held only here and dropped once its owner has confirmed that it is written
 * down.
 */
export const newMnemonic = signal<string | undefined>(undefined);

export async function refresh(): Promise<void> {
  try {
    [health.value, authStatus.value] = await Promise.all([api.health(), api.authStatus()]);
    if (authStatus.value.authorized)
      [spaces.value, contacts.value] = await Promise.all([api.spaces(), api.identities()]);
    serverError.value = undefined;
  } catch (error) {
    serverError.value = toApiError(error);
  }
}

/** Polls the server while the page is visible. */
export function startPolling(): void {
  void refresh();
  setInterval(() => {
    if (document.visibilityState === "visible") void refresh();
  }, POLL_MS);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") void refresh();
  });
}
