import { isJoinRequest } from "../acl/record/join-request.ts";
import { canManage } from "../acl/record/permission.ts";
import { type AclProposal, decodePending } from "../acl/record/record.ts";
import { tookEffect } from "../acl/reducer/reducer.ts";
import { pendingRequestOf, permissionOf } from "../acl/reducer/state.ts";
import { bytesToHex } from "../base/bytes.ts";
import type { AccountId, SpaceId } from "../base/ids.ts";
import { accountIdOf } from "../crypto/account-id.ts";
import { digestOfCid } from "../crypto/cid.ts";
import type { Space } from "../space/space.ts";
import type { SpaceRegistry } from "./space-registry.ts";

/** `waits`: it stands in the log, or will. `refused`: it was declined or taken back, or its invite is not live. */
export type RequestAnswer = "waits" | "refused";

interface JoinDeskDeps {
  spaces: Pick<SpaceRegistry, "isHere" | "isHeld" | "use" | "info">;
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
 * twice does nothing more.
 */
export function createJoinDesk(deps: JoinDeskDeps) {
  const { spaces } = deps;

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

  return {
    /** A request by message; ignored unless it is a request to join, or its withdrawal, by its own sender. */
    async receive(from: AccountId, spaceId: SpaceId, bytes: Uint8Array): Promise<void> {
      const pending = spaces.isHere(spaceId) && spaces.isHeld(spaceId) ? decodePending(bytes) : undefined;
      if (pending?.kind !== "acl-proposal" || !isJoinRequest(pending) || accountIdOf(pending.author) !== from) return;
      if (Buffer.compare(pending.space, digestOfCid(spaceId)!) !== 0) return;
      await spaces.use(spaceId, (space) => take(space, pending));
    },
  };
}
