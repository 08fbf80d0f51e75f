import type { Json } from "../../src/protocol/json.ts";

/** Members whose values are secrets: the phrase, a passkey, tokens, and the keys in a space's push block. */
const SECRET_MEMBER = /mnemonic|passkey|token|secret|password|spaceKey|encKey$/i;

/** The JSON text of a body in which every secret value is replaced, at any depth. */
export function redact(body: Json): string {
  return JSON.stringify(body, (key, value) => (SECRET_MEMBER.test(key) && value !== "" ? "<redacted>" : value));
}
