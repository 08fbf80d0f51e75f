import { judgeOfferedAcl } from "../../acl/log/offered-log.ts";
import { pairLinkKeyOf } from "../../acl/record/space-keys.ts";
import { permissionOf } from "../../acl/reducer/state.ts";
import { bytesToHex } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import type { Service } from "../../base/service.ts";
import type { Account } from "../../crypto/account.ts";
import { parseAccountId } from "../../crypto/account-id.ts";
import { sharedSecret } from "../../crypto/box.ts";
import { LIMITS } from "../../protocol/limits.ts";
import type { SpacePlace } from "../../space/port/places.ts";
import type { AccountStore, SpaceClaim } from "../../store/account-store.ts";

/** What an account that was added to a space is told about it, in a message that only it can read. */
export interface DirectAdd {
  spaceId: SpaceId;
  /** Who says so. */
  adder: AccountId;
  /** The secret of the space's place on the network. */
  transportSecret: Uint8Array;
  name?: string;
}

/** Looks for spaces that go on at once: each keeps a channel, or a key that peers may recognise, open for seconds. */
const LOOKS_AT_ONCE = 4;
/** How often a claim is looked into at first, for a minute; later less and less often. */
const LOOK_AGAIN_MS = 2_000;
const FIRST_LOOKS = 30;
const LOOK_AGAIN_MAX_MS = 600_000;
/** Of more than that so many are looked into in all: who floods the list holds up the first look into no other for long. */
const MANY_CLAIMS = 64;
const LOOK_PACE_MS = 1_000;

interface SpaceClaimsDeps {
  account: Account;
  store: AccountStore;
  clock: Clock;
  log: Log;
  /** The ACL log of a space that is not held here, if anybody who is reached has it. */
  findAclLog(place: SpacePlace): Promise<Uint8Array[] | undefined>;
  /** Whether this account shares a space with another; claims of such accounts are kept before those of strangers. */
  isKnown(identity: string): boolean;
  /** Whether something can still come of a claim. */
  isWanted(spaceId: SpaceId): boolean;
  isHere(spaceId: SpaceId): boolean;
  /** Whether the log of a space that is here leads to the place of this secret. */
  leadsThere(spaceId: SpaceId, secret: Uint8Array): Promise<boolean>;
  /** The space's own ACL log says that this account is a member. False: there is no room yet, and it is tried again. */
  verified(add: DirectAdd): Promise<boolean>;
}

/**
 * What others say of spaces to which they added this account. A claim is believed when the space's ACL log, found by what
 * the claim says and verified from its root on, confirms it. Until then it is kept on this device alone, in a bounded
 * number, and shown to nobody: a message with the id of any space costs its sender nothing. Several claims may name one
 * space; the first that holds counts.
 */
export type SpaceClaims = Service & { add(add: DirectAdd): Promise<void> };

export function createSpaceClaims(deps: SpaceClaimsDeps): SpaceClaims {
  const { account, store, clock, log } = deps;
  const semaphore = createSemaphore(LOOKS_AT_ONCE);
  const timers = new Map<string, ReturnType<typeof setTimeout>>();
  /** Looks into each claim again, as after a start. */
  const looks = new Map<string, number>();
  let stopped = true;

  const nameOf = ({ spaceId, adder }: Pick<SpaceClaim, "spaceId" | "adder">): string => `${spaceId} ${adder}`;
  const drop = (claim: SpaceClaim): void => {
    store.dropSpaceClaim(claim);
    clearTimeout(timers.get(nameOf(claim)));
    timers.delete(nameOf(claim));
    looks.delete(nameOf(claim));
  };

  /** Of too many claims one in the middle gives way, a stranger's first: neither what came before a flood nor what comes after. */
  const makeRoom = (): void => {
    if (store.countSpaceClaims() <= LIMITS.claims) return;
    const claims = store.spaceClaims();
    const middle = LIMITS.claims / 2;
    const outwards = [...claims.slice(middle, -1), ...claims.slice(0, middle).reverse()];
    drop(outwards.find(({ adder }) => !deps.isKnown(adder)) ?? outwards[0]!);
  };

  /**
   * Whether the space itself says that this account is a member of it, and that the author of the claim was one at any
   * time.
   */
  const holds = async (claim: SpaceClaim): Promise<boolean> => {
    const spaceId = claim.spaceId as SpaceId;
    const adder = parseAccountId(claim.adder);
    if (!adder) return false;
    const linkKey = pairLinkKeyOf(spaceId, sharedSecret(account.seed, adder));
    const records = await deps.findAclLog({
      spaceId,
      transportSecret: claim.transport,
      linkKey,
      seeds: [account.seed],
    });
    const offered = records && (await judgeOfferedAcl(spaceId, records));
    if (!offered || offered.header.kind === "onetoone") return false;
    const { state } = offered;
    const isMember = permissionOf(state, account.signer.publicKey) !== "none" && state.deletedAt === undefined;
    return isMember && (state.members.get(bytesToHex(adder))?.history.length ?? 0) > 0;
  };

  const look = async (claim: SpaceClaim): Promise<void> => {
    if (stopped || !store.spaceClaimsOf(claim.spaceId).some(({ adder }) => adder === claim.adder)) return;
    const spaceId = claim.spaceId as SpaceId;
    if (!deps.isWanted(spaceId)) return drop(claim);
    // A member that was removed, and added again, may have heard of neither.
    if (deps.isHere(spaceId)) return (await deps.leadsThere(spaceId, claim.transport)) ? drop(claim) : lookLater(claim);
    const add: DirectAdd = {
      spaceId,
      adder: claim.adder as AccountId,
      transportSecret: claim.transport,
      ...(claim.name === "" ? {} : { name: claim.name }),
    };
    if ((await holds(claim)) && !stopped && (await deps.verified(add))) {
      for (const other of store.spaceClaimsOf(claim.spaceId)) drop(other);
      return;
    }
    lookLater(claim);
  };

  const lookNow = (claim: SpaceClaim): void => {
    semaphore(() => look(claim)).catch((err: unknown) => {
      if (stopped) return;
      log.warn("a space to which somebody added this account could not be looked for", {
        err,
        spaceId: claim.spaceId,
      });
      lookLater(claim);
    });
  };

  const lookLater = (claim: SpaceClaim): void => {
    if (stopped) return;
    const name = nameOf(claim);
    const count = (looks.get(name) ?? 0) + 1;
    looks.set(name, count);
    const claims = store.countSpaceClaims();
    const waitMs = Math.max(
      Math.min(LOOK_AGAIN_MAX_MS, LOOK_AGAIN_MS * 2 ** Math.max(0, count - FIRST_LOOKS)),
      claims > MANY_CLAIMS ? claims * LOOK_PACE_MS : 0,
    );
    clearTimeout(timers.get(name));
    timers.set(
      name,
      setTimeout(() => {
        timers.delete(name);
        lookNow(claim);
      }, waitMs),
    );
  };

  return {
    name: "claims of spaces",
    start() {
      stopped = false;
      for (const claim of store.spaceClaims().reverse()) lookNow(claim);
    },
    stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
    },
    /** Durable when it resolves. */
    async add({ spaceId, adder, transportSecret, name = "" }) {
      if (!deps.isWanted(spaceId)) return;
      const claim: SpaceClaim = { spaceId, adder, transport: transportSecret, name, sinceMs: clock.nowMs() };
      await store.putSpaceClaim(claim);
      makeRoom();
      looks.delete(nameOf(claim));
      if (!stopped) lookNow(claim);
    },
  };
}
