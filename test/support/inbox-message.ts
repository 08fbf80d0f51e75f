import { utf8ToBytes } from "../../src/base/bytes.ts";
import { encodeCbor, encodeEnvelope } from "../../src/base/dag-cbor.ts";
import type { Account } from "../../src/crypto/account.ts";
import { sealTo } from "../../src/crypto/box.ts";
import type { JsonObject } from "./wire-types.ts";

/** An inbox message as any account can make one to any other: signed, sealed, and saying whatever it likes. */
export function sealedInboxMessage(from: Account, to: Uint8Array, kind: string, body: JsonObject): Uint8Array {
  const header = encodeCbor({
    v: 1,
    kind,
    to,
    from: from.signer.publicKey,
    time: Date.now(),
    body: utf8ToBytes(JSON.stringify(body)),
  }).slice();
  const signature = from.signer.sign("inbox", encodeEnvelope({ header }));
  return sealTo(to, new Uint8Array(encodeEnvelope({ header, signature })), "svc/inbox/v1");
}
