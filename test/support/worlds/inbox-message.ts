import { utf8ToBytes } from "../../../src/base/bytes.ts";
import { encodeCbor } from "../../../src/base/dag-cbor.ts";
import type { Account } from "../../../src/crypto/account.ts";
import { sealTo } from "../../../src/crypto/box.ts";
import { signEnvelope } from "../../../src/crypto/signed-envelope.ts";
import type { JsonObject } from "../hostile/wire-types.ts";

/** An inbox message as any account can make one to any other: signed, sealed, and saying whatever it likes. */
export function sealedInboxMessage(from: Account, to: Uint8Array, kind: string, body: JsonObject): Uint8Array {
  const header = encodeCbor({
    v: 1,
    kind,
    to,
    from: from.signer.publicKey,
    time: Date.now(),
    body: utf8ToBytes(JSON.stringify(body)),
  });
  return sealTo(to, signEnvelope("inbox", header, from.signer), "svc/inbox/v1");
}
