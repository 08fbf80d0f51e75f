import { expect, test } from "bun:test";
import { equalBytes } from "../base/bytes.ts";
import { isJsonObject, type Json, type JsonObject } from "../protocol/json.ts";
import { machineId } from "./machine-id.ts";
import { PASSKEY_COST, type PasskeyCost, passkeyCostFault } from "./passkey.ts";
import { createWallet, mnemonicOf, rebindWallet, type Wallet } from "./wallet.ts";
import { encodeWallet, openWallet, readWalletHeader } from "./wallet-envelope.ts";

/** The lowest cost that is accepted, so that the tests take milliseconds. */
const CHEAP: PasskeyCost = { memoryKiB: 8192, passes: 1, parallelism: 1 };
const PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow";
const here = "0".repeat(32);

const newWallet = () => createWallet({ machineId: here });

/** The wallet's text with these fields replaced; undefined omits a field. */
function edited(text: string, changes: Record<string, Json | undefined>): string {
  return JSON.stringify({ ...parsed(text), ...changes });
}

function parsed(text: string): JsonObject {
  const envelope = JSON.parse(text) as Json;
  if (!isJsonObject(envelope)) throw new Error("not a wallet");
  return envelope;
}

async function reason(opening: Promise<unknown>): Promise<{ code: string; message: string }> {
  return opening.then(
    () => ({ code: "opened", message: "" }),
    (error) => ({ code: error.code, message: error.message }),
  );
}

test("[ACC-1] a generated wallet is an account with 12 words, of index 1, with a device key of its own", async () => {
  const a = await newWallet();
  const b = await newWallet();
  expect(a.index).toBe(1);
  expect(a.accountId).toMatch(/^A/);
  expect(a.peerId).toMatch(/^12D3KooW/);
  expect((await mnemonicOf(a)).split(" ")).toHaveLength(12);
  expect(a.accountId).not.toBe(b.accountId);
  expect(a.peerId).not.toBe(b.peerId);
  expect(equalBytes(a.deviceSeed, a.accountSeed)).toBe(false);
});

test("[ACC-1] a phrase restores the same account with a fresh device key; another index is another account", async () => {
  const first = await newWallet();
  const mnemonic = await mnemonicOf(first);
  const restored = await createWallet({ mnemonic: `  ${mnemonic.toUpperCase()} `, machineId: "other" });
  expect(restored.accountId).toBe(first.accountId);
  expect(restored.accountSeed).toEqual(first.accountSeed);
  expect(restored.peerId).not.toBe(first.peerId);
  const zero = await createWallet({ mnemonic, index: 0, machineId: here });
  expect(zero.index).toBe(0);
  expect(zero.accountId).not.toBe(first.accountId);
});

test("a bad phrase and a bad index are refused with their codes", async () => {
  const bad = PHRASE.replace("yellow", "legal");
  expect(await reason(createWallet({ mnemonic: bad, machineId: here }))).toMatchObject({ code: "auth.bad_mnemonic" });
  expect(await reason(createWallet({ mnemonic: "", machineId: here }))).toMatchObject({ code: "auth.bad_mnemonic" });
  for (const index of [-1, 1.5, 2 ** 31]) {
    const refused = await reason(createWallet({ mnemonic: PHRASE, index, machineId: here }));
    expect(refused).toMatchObject({ code: "request.invalid_field" });
  }
});

for (const passkey of [undefined, "correct horse"]) {
  const kind = passkey === undefined ? "plain" : "encrypted";

  test(`${kind} wallet: opening gives back every secret, the header lists it without a passkey`, async () => {
    const wallet = await createWallet({ mnemonic: PHRASE, index: 7, machineId: here });
    const text = await encodeWallet(wallet, passkey, CHEAP);
    expect(await openWallet(text, passkey)).toEqual(wallet);
    const { accountId, peerId } = wallet;
    expect(readWalletHeader(text)).toEqual({ accountId, peerId, machineId: here, encrypted: passkey !== undefined });
  });

  test(`[ACC-2] ${kind} wallet: whatever is changed or cut is found, and named as damage`, async () => {
    const text = await encodeWallet(await newWallet(), passkey, CHEAP);
    const other = await newWallet();
    const damages: Record<string, string> = {
      empty: "",
      cut: text.slice(0, -20),
      "not an object": "[]",
      "other kind": edited(text, { kind: "wallet" }),
      "no version": edited(text, { version: undefined }),
      "other account": edited(text, { accountId: other.accountId }),
      "other peer": edited(text, { peerId: other.peerId }),
      "other machine": edited(text, { machine: "f".repeat(32) }),
      "no payload": edited(text, { payload: undefined }),
      "other payload": edited(text, { payload: "AAAA" }),
      "no checksum": edited(text, { checksum: undefined }),
      "too long": text + " ".repeat(20_000),
    };
    for (const [name, damaged] of Object.entries(damages)) {
      const refusal = await reason(openWallet(damaged, passkey));
      expect({ name, ...refusal }).toMatchObject({ code: "internal" });
      expect(refusal.message).toStartWith("The wallet file is damaged: ");
    }
  });

  test(`[ACC-2] ${kind} wallet: a flipped character is found wherever it is`, async () => {
    const text = await encodeWallet(await newWallet(), passkey, CHEAP);
    for (let i = 0; i < text.length; i += 3) {
      const flipped = text.slice(0, i) + String.fromCharCode(text.charCodeAt(i) ^ 1) + text.slice(i + 1);
      expect(() => readWalletHeader(flipped)).toThrow();
    }
  });
}

test("[ACC-2] a wallet with a passkey shows no secret, and asks for the passkey", async () => {
  const wallet = await newWallet();
  const text = await encodeWallet(wallet, "correct horse", CHEAP);
  for (const secret of [wallet.entropy, wallet.accountSeed, wallet.deviceSeed]) {
    expect(text).not.toContain(secret.toHex());
    expect(text).not.toContain(secret.toBase64());
  }
  for (const absent of [undefined, ""]) {
    expect(await reason(openWallet(text, absent))).toMatchObject({ code: "auth.passkey_required" });
  }
  for (const wrong of ["correct horsf", "Correct horse", "correct horse "]) {
    expect(await reason(openWallet(text, wrong))).toMatchObject({ code: "auth.passkey_wrong" });
  }
});

test("a passkey is the same in every Unicode form", async () => {
  const wallet = await newWallet();
  const text = await encodeWallet(wallet, "caf\u00e9", CHEAP);
  expect(await openWallet(text, "cafe\u0301")).toEqual(wallet);
});

test("an empty passkey is refused when writing; one that is not needed is not looked at", async () => {
  const wallet = await newWallet();
  expect(await reason(encodeWallet(wallet, ""))).toMatchObject({ code: "request.invalid_field" });
  expect(await openWallet(await encodeWallet(wallet), "whatever")).toEqual(wallet);
});

test("two encodings of one wallet share neither salt nor sealed bytes", async () => {
  const wallet = await newWallet();
  const texts = [await encodeWallet(wallet, "p", CHEAP), await encodeWallet(wallet, "p", CHEAP)];
  const [a, b] = texts.map(parsed);
  expect(a!["payload"]).not.toEqual(b!["payload"]);
  expect(a!["kdf"]).not.toEqual(b!["kdf"]);
});

test("the default cost is 64 MiB and 3 passes on one lane, and opens", async () => {
  const wallet = await newWallet();
  const text = await encodeWallet(wallet, "p");
  expect(parsed(text)["kdf"]).toMatchObject({ name: "argon2id", memoryKiB: 65_536, passes: 3, parallelism: 1 });
  expect(await openWallet(text, "p")).toEqual(wallet);
});

test("[ACC-2] a file cannot ask for more memory, passes or lanes than the bounds", async () => {
  const text = await encodeWallet(await newWallet(), "p", CHEAP);
  const hostile: JsonObject[] = [
    { memoryKiB: 2 ** 30 },
    { memoryKiB: 1 },
    { passes: 1e9 },
    { passes: 0 },
    { parallelism: 1e6 },
    { memoryKiB: 65_536.5 },
    { memoryKiB: "65536" },
    { salt: "AAAA" },
    { name: "scrypt" },
  ];
  for (const change of hostile) {
    const asking = edited(text, { kdf: { ...(parsed(text)["kdf"] as JsonObject), ...change } });
    const refusal = await reason(openWallet(asking, "p"));
    expect({ change, ...refusal }).toMatchObject({ code: "internal", message: expect.stringContaining("kdf") });
  }
  expect(passkeyCostFault(PASSKEY_COST)).toBeUndefined();
});

test("[ACC-2] a newer version is refused with the advice to use a newer program", async () => {
  const text = edited(await encodeWallet(await newWallet()), { version: 2 });
  expect(await reason(openWallet(text))).toMatchObject({ code: "internal", message: expect.stringContaining("newer") });
});

test("[ACC-2] no error about a wallet quotes what is in it", async () => {
  const wallet = await newWallet();
  const text = await encodeWallet(wallet);
  const secrets = [wallet.entropy, wallet.accountSeed, wallet.deviceSeed].map((bytes) => bytes.toHex());
  for (const broken of [
    text.slice(0, 500),
    text.replace(secrets[0]!, `${secrets[0]}00`),
    text.replace('"index": 1', '"index": "1"'),
  ]) {
    const { message } = await reason(openWallet(broken));
    for (const secret of secrets) expect(message).not.toContain(secret);
  }
});

test("[SRV-10] on its own machine a wallet stays as it is; on another it gets a new device key and says so", async () => {
  const wallet = await newWallet();
  expect(rebindWallet(wallet, here)).toEqual({ wallet, rebound: false });
  const moved = rebindWallet(wallet, "elsewhere");
  expect(moved.rebound).toBe(true);
  expect(moved.wallet.peerId).not.toBe(wallet.peerId);
  const rest = ({ accountId, accountSeed, entropy, index }: Wallet) => ({ accountId, accountSeed, entropy, index });
  expect(rest(moved.wallet)).toEqual(rest(wallet));
  expect(rebindWallet(moved.wallet, "elsewhere").rebound).toBe(false);
  expect(await openWallet(await encodeWallet(moved.wallet))).toEqual(moved.wallet);
});

test("machine id: stable, 32 hex characters, another for another machine, from each system's own identifier", async () => {
  const nothing = { readText: async () => undefined, run: async () => undefined, hostname: () => "box" };
  const linux = (id: string) => ({
    ...nothing,
    platform: "linux",
    readText: async (path: string) => (path === "/etc/machine-id" ? `${id}\n` : undefined),
  });
  const uuid = "12345678-1234-1234-1234-123456789abc";
  const ids = await Promise.all([
    machineId(linux("a".repeat(32))),
    machineId(linux("b".repeat(32))),
    machineId({ ...nothing, platform: "darwin", run: async () => `  "IOPlatformUUID" = "${uuid}"\n` }),
    machineId({
      ...nothing,
      platform: "win32",
      run: async () => `    MachineGuid    REG_SZ    ${uuid.replace("1", "2")}\r\n`,
    }),
    machineId({ ...nothing, platform: "linux" }),
    machineId({ ...nothing, platform: "linux", hostname: () => "other-box" }),
  ]);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set(ids).size).toBe(ids.length);
  expect(await machineId(linux("uninitialized"))).toBe(ids[4]!); // falls back to the host name
  expect(await machineId(linux(""))).toBe(ids[4]!);
  expect(await machineId()).toBe(await machineId());
});
