import { isJoinRequest } from "../../acl/record/join-request.ts";
import { canManage } from "../../acl/record/permission.ts";
import { type AclProposal, decodePending } from "../../acl/record/record.ts";
import { tookEffect } from "../../acl/reducer/reducer.ts";
import { pendingRequestOf, permissionOf } from "../../acl/reducer/state.ts";
import { bytesToHex, equalBytes } from "../../base/bytes.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import type { Space } from "../../space/space.ts";
import type { SpaceRegistry } from "../life/space-registry.ts";
import { spaceStatusOf } from "../own-space/space-status.ts";
import type { TechSpace } from "../own-space/tech-space.ts";

/** Anybody can send requests for spaces that this device does not know, so only so many of the newest are kept. */
const EARLY_MAX = 64;

/** `waits`: it stands in the log, or will. `refused`: it was declined or taken back, or its invite is not live. */
export type RequestAnswer = "waits" | "refused";

interface JoinDeskDeps {
  tech: TechSpace;
  spaces: Pick<SpaceRegistry, "isHere" | "isHeld" | "isOpen" | "knownRow" | "use" | "info">;
  /** Tells the account that asked what became of its request. */
  answer(to: AccountId, spaceId: SpaceId, pendingId: Uint8Array, answer: RequestAnswer): Promise<void>;
  /** Tells a member how to get at the space. */
  admit(space: Space, name: string | undefined, identities: readonly string[]): Promise<void>;
  /** The log has something to take in. */
  roundSoon(spaceId: SpaceId): void;
}

/**
 * Takes requests to join that come by message, on devices of accounts that manage the space. A request that can take effect
 * waits for its position in the log like any proposal, and the account that asked is told what the log says of it. Asking
 * twice does nothing more. A request that comes before the record that it follows, as to a device of the owner that has not
 * heard of the space yet, is kept until that record is here: who asked has been told that it was received.
 */
export function createJoinDesk(deps: JoinDeskDeps) {
  const { spaces } = deps;
  const { engine, store } = deps.tech.space;
  const { earlyRequests } = store;
  /** One after the other: a withdrawal does not overtake what it withdraws. */
  const inTurn = createSemaphore(1);

  /** What the log says of a request; undefined while the log has not taken it in yet. */
  const answerTo = ({ acl: { state } }: Space, pending: AclProposal): RequestAnswer | undefined => {
    const [op] = pending.ops;
    if (op?.op !== "requestJoin") return undefined;
    if (tookEffect(state, pending.id)) return pendingRequestOf(state, pending.author) ? "waits" : "refused";
    const invite = state.invites.get(bytesToHex(op.invite));
    return state.deletedAt !== undefined || invite?.permission !== "none" ? "refused" : undefined;
  };

  const take = async (space: Space, pending: AclProposal): Promise<void> => {
    const from = accountIdOf(pending.author);
    // An account that does not know any invite that ever existed gets no answer.
    const [op] = pending.ops;
    const isOfInvite = op?.op !== "requestJoin" || space.acl.state.usedKeys.has(bytesToHex(op.invite));
    if (!canManage(space.role()) || !isOfInvite) return;
    if (permissionOf(space.acl.state, pending.author) !== "none")
      return deps.admit(space, spaces.info(space.id).name, [from]);
    const known = answerTo(space, pending);
    if (known) return deps.answer(from, space.id, pending.id, known);
    const [verdict] = await space.aclService.takePending([pending.bytes]);
    deps.roundSoon(space.id);
    if (verdict?.kind === "refused") return;
    if (op?.op === "requestJoin") await deps.answer(from, space.id, pending.id, "waits");
  };

  /** Takes the requests that were kept for a space, oldest first, as far as what they follow is here. */
  const takeEarly = async (space: Space): Promise<void> => {
    for (const bytes of earlyRequests.of(space.id)) {
      const pending = requestIn(space.id, bytes);
      if (pending && !space.acl.has(pending.basis)) continue;
      if (pending) await take(space, pending);
      await engine.write(() => earlyRequests.drop(sha256(bytes)));
    }
  };

  const keep = (spaceId: SpaceId, { id, bytes }: AclProposal): Promise<void> =>
    engine.write(() => earlyRequests.put(id, spaceId, bytes, EARLY_MAX));

  const isOver = (spaceId: SpaceId): boolean => {
    const row = spaces.knownRow(spaceId);
    return row !== undefined && spaceStatusOf(row) === "deleted";
  };

  return {
    /**
     * A request by message, taken or durably kept when it resolves; ignored unless it is a request to join, or its
     * withdrawal, by its own sender.
     */
    receive: (from: AccountId, spaceId: SpaceId, bytes: Uint8Array): Promise<void> =>
      inTurn(async () => {
        const pending = requestIn(spaceId, bytes);
        if (!pending || accountIdOf(pending.author) !== from) return;
        if (!spaces.isHere(spaceId) || !spaces.isHeld(spaceId))
          return isOver(spaceId) ? undefined : keep(spaceId, pending);
        await spaces.use(spaceId, async (space) => {
          if (!space.acl.has(pending.basis)) return keep(spaceId, pending);
          await takeEarly(space);
          await take(space, pending);
        });
      }),
    /** The ACL log of a space may have got what the requests that were kept for it follow. */
    aclChanged: (spaceId: SpaceId): Promise<void> =>
      inTurn(async () => {
        if (earlyRequests.of(spaceId).length > 0 && spaces.isOpen(spaceId)) await spaces.use(spaceId, takeEarly);
      }),
  };
}

/** The request to join a space, or its withdrawal, that bytes hold; undefined for anything else. */
function requestIn(spaceId: SpaceId, bytes: Uint8Array): AclProposal | undefined {
  const pending = decodePending(bytes);
  if (pending?.kind !== "acl-proposal" || !isJoinRequest(pending)) return undefined;
  return equalBytes(pending.space, digestOfCid(spaceId)!) ? pending : undefined;
}
