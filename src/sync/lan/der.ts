import { type KeyObject, sign } from "node:crypto";
import { concatBytes, utf8ToBytes } from "../../base/bytes.ts";

/** As much of DER (ITU-T X.690) and X.509 (RFC 5280) as an Ed25519 certificate (RFC 8410) needs. */

const TAG = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
};

const OID_ED25519 = Uint8Array.of(0x2b, 0x65, 0x70); // 1.3.101.112
const OID_COMMON_NAME = Uint8Array.of(0x55, 0x04, 0x03); // 2.5.4.3

export function der(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const content = concatBytes(...contents);
  const n = content.length;
  if (n >= 1 << 16) throw new RangeError(`a DER value of ${n} bytes`);
  const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff];
  return concatBytes(Uint8Array.of(tag, ...length), content);
}

export interface CertificateFields {
  readonly serial: Uint8Array;
  readonly issuer: string;
  readonly subject: string;
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array;
  /** Whole extensions, DER. */
  readonly extensions?: readonly Uint8Array[];
}

/** A version 3 certificate signed with an Ed25519 key, DER. Valid from 2020 to 2049: who may connect is not up to dates. */
export function signCertificate(fields: CertificateFields, issuerKey: KeyObject): Uint8Array {
  const algorithm = der(TAG.sequence, der(TAG.oid, OID_ED25519));
  const extensions = fields.extensions?.length ? [der(0xa3, der(TAG.sequence, ...fields.extensions))] : [];
  const certificate = der(
    TAG.sequence,
    der(0xa0, der(TAG.integer, Uint8Array.of(2))),
    // A leading 0x01 keeps the serial positive and of fixed length.
    der(TAG.integer, concatBytes(Uint8Array.of(1), fields.serial)),
    algorithm,
    name(fields.issuer),
    der(TAG.sequence, der(TAG.utcTime, utf8ToBytes("200101000000Z")), der(TAG.utcTime, utf8ToBytes("491231235959Z"))),
    name(fields.subject),
    fields.publicKey,
    ...extensions,
  );
  const signature = new Uint8Array(sign(null, certificate, issuerKey));
  return der(TAG.sequence, certificate, algorithm, der(TAG.bitString, Uint8Array.of(0), signature));
}

const name = (commonName: string): Uint8Array =>
  der(
    TAG.sequence,
    der(TAG.set, der(TAG.sequence, der(TAG.oid, OID_COMMON_NAME), der(TAG.utf8, utf8ToBytes(commonName)))),
  );

export function toPem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
