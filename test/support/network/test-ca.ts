import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { der, signCertificate, toPem } from "../../../src/sync/lan/der.ts";

/** An authority of one's own with one server certificate for 127.0.0.1, as a company's network would have. PEM. */
export function makeTestCa(): { ca: string; certificate: string; privateKey: string } {
  const authority = generateKeyPairSync("ed25519").privateKey;
  const server = generateKeyPairSync("ed25519").privateKey;
  const basicConstraintsCa = extension([0x55, 0x1d, 0x13], der(0x30, der(0x01, Uint8Array.of(0xff))));
  const loopbackName = extension([0x55, 0x1d, 0x11], der(0x30, der(0x87, Uint8Array.of(127, 0, 0, 1))));
  const ca = signCertificate(
    {
      serial: Uint8Array.of(1),
      issuer: "Test CA",
      subject: "Test CA",
      publicKey: spki(authority),
      extensions: [basicConstraintsCa],
    },
    authority,
  );
  const certificate = signCertificate(
    {
      serial: Uint8Array.of(2),
      issuer: "Test CA",
      subject: "nats",
      publicKey: spki(server),
      extensions: [loopbackName],
    },
    authority,
  );
  return {
    ca: toPem("CERTIFICATE", ca),
    certificate: toPem("CERTIFICATE", certificate),
    privateKey: server.export({ type: "pkcs8", format: "pem" }) as string,
  };
}

const extension = (oid: number[], value: Uint8Array): Uint8Array =>
  der(0x30, der(0x06, Uint8Array.from(oid)), der(0x04, value));
const spki = (key: KeyObject): Uint8Array =>
  new Uint8Array(createPublicKey(key).export({ type: "spki", format: "der" }));
