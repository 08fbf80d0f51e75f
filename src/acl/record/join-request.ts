import type { Account } from "../../crypto/account.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { createSigner } from "../../crypto/sign.ts";
import { type MemberMetadata, sealMetadata } from "./epoch.ts";
import type { RequestToken } from "./invite-token.ts";
import type { AclOp } from "./op.ts";
import { encodeAclProposal, joinProofBytes, type PendingRecord } from "./record.ts";

/** A request to join, or its withdrawal, by an account that does not know the space: the token holds all it needs. */

interface Asking {
  readonly account: Account;
  readonly token: RequestToken;
  readonly timeMs: number;
}

const proposalOf = ({ account, token, timeMs }: Asking, op: AclOp) =>
  encodeAclProposal(
    { space: digestOfCid(token.spaceId)!, basis: token.basis, time: timeMs, ops: [op] },
    account.signer,
  );

/** Composes a request to join; its id names the request. */
export function composeRequest(asking: Asking, metadata: MemberMetadata | undefined) {
  const { account, token } = asking;
  const invite = createSigner(token.seed);
  const proof = invite.sign(
    "invite",
    joinProofBytes(digestOfCid(token.spaceId)!, invite.publicKey, account.signer.publicKey),
  );
  const said = metadata ? { metadata: sealMetadata(token.spaceId, token, account.id, metadata) } : {};
  return proposalOf(asking, { op: "requestJoin", invite: invite.publicKey, proof, ...said });
}

/** Composes the withdrawal of a request. */
export const composeWithdrawal = (asking: Asking, request: Uint8Array) =>
  proposalOf(asking, { op: "requestCancel", request });

/** Whether a pending record only asks to join or withdraws that: then anybody who manages the space may sequence it. */
export const isJoinRequest = (pending: PendingRecord): boolean =>
  pending.kind === "acl-proposal" &&
  pending.ops.length === 1 &&
  (pending.ops[0]!.op === "requestJoin" || pending.ops[0]!.op === "requestCancel");
