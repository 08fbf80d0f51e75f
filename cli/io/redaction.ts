import type { Json } from "../../src/protocol/json.ts";

/** Members whose values open something: the phrase, a passkey, tokens, and the keys in a space's push block. */
const SECRET_MEMBER = /mnemonic|passkey|token|secret|password|spaceKey|encKey$/i;

/** JSON text of a body with every secret value replaced, at any depth. */
export function redact(body: Json): string {
  return JSON.stringify(body, (key, value) => (SECRET_MEMBER.test(key) && value !== "" ? "<redacted>" : value));
}
