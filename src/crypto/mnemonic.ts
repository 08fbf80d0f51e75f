import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { utf8ToBytes } from "../base/bytes.ts";
import { randomBytes } from "../base/random.ts";

/** 12 words: 128 bits of entropy and 4 of checksum (BIP-39). No other length is accepted. */
export const ENTROPY_BYTES = 16;
const WORDS = 12;
/** The longest valid phrase has 12 words of 8 letters. The limit is generous, so that stray white space is accepted. */
const MAX_INPUT_CHARS = 1000;

const pbkdf2Async = promisify(pbkdf2);

/** Makes 16 bytes of fresh entropy. */
export function generateEntropy(): Uint8Array {
  return randomBytes(ENTROPY_BYTES);
}

/** The 12 English words of 16 bytes of entropy, separated by single spaces. */
export async function entropyToMnemonic(entropy: Uint8Array): Promise<string> {
  if (entropy.length !== ENTROPY_BYTES) throw new RangeError(`12 words need 16 bytes, got ${entropy.length}`);
  const { bip39, wordlist } = await loadBip39();
  return bip39.entropyToMnemonic(entropy, wordlist);
}

/**
 * The entropy of a phrase as a person types it (any case, any white space, any Unicode form), or undefined when it is not
 * 12 words of the English list with the right checksum.
 */
export async function mnemonicToEntropy(phrase: string): Promise<Uint8Array | undefined> {
  if (phrase.length > MAX_INPUT_CHARS) return undefined;
  const words = phrase.normalize("NFKD").toLowerCase().trim().split(/\s+/);
  if (words.length !== WORDS) return undefined;
  const { bip39, wordlist } = await loadBip39();
  const normalized = words.join(" ");
  return bip39.validateMnemonic(normalized, wordlist) ? bip39.mnemonicToEntropy(normalized, wordlist) : undefined;
}

/** BIP-39's 64-byte seed of a valid phrase: PBKDF2-HMAC-SHA512, 2048 rounds, salt "mnemonic" ‖ passphrase. */
export async function mnemonicToSeed(mnemonic: string, passphrase = ""): Promise<Uint8Array> {
  const password = utf8ToBytes(mnemonic.normalize("NFKD"));
  const salt = utf8ToBytes(`mnemonic${passphrase.normalize("NFKD")}`);
  return new Uint8Array(await pbkdf2Async(password, salt, 2048, 64, "sha512"));
}

/** Loaded on first use: only creating, restoring and showing a phrase need the word list; an ordinary boot does not. */
async function loadBip39() {
  const [bip39, { wordlist }] = await Promise.all([
    import("@scure/bip39"),
    import("@scure/bip39/wordlists/english.js"),
  ]);
  return { bip39, wordlist };
}
