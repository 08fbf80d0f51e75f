import { bytesToBase64, utf8ToBytes } from "../../base/bytes.ts";
import { seal } from "../../crypto/seal.ts";

/** What a phone learns of a message once it has opened the payload (docs/push.md). */
export interface MessagePayload {
  readonly v: 1;
  readonly spaceId: string;
  readonly chatId: string;
  readonly messageId: string;
  readonly sender: string;
  readonly text: string;
}

/** Opened, that the account has read a chat on another device. */
export interface ReadPayload {
  readonly v: 1;
  readonly read: true;
  readonly spaceId: string;
  readonly chatId: string;
}

const MAX_TEXT_CHARACTERS = 512;
const STEP_BYTES = 256;
/** Sealed and in base64 it then leaves room for the rest of a notification, of which providers take 4,096 bytes. */
const MAX_PLAIN_BYTES = 2_560;
const SPACE = 0x20;

/** Cuts a text to 512 characters without splitting one. */
export function cutText(text: string): string {
  if (text.length <= MAX_TEXT_CHARACTERS) return text;
  let cut = "";
  let count = 0;
  for (const character of text) {
    if (count++ === MAX_TEXT_CHARACTERS) break;
    cut += character;
  }
  return cut;
}

/**
 * Seals a payload: JSON, padded with spaces to the next 256 bytes, AES-256-GCM under the space's push key. What is beside
 * the key id in the additional data says what the bytes are for.
 */
export function sealPayload(encKey: Uint8Array, encKeyId: string, payload: MessagePayload | ReadPayload): string {
  return bytesToBase64(seal(encKey, padded(encode(payload)), utf8ToBytes(`svc/push/v1/${encKeyId}`)));
}

/** Returns the JSON text. A text that grows by escaping is cut further: control characters grow sixfold. */
function encode(payload: MessagePayload | ReadPayload): Uint8Array {
  let fitting = payload;
  let bytes = utf8ToBytes(JSON.stringify(fitting));
  while (bytes.length > MAX_PLAIN_BYTES && "text" in fitting && fitting.text !== "") {
    const characters = [...fitting.text];
    fitting = { ...fitting, text: characters.slice(0, Math.floor(characters.length * 0.9)).join("") };
    bytes = utf8ToBytes(JSON.stringify(fitting));
  }
  return bytes;
}

function padded(bytes: Uint8Array): Uint8Array {
  const whole = new Uint8Array(Math.ceil(bytes.length / STEP_BYTES) * STEP_BYTES).fill(SPACE);
  whole.set(bytes);
  return whole;
}
