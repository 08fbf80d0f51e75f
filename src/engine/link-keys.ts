import { inviteLinkKeyOf, linkKeyOf, pairLinkKeyOf } from "../acl/record/space-keys.ts";
import type { MemberState } from "../acl/reducer/state.ts";
import { equalBytes } from "../base/bytes.ts";
import { createEvents } from "../base/events.ts";
import type { SpaceId } from "../base/ids.ts";
import { createWeightedCache } from "../base/weighted-cache.ts";
import type { Account } from "../crypto/account.ts";
import { sharedSecret } from "../crypto/box.ts";
import type { SpacePlace } from "../space/port/places.ts";
import type { Space } from "../space/space.ts";

interface LinkKey {
  readonly spaceId: SpaceId;
  readonly key: Uint8Array;
}

/**
 * The keys by which peers on the LAN recognise the spaces that they share with this account. They are kept from the first opened
 * space on, whether or not there is a LAN yet, because a space gives its keys only once, when it is opened.
 */
export type LinkKeys = ReturnType<typeof createLinkKeys>;

/** How many members are recognised one by one, former members last. Beyond that number only the present read key is used. */
const PAIRS = 64;
/** How many accounts' shared secrets are kept: they take long to compute, and are asked for at each change of a space. */
const SECRETS_KEPT = 4096;
/** How many revoked guest keys are still recognised, so that guests who read by them learn of it. */
const GUEST_KEYS = 8;
/**
 * How long an account that lost its membership, or a holder of a revoked guest key, may still recognise the space: it is served
 * the ACL log, which tells it so, but no content.
 */
const FADE_MS = 20_000;

/** `placeOf` returns what the token says by which this account joins, or joined, a space. */
export function createLinkKeys(account: Account, placeOf: (spaceId: SpaceId) => SpacePlace | undefined) {
  const keysBySpace = new Map<SpaceId, Uint8Array[]>();
  const secrets = createWeightedCache<Uint8Array>(SECRETS_KEPT);
  const secretWith = (other: Uint8Array): Uint8Array => {
    const secret = secrets.get(other.toHex()) ?? sharedSecret(account.seed, other);
    secrets.keep(other.toHex(), secret, 1);
    return secret;
  };
  /** Keys shown while this account looks for a space that is not held here. */
  const shown = new Set<LinkKey>();
  const events = createEvents<{ changed: [atOnce: boolean] }>();
  const notify = (atOnce = false): void => events.emit("changed", atOnce);

  /** Keys that a space no longer has. A peer that is known by these keys alone is sent the reason before its link ends. */
  const fading = new Set<LinkKey>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const fade = (keys: readonly LinkKey[]): void => {
    if (keys.length === 0) return;
    for (const key of keys) fading.add(key);
    const timer = setTimeout(() => {
      timers.delete(timer);
      for (const key of keys) fading.delete(key);
      notify();
    }, FADE_MS);
    timers.add(timer);
  };

  return {
    /** Returns all keys as they are now, because tokens come and go. */
    all: (): LinkKey[] => [
      ...[...keysBySpace].flatMap(([spaceId, keys]) =>
        [...keys, ...tokenKeys(placeOf(spaceId))].map((key) => ({ spaceId, key })),
      ),
      ...fading,
      ...shown,
    ],
    /** `atOnce`: a peer is waiting to be recognised by the key. Returns how to stop. */
    onChange: (listener: (atOnce: boolean) => void): (() => void) => events.on("changed", listener),
    /** Must be called when a space was opened, or when its keys or members changed. */
    spaceChanged(space: Space): void {
      const keys = linkKeysOf(space, account, secretWith);
      const known = keysBySpace.get(space.id) ?? [];
      if (known.length === keys.length && keys.every((key, index) => equalBytes(key, known[index]!))) return;
      keysBySpace.set(space.id, keys);
      const former = known.filter((key) => !keys.some((other) => equalBytes(key, other)));
      fade(former.map((key) => ({ spaceId: space.id, key })));
      notify();
    },
    spaceEnded(spaceId: SpaceId): void {
      for (const one of fading) if (one.spaceId === spaceId) fading.delete(one);
      if (keysBySpace.delete(spaceId)) notify();
    },
    /** Lets peers recognise this account by this key as well, until the returned function is called. */
    show(spaceId: SpaceId, key: Uint8Array): () => void {
      const one = { spaceId, key };
      shown.add(one);
      notify(true);
      return () => {
        shown.delete(one);
        notify();
      };
    },
    close(): void {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/**
 * Every holder of the present read key has the first of these keys. The secret that two members share lets in again a member that
 * missed a change of keys; a member that missed its own removal is served the ACL log, which tells it so, but no content. A
 * holder of an invite or the guest key finds the space by that key.
 */
function linkKeysOf(space: Space, account: Account, secretWith: (other: Uint8Array) => Uint8Array): Uint8Array[] {
  const { state } = space.acl;
  const current = space.keys.current();
  const keys = current ? [linkKeyOf(space.id, current.key)] : [];
  const others = [...state.members.values()].filter((member) => !equalBytes(member.account, account.signer.publicKey));
  const known = [...others.filter(({ status }) => status === "active"), ...latestFirst(others.filter(isFormer))];
  for (const { account: other } of known.slice(0, PAIRS)) keys.push(pairLinkKeyOf(space.id, secretWith(other)));
  for (const { key, permission } of state.invites.values())
    if (permission !== "none") keys.push(inviteLinkKeyOf(space.id, key));
  if (state.guest) keys.push(inviteLinkKeyOf(space.id, state.guest.key));
  const ended = latestFirst(others.filter(isFormerGuest)).slice(0, GUEST_KEYS);
  for (const { account: key } of ended) keys.push(inviteLinkKeyOf(space.id, key));
  return keys;
}

/** Accounts that were members, and have to learn that they no longer are. */
const isFormer = (member: MemberState): boolean =>
  ["removed", "removing"].includes(member.status) && !isFormerGuest(member);

const isFormerGuest = ({ status, history }: MemberState): boolean =>
  status === "removed" && history.some(({ permission }) => permission === "guest");

/** Accounts that were declined never had a permission, and come after those that had. */
const latestFirst = (members: readonly MemberState[]): MemberState[] =>
  members.toReversed().sort((a, b) => (b.history.at(-1)?.pos ?? -1) - (a.history.at(-1)?.pos ?? -1));

/** The space's members know an account that is not let in yet by the token alone. Tokens come and go. */
function tokenKeys(place: SpacePlace | undefined): Uint8Array[] {
  return place ? [place.linkKey] : [];
}
