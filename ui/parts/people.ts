/** The author of something, in words: oneself, a name, or the end of an account id. */
import { computed } from "@preact/signals";
import { contacts, health } from "../state/session.ts";

const nameByIdentity = computed(() => new Map(contacts.value.map(({ identity, name }) => [identity, name])));

export function isMe(identity: string): boolean {
  return identity !== "" && identity === health.value?.account;
}

export function personName(identity: string): string {
  if (isMe(identity)) return "You";
  return nameByIdentity.value.get(identity) || `…${identity.slice(-8)}`;
}
