import type { MemberMetadata } from "../../acl/record/epoch.ts";
import type { InviteToken } from "../../acl/record/invite-token.ts";
import { composeRequest, composeWithdrawal } from "../../acl/record/join-request.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { Account } from "../../crypto/account.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { AclSecrets } from "../own-space/acl-secrets.ts";

/**
 * How often an account that waits for an answer asks again: the answer may have been lost, or given by an account that it
 * does not believe.
 */
const ASK_AGAIN_MS = 10 * 60_000;

interface JoinRequestsDeps {
  account: Account;
  clock: Clock;
  secrets: AclSecrets;
  /** Hands a request, or its withdrawal, to those who can put it into the log; durable when it resolves. */
  handIn(receivers: readonly Uint8Array[], spaceId: SpaceId, pending: Uint8Array): Promise<void>;
}

/**
 * This account's requests to join, as they are handed to the accounts that a token names while nothing of the space is
 * known yet.
 */
export function createJoinRequests({ account, clock, secrets, handIn }: JoinRequestsDeps) {
  const lastAsked = new Map<SpaceId, { pending: Uint8Array; atMs: number }>();

  return {
    /** The request that a token calls for; undefined for one that gives access by itself. */
    make(token: InviteToken, metadata: MemberMetadata | undefined): Uint8Array | undefined {
      if (token.kind !== "request") return undefined;
      return composeRequest({ account, token, timeMs: clock.nowMs() }, metadata).bytes;
    },
    /** Asks to join a space, if this account has to and has not made the same request lately. */
    async ask(spaceId: SpaceId): Promise<void> {
      const token = secrets.tokenOf(spaceId);
      const pending = secrets.askedOf(spaceId);
      if (token?.kind !== "request" || !pending) return;
      const last = lastAsked.get(spaceId);
      if (last && equalBytes(last.pending, pending) && clock.nowMs() < last.atMs + ASK_AGAIN_MS) return;
      lastAsked.set(spaceId, { pending, atMs: clock.nowMs() });
      await handIn(token.receivers, spaceId, pending);
    },
    /** Takes back what was asked. */
    async withdraw(spaceId: SpaceId): Promise<void> {
      const token = secrets.tokenOf(spaceId);
      const pending = secrets.askedOf(spaceId);
      lastAsked.delete(spaceId);
      if (token?.kind !== "request" || !pending) return;
      const withdrawal = composeWithdrawal({ account, token, timeMs: clock.nowMs() }, sha256(pending));
      await handIn(token.receivers, spaceId, withdrawal.bytes);
    },
    /** Whether an answer to this account's present request may be believed. */
    isBelieved(spaceId: SpaceId, from: Uint8Array, pendingId: Uint8Array): boolean {
      const token = secrets.tokenOf(spaceId);
      const pending = secrets.askedOf(spaceId);
      const isReceiver = token?.kind === "request" && token.receivers.some((one) => Buffer.compare(one, from) === 0);
      return isReceiver && pending !== undefined && Buffer.compare(sha256(pending), pendingId) === 0;
    },
  };
}
