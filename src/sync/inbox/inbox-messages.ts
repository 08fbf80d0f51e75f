import { bytesToUtf8, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import { encodeCbor } from "../../base/dag-cbor.ts";
import type { AccountId } from "../../base/ids.ts";
import { exceedsDepth } from "../../base/json-depth.ts";
import type { Account } from "../../crypto/account.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { openWith, sealTo } from "../../crypto/box.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { isSignedBy, readEnvelope, signEnvelope } from "../../crypto/signed-envelope.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import { isJsonObject } from "../../protocol/json.ts";
import { LIMITS } from "../../protocol/limits.ts";

/**
 * A message from one account to another (SYNC-12): signed, then sealed to the receiver, left in its inbox on the network and
 * handed to its devices on the LAN.
 */
export interface InboxMessage {
  readonly kind: string;
  readonly body: JsonObject;
}

export interface OutgoingMessage {
  /** Hash of the sealed bytes. */
  readonly id: Uint8Array;
  /** The receiver's public key. */
  readonly receiver: Uint8Array;
  readonly sealed: Uint8Array;
}

/** What is to be sent and what was taken, kept on this device. What is written is durable when it resolves. */
export interface InboxBox {
  outgoing(): OutgoingMessage[];
  put(message: OutgoingMessage): Promise<void>;
  drop(id: Uint8Array): Promise<void>;
  isTaken(id: Uint8Array): boolean;
  /** So many of the newest are remembered. */
  noteTaken(id: Uint8Array, nowMs: number, remembered: number): Promise<void>;
}

const CONTEXT = "svc/inbox/v1";
const FORMAT = 1;
const MAX_BYTES = 32 << 10;

/** The bytes of a message to the account of a public key. Throws RangeError above 32 KiB. */
export function sealInboxMessage(
  { signer }: Pick<Account, "signer">,
  to: Uint8Array,
  { kind, body }: InboxMessage,
  nowMs: number,
): Uint8Array {
  const header = encodeCbor({
    v: FORMAT,
    kind,
    to,
    from: signer.publicKey,
    time: nowMs,
    body: utf8ToBytes(JSON.stringify(body)),
  });
  const sealed = sealTo(to, signEnvelope("inbox", header, signer), CONTEXT);
  if (sealed.length > MAX_BYTES) throw new RangeError(`an inbox message of ${sealed.length} bytes`);
  return sealed;
}

/** A message to this account and who signed it, or undefined for bytes that are none. */
export function openInboxMessage(
  { seed, signer }: Pick<Account, "seed" | "signer">,
  sealed: Uint8Array,
): { from: AccountId; message: InboxMessage } | undefined {
  const signed = sealed.length <= MAX_BYTES * 2 ? openWith(seed, sealed, CONTEXT) : undefined;
  if (!signed) return undefined;
  try {
    const envelope = readEnvelope(signed);
    const { v, kind, to, from, body } = envelope.header;
    if (envelope.bodyHash || v !== FORMAT || typeof kind !== "string" || !(body instanceof Uint8Array))
      return undefined;
    if (!(to instanceof Uint8Array) || !equalBytes(to, signer.publicKey)) return undefined;
    if (!(from instanceof Uint8Array) || !admitPublicKey(from)) return undefined;
    if (!isSignedBy(from, "inbox", envelope)) return undefined;
    const text = bytesToUtf8(body);
    const parsed = text === undefined || exceedsDepth(text, LIMITS.bodyDepth) ? undefined : (JSON.parse(text) as Json);
    return isJsonObject(parsed) ? { from: accountIdOf(from), message: { kind, body: parsed } } : undefined;
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
