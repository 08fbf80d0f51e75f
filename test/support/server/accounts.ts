/**
 * Accounts on disk, arranged in the two layouts of SRV-1, and the published derivation of an account id
 * (BIP-39, SLIP-10 Ed25519, base58), written from the standards so that the server's own is checked against it.
 */
import { createHmac, createPrivateKey, createPublicKey, pbkdf2Sync } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchDir } from "../scratch.ts";
import { startServer } from "./server.ts";

/** BIP-39's first test phrase: entropy of 128 zero bits. */
export const ZERO_MNEMONIC = `${"abandon ".repeat(11)}about`;

export interface MadeAccount {
  id: string;
  mnemonic: string;
  /** Directory that holds wallet.key and what belongs to the account. */
  dir: string;
}

/** Creates an account through `POST /v1/auth` in the given root (fresh when absent) and stops the server. */
async function makeAccount(root: string, body: Record<string, unknown> = {}): Promise<MadeAccount> {
  await using server = await startServer({ dataDir: root, account: false });
  const made = await server.client.post<{ accountId: string; mnemonic?: string }>("/v1/auth", body);
  await server.client.untilBootstrapped();
  await server.stop();
  return { id: made.accountId, mnemonic: made.mnemonic ?? "", dir: dirname(findWallets(root)[0]!) };
}

/** A root with one account in the flat layout (`<root>/wallet.key`) or as `<root>/<id>/`. */
export async function rootWith(
  layout: "flat" | "nested",
  body: Record<string, unknown> = {},
): Promise<Disposable & { path: string; account: MadeAccount }> {
  using source = scratchDir("svc-made");
  const account = await makeAccount(source.path, body);
  const target = scratchDir("svc-root");
  const dir = layout === "flat" ? target.path : join(target.path, account.id);
  moveAccount(account.dir, dir);
  return { path: target.path, account: { ...account, dir }, [Symbol.dispose]: () => target[Symbol.dispose]() };
}

/** Copies an account's own files (never the directories of other accounts) to another place. */
export function moveAccount(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const name of ["wallet.key", "sdk", "files", "index"]) {
    if (existsSync(join(from, name))) cpSync(join(from, name), join(to, name), { recursive: true });
  }
}

export function findWallets(root: string): string[] {
  return readdirSync(root, { recursive: true })
    .map(String)
    .filter((name) => name === "wallet.key" || name.endsWith("/wallet.key"))
    .map((name) => join(root, name));
}

/** The account's Ed25519 public key: BIP-39 seed (no passphrase), SLIP-10 at m/44'/2046'/index'/0'. */
export function accountPublicKey(mnemonic: string, index: number): Uint8Array {
  const seed = pbkdf2Sync(mnemonic.normalize("NFKD"), "mnemonic", 2048, 64, "sha512");
  let node = createHmac("sha512", "ed25519 seed").update(seed).digest();
  for (const step of [44, 2046, index, 0]) {
    const data = Buffer.alloc(37);
    node.copy(data, 1, 0, 32);
    data.writeUInt32BE((0x8000_0000 + step) >>> 0, 33);
    node = createHmac("sha512", node.subarray(32)).update(data).digest();
  }
  const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), node.subarray(0, 32)]);
  const key = createPublicKey(createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" }));
  return key.export({ format: "der", type: "spki" }).subarray(-32);
}

/** Version byte, public key and checksum of an account id. */
export function decodeAccountId(id: string): { version: number; publicKey: Uint8Array; checksum: Uint8Array } {
  const bytes = decodeBase58(id);
  return { version: bytes[0]!, publicKey: bytes.subarray(1, 33), checksum: bytes.subarray(33) };
}

function decodeBase58(text: string): Uint8Array {
  const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  let value = 0n;
  for (const character of text) {
    const digit = alphabet.indexOf(character);
    if (digit < 0) throw new Error(`${character} is no base58 digit`);
    value = value * 58n + BigInt(digit);
  }
  const hex = value.toString(16);
  const zeros = /^1*/.exec(text)![0].length;
  return Buffer.concat([Buffer.alloc(zeros), Buffer.from(hex.length % 2 ? `0${hex}` : hex, "hex")]);
}
