import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { bytesToBase64Url, utf8ToBytes } from "../base/bytes.ts";

/** Creates a signer of JSON Web Tokens (RFC 7519) with a PEM key: ES256 for Apple, RS256 for Google. */
export function createTokenSigner(pem: string, algorithm: "ES256" | "RS256") {
  const key: KeyObject = createPrivateKey(pem);
  const wanted = algorithm === "ES256" ? "ec" : "rsa";
  if (key.asymmetricKeyType !== wanted) throw new Error(`the key is ${key.asymmetricKeyType}, not ${wanted}`);
  const part = (value: object) => bytesToBase64Url(utf8ToBytes(JSON.stringify(value)));
  return (header: object, claims: object): string => {
    const signed = `${part({ alg: algorithm, ...header })}.${part(claims)}`;
    // RFC 7518 § 3.4: r and s are concatenated, not in DER.
    const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
    return `${signed}.${bytesToBase64Url(new Uint8Array(signature))}`;
  };
}
