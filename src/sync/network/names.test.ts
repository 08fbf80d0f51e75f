import { describe, expect, test } from "bun:test";
import { utf8ToBytes } from "../../base/bytes.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { messageDigest, parseLogCursor, startCursor } from "./log-cursor.ts";
import { MESSAGE_ITEMS_MAX, openLogMessage, sealLogMessage } from "./log-message.ts";
import { parseNetworkUrl } from "./network-url.ts";
import { createNetworkKey } from "./nkey.ts";
import {
  chunkSubject,
  deriveChannelKeys,
  eventSubject,
  hintSubject,
  inboxSubject,
  LOG_SHARDS,
  logSubject,
  messageId,
} from "./subjects.ts";

const secret = (byte: number) => new Uint8Array(32).fill(byte);

describe("network keys", () => {
  test("an nkey is the text that NATS's own codec gives for the key, and signs nonces", () => {
    // Checked with @nats-io/nkeys: fromPublic takes the text and verifies the signature.
    const key = createNetworkKey(secret(7));
    expect(key.publicText).toBe("UDVEU3DD4KOFECV66VIHWEZOYX4ZKR3WV27L464SIIPOU2IUI3JCYSJF");
    expect(key.signNonce("nonce-of-a-server")).toMatch(/^[A-Za-z0-9_-]{86}$/);
  });

  test("what is no nonce is not signed", () => {
    const key = createNetworkKey(secret(7));
    expect(key.signNonce("")).toBeUndefined();
    expect(key.signNonce("x".repeat(129))).toBeUndefined();
  });
});

describe("subjects", () => {
  const keys = deriveChannelKeys(secret(1));

  test("a channel's names are functions of its secret, and different secrets share none", () => {
    const other = deriveChannelKeys(secret(2));
    expect(deriveChannelKeys(secret(1))).toEqual(keys);
    expect(other.tag).not.toBe(keys.tag);
    expect(keys.tag).toMatch(/^[a-z2-7]{26}$/);
    expect(keys.shard).toBeLessThan(LOG_SHARDS);
    const digest = secret(3);
    expect(chunkSubject(keys, digest, 0)).not.toBe(chunkSubject(other, digest, 0));
    expect(chunkSubject(keys, digest, 0)).not.toBe(chunkSubject(keys, digest, 1));
    expect(messageId(keys, [digest])).not.toBe(messageId(other, [digest]));
  });

  test("subjects are those the streams and the operator's permissions name", () => {
    expect(logSubject(keys, "c")).toBe(`svc.log.${keys.shard}.${keys.tag}.c`);
    expect(hintSubject(logSubject(keys, "a"))).toBe(`svc.hint.log.${keys.shard}.${keys.tag}.a`);
    expect(chunkSubject(keys, secret(3), 0)).toMatch(/^svc\.file\.[a-z2-7]{26}$/);
    expect(inboxSubject(publicKeyOfSeed(secret(4)))).toMatch(/^svc\.inbox\.[a-z2-7]{26}$/);
  });

  test("[SYNC-9] an event topic keeps its structure and its wildcards, and none of its words", () => {
    const subject = eventSubject(keys, "ev/process/progress/p1");
    expect(subject).not.toContain("process");
    expect(subject.split(".")).toHaveLength(7);
    const pattern = eventSubject(keys, "ev/process/>").split(".");
    expect(pattern.slice(0, 5)).toEqual(subject.split(".").slice(0, 5));
    expect(pattern[5]).toBe(">");
    expect(eventSubject(keys, "ev/*/progress/p1").split(".")[4]).toBe("*");
  });
});

describe("messages of a log", () => {
  const keys = deriveChannelKeys(secret(1));
  const items = [utf8ToBytes("one"), new Uint8Array(0), new Uint8Array(5000).fill(9)];

  test("items come back in order, under their key and subject only", () => {
    const sealed = sealLogMessage(keys.sealKey, "svc.log.0.t.c", items);
    expect(openLogMessage(keys.sealKey, "svc.log.0.t.c", sealed)).toEqual(items);
    expect(openLogMessage(keys.sealKey, "svc.log.0.other.c", sealed)).toBeUndefined();
    expect(openLogMessage(deriveChannelKeys(secret(2)).sealKey, "svc.log.0.t.c", sealed)).toBeUndefined();
  });

  test("[SYNC-4] every truncation and every flipped byte is junk", () => {
    const sealed = sealLogMessage(keys.sealKey, "s", [utf8ToBytes("one")]);
    for (let length = 0; length < sealed.length; length++) {
      expect(openLogMessage(keys.sealKey, "s", sealed.subarray(0, length))).toBeUndefined();
      const flipped = sealed.slice();
      flipped[length]! ^= 1;
      expect(openLogMessage(keys.sealKey, "s", flipped)).toBeUndefined();
    }
  });

  test("a message takes at most its number of items", () => {
    const many = Array.from({ length: MESSAGE_ITEMS_MAX }, () => Uint8Array.of(1));
    expect(openLogMessage(keys.sealKey, "s", sealLogMessage(keys.sealKey, "s", many))).toHaveLength(MESSAGE_ITEMS_MAX);
    expect(() => sealLogMessage(keys.sealKey, "s", [...many, Uint8Array.of(1)])).toThrow(RangeError);
  });
});

describe("cursors", () => {
  test("a cursor survives storage as JSON", () => {
    const cursor = { ...startCursor(), seq: 12, digest: messageDigest(utf8ToBytes("m")) };
    expect(parseLogCursor(JSON.parse(JSON.stringify(cursor)))).toEqual(cursor);
    expect(parseLogCursor(JSON.parse(JSON.stringify(startCursor())))?.seq).toBe(0);
  });

  test.each([
    [null],
    [{}],
    [{ v: 2, generation: "g", seq: 1, digest: "d" }],
    [{ v: 1, generation: "", seq: 1, digest: "d" }],
    [{ v: 1, generation: "g", seq: -1, digest: "d" }],
    [{ v: 1, generation: "g", seq: 1, digest: "" }],
    [{ v: 1, generation: "g", seq: 0, digest: "d" }],
  ])("%j is no cursor", (value) => {
    expect(parseLogCursor(value)).toBeUndefined();
  });
});

describe("network.url", () => {
  test("one server, several, a login, a port by default", () => {
    expect(parseNetworkUrl("nats://127.0.0.1")).toEqual({ servers: ["127.0.0.1:4222"], tlsRequired: false });
    expect(parseNetworkUrl("tls://a:1,tls://b:2")).toEqual({ servers: ["a:1", "b:2"], tlsRequired: true });
    expect(parseNetworkUrl("nats://me:p%40ss@a")).toMatchObject({ user: "me", password: "p@ss" });
    expect(parseNetworkUrl("nats://token@a")).toMatchObject({ token: "token" });
    expect(parseNetworkUrl("foo")).toEqual({
      problem: "network.url has neither scheme nor port; write nats://host:4222 or tls://host:4222",
    });
    expect(parseNetworkUrl("localhost:4333")).toMatchObject({ servers: ["localhost:4333"] });
    expect(parseNetworkUrl("nats://[::1]:4222")).toMatchObject({ servers: ["[::1]:4222"] });
  });

  test.each(["", "http://a", "nats://", "nats://a/path", "nats://a?x=1", "nats://a,", "nats://a b"])(
    "%j is refused with a remedy",
    (text) => {
      const parsed = parseNetworkUrl(text);
      expect("problem" in parsed && parsed.problem).toContain("network.url");
    },
  );
});
