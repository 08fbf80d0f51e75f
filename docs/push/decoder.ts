/**
 * Opens what a push notification of svc carries: the reference that a mobile app's notification extension is ported from
 * (docs/push.md says the same in words, test/vectors/push-notifications.json has bytes to try it on). It needs nothing but
 * AES-256-GCM, base64, hex and JSON.
 */
import { createDecipheriv } from "node:crypto";

/** What stands beside `aps` on iOS, and in `data` on Android: texts, all of them. */
export interface NotificationData {
  readonly v: string;
  readonly kind: string;
  /** Base58 of the space's public push key: which space it is, to those who have its row. */
  readonly spaceKey: string;
  /** Hex sha256 of the key that opens it. */
  readonly keyId: string;
  /** Base64: nonce (12 bytes), ciphertext, tag (16). */
  readonly sealed: string;
}

export type OpenedNotification =
  | {
      readonly kind: "message";
      readonly spaceId: string;
      readonly chatId: string;
      readonly messageId: string;
      readonly sender: string;
      readonly text: string;
    }
  /** The account has read the chat on another device: take its notifications away. */
  | { readonly kind: "read"; readonly spaceId: string; readonly chatId: string };

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The payload, or undefined where there is none for us: no key of that id (show the placeholder, and let the app fetch), bytes
 * that were not sealed under it, or a version to come. `encKeys` holds the `push.encKey` of every space row ever seen, by
 * `push.encKeyId`: a key that was replaced still opens what was under way.
 */
export function openNotification(
  data: NotificationData,
  encKeys: ReadonlyMap<string, string>,
): OpenedNotification | undefined {
  const key = encKeys.get(data.keyId);
  if (data.v !== "1" || key === undefined) return undefined;
  const sealed = Buffer.from(data.sealed, "base64");
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;

  const decipher = createDecipheriv("aes-256-gcm", Buffer.from(key, "base64"), sealed.subarray(0, NONCE_BYTES));
  decipher.setAAD(Buffer.from(`svc/push/v1/${data.keyId}`, "utf8"));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  let json: string;
  try {
    const opened = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES));
    json = Buffer.concat([opened, decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }

  // The padding is spaces behind the text, which JSON does not mind.
  const payload = JSON.parse(json) as { [field: string]: unknown };
  if (payload["v"] !== 1) return undefined;
  const text = (field: string): string => String(payload[field] ?? "");
  const place = { spaceId: text("spaceId"), chatId: text("chatId") };
  if (payload["read"] === true) return { kind: "read", ...place };
  return { kind: "message", ...place, messageId: text("messageId"), sender: text("sender"), text: text("text") };
}
