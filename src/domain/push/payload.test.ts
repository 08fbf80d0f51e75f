import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { type NotificationData, openNotification } from "../../../docs/push/decoder.ts";
import vectors from "../../../test/vectors/push-notifications.json";
import { PUSH_BOUNDS } from "../../protocol/push-node.ts";
import { cutText, sealPayload } from "./payload.ts";

const key = new Uint8Array(32).map((_, index) => index * 3);
const keyId = createHash("sha256").update(key).digest("hex");
const keys = new Map([[keyId, Buffer.from(key).toString("base64")]]);
const ids = {
  spaceId: `bafyrei${"s".repeat(52)}`,
  chatId: `bafyrei${"c".repeat(52)}`,
  messageId: "m".repeat(11),
  sender: `A${"z".repeat(48)}`,
};
const sealedOf = (text: string): string => sealPayload(key, keyId, { v: 1, ...ids, text });
const dataOf = (sealed: string): NotificationData => ({ v: "1", kind: "message", spaceKey: "k", keyId, sealed });
const plainBytes = (sealed: string): number => Buffer.from(sealed, "base64").length - 28;

describe("[PUSH-5] the published vectors", () => {
  const encKeys = new Map(Object.entries(vectors.encKeys));
  test.each(vectors.cases.map((one) => [one.name, one] as const))("%s", (_name, { data, opened }) => {
    expect(openNotification(data, encKeys) ?? null).toEqual(opened as never);
  });
});

describe("[PUSH-5] what is sealed", () => {
  test("opens to what it was, under its key alone", () => {
    const sealed = sealedOf("Hello, 世界");
    expect(openNotification(dataOf(sealed), keys)).toEqual({ kind: "message", ...ids, text: "Hello, 世界" });
    const read = sealPayload(key, keyId, { v: 1, read: true, spaceId: ids.spaceId, chatId: ids.chatId });
    expect(openNotification(dataOf(read), keys)).toEqual({ kind: "read", spaceId: ids.spaceId, chatId: ids.chatId });
    const other = new Map([[keyId, Buffer.alloc(32, 1).toString("base64")]]);
    expect(openNotification(dataOf(sealed), other)).toBeUndefined();
  });

  test("tells its length in steps of 256 bytes", () => {
    const lengths = new Set(Array.from({ length: 400 }, (_, length) => plainBytes(sealedOf("x".repeat(length)))));
    for (const length of lengths) expect(length % 256).toBe(0);
    expect(lengths.size).toBeLessThanOrEqual(3);
  });

  test("fits into what providers take, whatever the text is made of", () => {
    for (const character of ["x", "é", "世", "🌍", "\u0001", '"', "\\"]) {
      const sealed = sealedOf(cutText(character.repeat(5_000)));
      expect(sealed.length).toBeLessThanOrEqual(PUSH_BOUNDS.sealedChars);
      const opened = openNotification(dataOf(sealed), keys);
      const text = opened?.kind === "message" ? opened.text : "";
      expect(text).toBe(character.repeat([...text].length));
      // Only what escaping swells is cut below 512 characters.
      expect([...text].length).toBe(character === "\u0001" ? [...text].length : 512);
      expect([...text].length).toBeGreaterThan(300);
    }
  });

  test("is cut to 512 characters, none of them in two", () => {
    expect(cutText("x".repeat(512))).toHaveLength(512);
    expect(cutText("x".repeat(513))).toHaveLength(512);
    expect([...cutText(`${"x".repeat(511)}🌍🌍`)]).toHaveLength(512);
    expect(cutText(`${"x".repeat(511)}🌍🌍`).endsWith("🌍")).toBe(true);
    expect(cutText("🌍".repeat(400))).toBe("🌍".repeat(400));
  });
});
