/** Who wrote something, in words: oneself, a name, or the end of an account id. */
import { signal } from "@preact/signals";
import { health } from "./session.ts";

/** Names of other accounts, as far as they are known. */
export const nameByIdentity = signal<ReadonlyMap<string, string>>(new Map());

export function isMe(identity: string): boolean {
  return identity !== "" && identity === health.value?.account;
}

export function personName(identity: string): string {
  if (isMe(identity)) return "You";
  return nameByIdentity.value.get(identity) ?? `…${identity.slice(-8)}`;
}
