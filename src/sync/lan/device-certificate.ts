import { createPublicKey, X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { PeerId } from "../../base/ids.ts";
import { sha256 } from "../../crypto/hash.ts";
import { peerIdOf } from "../../crypto/peer-id.ts";
import { ed25519PrivateKey } from "../../crypto/private-key.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { signCertificate, toPem } from "./der.ts";

/** What a device shows on the LAN: a self-signed certificate whose key is its device key. */
export interface DeviceCertificate {
  readonly peerId: PeerId;
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
}

/** The same name for everyone: the key says who it is. */
const COMMON_NAME = "svc";
/** RFC 8410 § 4: everything of a SubjectPublicKeyInfo before the 32 bytes of an Ed25519 key. */
const SPKI_PREFIX_HEX = "302a300506032b6570032100";
const CERTIFICATE_BYTES_MAX = 1024;

export function createDeviceCertificate(deviceSeed: Uint8Array): DeviceCertificate {
  const key = ed25519PrivateKey(deviceSeed);
  const publicKey = new Uint8Array(createPublicKey(key).export({ type: "spki", format: "der" }));
  const serial = sha256(publicKey).slice(0, 8);
  const certificate = signCertificate({ serial, issuer: COMMON_NAME, subject: COMMON_NAME, publicKey }, key);
  return {
    peerId: peerIdOf(publicKey.subarray(-32)),
    certificate: toPem("CERTIFICATE", certificate),
    privateKey: key.export({ type: "pkcs8", format: "pem" }) as string,
  };
}

/**
 * The peer id that the other side's certificate proves. Undefined when the certificate is not Ed25519, is not signed by
 * itself, or has a key that may not be anybody's. TLS 1.3 has proved that the other side holds the key.
 */
export function peerIdOfSocket(socket: TLSSocket): PeerId | undefined {
  const raw = socket.getPeerCertificate(true)?.raw;
  return raw ? peerIdOfCertificate(raw) : undefined;
}

export function peerIdOfCertificate(raw: Uint8Array): PeerId | undefined {
  if (raw.length > CERTIFICATE_BYTES_MAX) return undefined;
  try {
    const certificate = new X509Certificate(raw);
    const key = certificate.publicKey;
    if (key.asymmetricKeyType !== "ed25519" || !certificate.verify(key)) return undefined;
    const spki = new Uint8Array(key.export({ type: "spki", format: "der" }));
    const publicKey = spki.slice(-32);
    if (spki.length !== 44 || spki.subarray(0, 12).toHex() !== SPKI_PREFIX_HEX) return undefined;
    return admitPublicKey(publicKey) ? peerIdOf(publicKey) : undefined;
  } catch {
    return undefined; // not a certificate
  }
}
