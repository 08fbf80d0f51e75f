import { createHmac, timingSafeEqual } from "node:crypto";
import {
  base64UrlToBytes,
  bytesToBase64Url,
  bytesToHex,
  concatBytes,
  readUint64,
  utf8ToBytes,
  writeUint64,
} from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { randomBytes } from "../base/random.ts";
import { parseAccountId } from "../crypto/account-id.ts";
import { deriveKey } from "../crypto/derive.ts";
import { verify } from "../crypto/sign.ts";
import { CHALLENGE_MS, PUSH_HEADERS } from "../protocol/push-node.ts";
import { requestStatement } from "../push-link/statements.ts";
import { Refusal } from "./refusal.ts";
import type { PushState } from "./state.ts";

const RANDOM_BYTES = 16;
const TAG_BYTES = 16;
const SIGNED_BYTES = RANDOM_BYTES + 8;

/**
 * Proves which account is asking. A challenge is random bytes and a time under the node's own HMAC, so issuing one stores
 * nothing. Answering it uses it up, in the state that all nodes share.
 */
export function createAccountProof(deps: {
  state: PushState;
  secret: Uint8Array;
  audience: () => string;
  clock: Clock;
}) {
  const tagOf = (account: string, signed: Uint8Array): Uint8Array =>
    createHmac("sha256", deps.secret)
      .update(utf8ToBytes("svc/push-challenge/v1\0"))
      .update(signed)
      .update(account)
      .digest()
      .subarray(0, TAG_BYTES);

  /** When this account's challenge from us expires; undefined when we did not issue it. */
  const endOf = (account: string, challenge: string): number | undefined => {
    const bytes = challenge.length > 100 ? undefined : base64UrlToBytes(challenge);
    if (bytes?.length !== SIGNED_BYTES + TAG_BYTES) return undefined;
    const signed = bytes.subarray(0, SIGNED_BYTES);
    if (!timingSafeEqual(tagOf(account, signed), bytes.subarray(SIGNED_BYTES))) return undefined;
    return Number(readUint64(signed, RANDOM_BYTES)) + CHALLENGE_MS;
  };

  return {
    /** Names the state from which the node has its secret; it changes when the state was lost. */
    stateTag: bytesToHex(deriveKey(deps.secret, "push-state-tag")).slice(0, 16),
    challengeFor(account: string): string {
      const signed = concatBytes(randomBytes(RANDOM_BYTES), new Uint8Array(8));
      writeUint64(signed, RANDOM_BYTES, BigInt(deps.clock.nowMs()));
      return bytesToBase64Url(concatBytes(signed, tagOf(account, signed)));
    },

    /** Returns the account that signed a request. Stores nothing for a refused request. Errors: push.unauthenticated. */
    async accountOf(
      request: Request,
      path: string,
      body: Uint8Array,
      admit: (account: string) => void,
    ): Promise<string> {
      const account = request.headers.get(PUSH_HEADERS.account) ?? "";
      const challenge = request.headers.get(PUSH_HEADERS.challenge) ?? "";
      const signature = base64UrlToBytes(request.headers.get(PUSH_HEADERS.signature) ?? "");
      const publicKey = parseAccountId(account);
      const endMs = publicKey && endOf(account, challenge);
      if (!publicKey || !signature || endMs === undefined) throw new Refusal("push.unauthenticated");
      if (endMs < deps.clock.nowMs())
        throw new Refusal("push.unauthenticated", "The challenge is too old; ask for another");
      const statement = requestStatement({ audience: deps.audience(), path, account, challenge, body });
      if (!verify(publicKey, "push-request", statement, signature)) throw new Refusal("push.unauthenticated");
      admit(account);
      if (!(await deps.state.spend(`challenge/${challenge}`, endMs)))
        throw new Refusal("push.unauthenticated", "The challenge was answered before; ask for another");
      return account;
    },
  };
}
