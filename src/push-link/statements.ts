import { utf8ToBytes } from "../base/bytes.ts";
import { frameFields } from "../base/framed-fields.ts";
import { sha256 } from "../crypto/hash.ts";

/**
 * The bytes that are signed in the push protocol (docs/push.md). Each field is preceded by its length, and every
 * statement names its node, so that a statement for one node is worthless at another.
 */

/**
 * The statement that an account signs (kind `push-request`) to prove that a request is its own: one challenge, one
 * request.
 */
export function requestStatement(request: {
  /** Origin of the node's URL, as the account knows it. */
  readonly audience: string;
  readonly path: string;
  readonly account: string;
  readonly challenge: string;
  readonly body: Uint8Array;
}): Uint8Array {
  const { audience, path, account, challenge, body } = request;
  return frameFields([audience, path, account, challenge, sha256(body)]);
}

/**
 * The statement that the space's push key signs (kind `push-topics`) for an account that is to be notified of these
 * topics.
 */
export function topicsStatement(
  audience: string,
  spaceKey: string,
  account: string,
  topics: readonly string[],
): Uint8Array {
  return frameFields([audience, spaceKey, account, ...topics]);
}

/**
 * The statement that the space's push key signs (kind `push-message`) over a message. The account signs the request that
 * carries it.
 */
export function messageStatement(
  audience: string,
  account: string,
  message: {
    readonly id: string;
    readonly kind: string;
    readonly spaceKey: string;
    readonly topics: readonly string[];
    readonly chat: string;
    readonly device: string;
    readonly keyId: string;
    readonly sealed: string;
  },
): Uint8Array {
  const { id, kind, spaceKey, topics, chat, device, keyId, sealed } = message;
  const fields = [audience, account, id, kind, spaceKey, chat, device, keyId, sha256(utf8ToBytes(sealed)), ...topics];
  return frameFields(fields);
}
