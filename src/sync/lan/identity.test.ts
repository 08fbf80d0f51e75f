import { describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { makeTestCa } from "../../../test/support/network/test-ca.ts";
import type { SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";
import { peerIdOf } from "../../crypto/peer-id.ts";
import { publicKeyOfSeed } from "../../crypto/private-key.ts";
import { signCertificate } from "./der.ts";
import { createDeviceCertificate, peerIdOfCertificate } from "./device-certificate.ts";
import { isLanAddress } from "./lan-address.ts";
import {
  createTokenMatcher,
  isTokenList,
  type LinkKeys,
  type LinkRole,
  TOKEN_BYTES,
  tokenLists,
} from "./space-tokens.ts";

const rawOf = (pem: string): Uint8Array => new Uint8Array(new X509Certificate(pem).raw);

describe("device certificates", () => {
  test("[SYNC-6] a certificate gives the peer id of its device key, and nothing else", () => {
    const seed = randomBytes(32);
    const certificate = createDeviceCertificate(seed);
    expect(certificate.peerId).toBe(peerIdOf(publicKeyOfSeed(seed)));
    expect(peerIdOfCertificate(rawOf(certificate.certificate))).toBe(certificate.peerId);
    expect(new X509Certificate(certificate.certificate).subject).toBe("CN=svc");
  });

  test("a key of another kind is nobody", () => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const signer = generateKeyPairSync("ed25519").privateKey;
    const spki = new Uint8Array(publicKey.export({ type: "spki", format: "der" }));
    const raw = signCertificate({ serial: Uint8Array.of(1), issuer: "svc", subject: "svc", publicKey: spki }, signer);
    expect(peerIdOfCertificate(raw)).toBeUndefined();
  });

  test("[SYNC-6] a certificate that its own key did not sign is nobody", () => {
    const victim = generateKeyPairSync("ed25519").publicKey;
    const signer = generateKeyPairSync("ed25519").privateKey;
    const spki = new Uint8Array(victim.export({ type: "spki", format: "der" }));
    const raw = signCertificate({ serial: Uint8Array.of(1), issuer: "svc", subject: "svc", publicKey: spki }, signer);
    expect(peerIdOfCertificate(raw)).toBeUndefined();
    expect(peerIdOfCertificate(rawOf(makeTestCa().certificate))).toBeUndefined();
  });

  test("[SYNC-4] garbage, truncations and certificates of unlikely size are nobody", () => {
    const raw = rawOf(createDeviceCertificate(randomBytes(32)).certificate);
    for (let length = 0; length < raw.length; length++)
      expect(peerIdOfCertificate(raw.subarray(0, length))).toBeUndefined();
    expect(peerIdOfCertificate(randomBytes(300))).toBeUndefined();
    expect(peerIdOfCertificate(new Uint8Array(5000))).toBeUndefined();
  });

  test("[SYNC-6] a key of small order is nobody", () => {
    const signer = generateKeyPairSync("ed25519").privateKey;
    const spki = new Uint8Array(createPublicKey(signer).export({ type: "spki", format: "der" }));
    spki.fill(0, 12);
    const raw = signCertificate({ serial: Uint8Array.of(1), issuer: "svc", subject: "svc", publicKey: spki }, signer);
    expect(peerIdOfCertificate(raw)).toBeUndefined();
  });
});

describe("LAN addresses", () => {
  test.each([
    "127.0.0.1",
    "127.9.9.9",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.1",
    "192.168.1.1",
    "169.254.1.1",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "fd00::2",
    "fc00::1",
    "::ffff:192.168.1.1",
  ])("[SYNC-13] %s is on the LAN", (address) => {
    expect(isLanAddress(address)).toBe(true);
  });
  test.each([
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "192.169.1.1",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.251",
    "2001:db8::1",
    "::",
    "fec0::1",
    "ff02::fb",
    "::ffff:8.8.8.8",
    "localhost",
    "example.org",
    "",
    "10.1.2",
    "10.0.0.1.evil.example",
  ])("[SYNC-13] %j is not", (address) => {
    expect(isLanAddress(address)).toBe(false);
  });
});

type Context = { binding: Uint8Array };
const showTokens = async (keys: LinkKeys, role: LinkRole, context: Context) =>
  (await tokenLists(keys, role, context))[0]!;
const matchTokens = async (keys: LinkKeys, shown: Uint8Array, shownBy: LinkRole, context: Context) => {
  const matcher = await createTokenMatcher(keys, shownBy, context);
  matcher.note(shown);
  return matcher.matches();
};
const answerTokens = async (keys: LinkKeys, shown: Uint8Array, shownBy: LinkRole, context: Context) =>
  (await createTokenMatcher(keys, shownBy, context)).answer(shown);

describe("space tokens", () => {
  const [shared, onlyA, onlyB, former] = [randomBytes(32), randomBytes(32), randomBytes(32), randomBytes(32)];
  const id = (name: string) => name as SpaceId;
  const a: LinkKeys = {
    own: randomBytes(32),
    spaces: [
      { spaceId: id("s"), key: shared },
      { spaceId: id("a"), key: onlyA },
    ],
  };
  const b: LinkKeys = {
    own: randomBytes(32),
    spaces: [
      { spaceId: id("s"), key: shared },
      { spaceId: id("b"), key: onlyB },
    ],
  };
  const context = { binding: randomBytes(96) };

  test("[SYNC-6] both sides find what they share, and nothing else", async () => {
    const shown = await showTokens(a, "dialler", context);
    expect(await matchTokens(b, shown, "dialler", context)).toEqual({
      own: false,
      inboxMessages: false,
      spaceIds: [id("s")],
    });
    const answer = await answerTokens(b, shown, "dialler", context);
    expect(answer).toHaveLength(shown.length);
    expect(await matchTokens(a, answer, "listener", context)).toEqual({
      own: false,
      inboxMessages: false,
      spaceIds: [id("s")],
    });
  });

  test("an own device is recognised by the account's key; several keys of one space give it once", async () => {
    const own: LinkKeys = {
      own: a.own,
      spaces: [
        { spaceId: id("s"), key: former },
        { spaceId: id("s"), key: shared },
      ],
    };
    const both: LinkKeys = { own: a.own, spaces: own.spaces };
    expect(await matchTokens(both, await showTokens(own, "dialler", context), "dialler", context)).toEqual({
      own: true,
      inboxMessages: false,
      spaceIds: [id("s")],
    });
  });

  test("[SYNC-6] tokens are worth nothing on another connection, in the other role, or under a former key", async () => {
    const shown = await showTokens(a, "dialler", context);
    expect((await matchTokens(a, shown, "dialler", { binding: randomBytes(96) })).spaceIds).toEqual([]);
    expect(await matchTokens(a, shown, "listener", context)).toEqual({
      own: false,
      inboxMessages: false,
      spaceIds: [],
    });
    const leaver: LinkKeys = { own: randomBytes(32), spaces: [{ spaceId: id("s"), key: former }] };
    expect((await matchTokens(leaver, shown, "dialler", context)).spaceIds).toEqual([]);
  });

  test("who has an inbox message for an account and the account recognise each other, and share nothing else by it", async () => {
    const box = randomBytes(32);
    const sender: LinkKeys = { own: randomBytes(32), inboxMessages: [randomBytes(32), box], spaces: [] };
    const receiver: LinkKeys = {
      own: randomBytes(32),
      inboxMessages: [box],
      spaces: [{ spaceId: id("s"), key: shared }],
    };
    const shown = await showTokens(receiver, "dialler", context);
    expect(await matchTokens(sender, shown, "dialler", context)).toEqual({
      own: false,
      inboxMessages: true,
      spaceIds: [],
    });
    const answer = await answerTokens(sender, shown, "dialler", context);
    expect(await matchTokens(receiver, answer, "listener", context)).toEqual({
      own: false,
      inboxMessages: true,
      spaceIds: [],
    });
    expect(await matchTokens(a, answer, "listener", context)).toEqual({
      own: false,
      inboxMessages: false,
      spaceIds: [],
    });
  });

  test("[SYNC-9] an answer to a stranger is as long as its question, and all noise", async () => {
    const question = randomBytes(64 * TOKEN_BYTES);
    const answers = [
      await answerTokens(a, question, "dialler", context),
      await answerTokens(a, question, "dialler", context),
    ] as const;
    const tokens = answers.map(
      (answer) =>
        new Set(Array.from({ length: 64 }, (_, i) => answer.slice(i * TOKEN_BYTES, (i + 1) * TOKEN_BYTES).toHex())),
    );
    expect(tokens.map((set) => set.size)).toEqual([64, 64]);
    expect([...tokens[0]!].filter((token) => tokens[1]!.has(token))).toEqual([]);
  });

  test.each([
    [0, 16],
    [15, 16],
    [16, 32],
    [100, 128],
    [4095, 4096],
    [5000, 4096],
  ])("%d spaces show %d tokens", async (spaces, tokens) => {
    const keys: LinkKeys = {
      own: randomBytes(32),
      spaces: Array.from({ length: spaces }, (_, i) => ({ spaceId: id(`${i}`), key: randomBytes(32) })),
    };
    const shown = await showTokens(keys, "dialler", context);
    expect(shown.length / TOKEN_BYTES).toBe(tokens);
    expect(isTokenList(shown)).toBe(true);
  });

  test("[SYNC-6] of more keys than a list holds all are shown and found, each list as long as a bucket", async () => {
    const spaces = Array.from({ length: 9000 }, (_, i) => ({ spaceId: id(`${i}`), key: randomBytes(32) }));
    const many: LinkKeys = { own: randomBytes(32), spaces };
    const lists = await tokenLists(many, "dialler", context);
    expect(lists.map((list) => list.length / TOKEN_BYTES)).toEqual([4096, 4096, 1024]);
    const other = await createTokenMatcher({ own: randomBytes(32), spaces }, "dialler", context);
    const back = await createTokenMatcher(many, "listener", context);
    for (const list of lists) back.note(other.answer(list));
    expect(other.matches().spaceIds).toHaveLength(9000);
    expect(back.matches().spaceIds).toHaveLength(9000);
  });

  test.each([0, 1, 15, 17 * 16, 8192 * 16, 16 * 16 + 1])("%d bytes are no list of tokens", (length) => {
    expect(isTokenList(new Uint8Array(length))).toBe(false);
  });
});
