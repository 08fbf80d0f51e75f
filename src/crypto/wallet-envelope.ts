import { base64ToBytes, bytesToBase64, bytesToHex, bytesToUtf8, hexToBytes, utf8ToBytes } from "../base/bytes.ts";
import type { AccountId, PeerId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { refusedPart, SvcError, svcError } from "../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../protocol/json.ts";
import { type Refusal, refusal } from "../protocol/refusals.ts";
import { parseAccountId } from "./account-id.ts";
import { sha256 } from "./hash.ts";
import { ENTROPY_BYTES } from "./mnemonic.ts";
import { PASSKEY_COST, PASSKEY_SALT_BYTES, type PasskeyCost, passkeyCostFault, passkeyToKey } from "./passkey.ts";
import { parsePeerId } from "./peer-id.ts";
import { SEED_BYTES } from "./private-key.ts";
import { open, seal } from "./seal.ts";
import { assembleWallet, type Wallet } from "./wallet.ts";

/**
 * The text of `wallet.key`: one JSON object.
 *
 *     { kind, version, accountId, peerId, machine, kdf?, payload, checksum }
 *
 * Everything before `payload` is the header. Without `kdf` the payload is the secrets as an object; with it, the payload
 * is base64 of the secrets' JSON, sealed by AES-256-GCM under the passkey's key with the header as additional data.
 * `checksum` is SHA-256 over header and payload: it distinguishes a damaged file from a wrong passkey, but does not
 * protect against a forger.
 */
const KIND = "svc-wallet";
const VERSION = 1;
/** A wallet is about 700 characters. */
const MAX_CHARS = 16_384;

interface Kdf extends PasskeyCost {
  readonly name: "argon2id";
  /** Base64. */
  readonly salt: string;
}

/** What can be read of a wallet file without its passkey. */
export interface WalletHeader {
  readonly accountId: AccountId;
  readonly peerId: PeerId;
  readonly machineId: string;
  /** Whether opening needs a passkey. */
  readonly encrypted: boolean;
}

interface Envelope {
  readonly accountId: AccountId;
  readonly peerId: PeerId;
  readonly machineId: string;
  readonly kdf: Kdf | undefined;
  readonly payload: Json;
}

/**
 * Encodes the text for `wallet.key`, encrypted if a passkey is given. Throws `request.invalid_field` for an empty
 * passkey, which would only look like protection.
 */
export async function encodeWallet(
  wallet: Wallet,
  passkey?: string,
  cost: PasskeyCost = PASSKEY_COST,
): Promise<string> {
  const { accountId, peerId, machineId } = wallet;
  const secrets: JsonObject = {
    entropy: bytesToHex(wallet.entropy),
    index: wallet.index,
    accountSeed: bytesToHex(wallet.accountSeed),
    deviceSeed: bytesToHex(wallet.deviceSeed),
  };
  if (passkey === undefined) return envelopeText({ accountId, peerId, machineId, kdf: undefined, payload: secrets });
  if (passkey === "") {
    throw refusedPart("request.invalid_field", { field: "passkey" }, refusal("passkey.empty"), "plain");
  }
  const salt = randomBytes(PASSKEY_SALT_BYTES);
  const { memoryKiB, passes, parallelism } = cost;
  const kdf: Kdf = { name: "argon2id", memoryKiB, passes, parallelism, salt: bytesToBase64(salt) };
  const key = await passkeyToKey(passkey, salt, cost);
  const header = { accountId, peerId, machineId, kdf };
  const sealed = seal(key, utf8ToBytes(JSON.stringify(secrets)), utf8ToBytes(headerText(header)));
  return envelopeText({ ...header, payload: bytesToBase64(sealed) });
}

/**
 * Opens the wallet in a file's text. Ignores a passkey given for a wallet that has none. Throws `auth.passkey_required`
 * (absent or empty), `auth.passkey_wrong`, and `internal` with a message that says what is wrong when the file is damaged
 * or of a newer version.
 */
export async function openWallet(text: string, passkey?: string): Promise<Wallet> {
  const envelope = parseEnvelope(text);
  const secrets = envelope.kdf ? await openPayload(envelope, envelope.kdf, passkey) : envelope.payload;
  if (!isJsonObject(secrets)) throw damaged(refusal("wallet.payload_object"));
  const index = secrets["index"];
  if (typeof index !== "number" || !Number.isInteger(index) || index < 0) throw damaged(refusal("wallet.index"));
  const wallet = assembleWallet({
    entropy: secretBytes(secrets, "entropy", ENTROPY_BYTES),
    index,
    accountSeed: secretBytes(secrets, "accountSeed", SEED_BYTES),
    deviceSeed: secretBytes(secrets, "deviceSeed", SEED_BYTES),
    machineId: envelope.machineId,
  });
  if (wallet.accountId !== envelope.accountId) throw damaged(refusal("wallet.other_account"));
  if (wallet.peerId !== envelope.peerId) throw damaged(refusal("wallet.other_device"));
  return wallet;
}

/**
 * Reads what can be read without the passkey, which is enough to list wallets. Throws as `openWallet` does for a damaged
 * file.
 */
export function readWalletHeader(text: string): WalletHeader {
  const { accountId, peerId, machineId, kdf } = parseEnvelope(text);
  return { accountId, peerId, machineId, encrypted: kdf !== undefined };
}

async function openPayload(envelope: Envelope, kdf: Kdf, passkey: string | undefined): Promise<Json> {
  if (passkey === undefined || passkey === "") throw svcError("auth.passkey_required");
  const salt = base64ToBytes(kdf.salt)!;
  const sealed = typeof envelope.payload === "string" ? base64ToBytes(envelope.payload) : undefined;
  if (!sealed) throw damaged(refusal("wallet.payload_base64"));
  const key = await passkeyToKey(passkey, salt, kdf);
  const opened = open(key, sealed, utf8ToBytes(headerText(envelope)));
  if (!opened) throw svcError("auth.passkey_wrong");
  return parseJson(bytesToUtf8(opened) ?? "");
}

/** The fields are written one by one: their order is part of the format. */
function headerText({ accountId, peerId, machineId, kdf }: Omit<Envelope, "payload">): string {
  return JSON.stringify({
    kind: KIND,
    version: VERSION,
    accountId,
    peerId,
    machine: machineId,
    ...(kdf ? { kdf } : {}),
  });
}

function checksumOf(envelope: Envelope): string {
  return bytesToHex(sha256(utf8ToBytes(`${headerText(envelope)}\n${JSON.stringify(envelope.payload)}`)));
}

function envelopeText(envelope: Envelope): string {
  const header = JSON.parse(headerText(envelope)) as JsonObject;
  return `${JSON.stringify({ ...header, payload: envelope.payload, checksum: checksumOf(envelope) }, null, 2)}\n`;
}

function parseEnvelope(text: string): Envelope {
  if (text.length > MAX_CHARS) throw damaged(refusal("wallet.too_long", { limitChars: MAX_CHARS }));
  const json = parseJson(text);
  if (!isJsonObject(json)) throw damaged(refusal("wallet.object"));
  if (json["kind"] !== KIND) throw damaged(refusal("wallet.kind", { kind: KIND }));
  const version = json["version"];
  if (typeof version === "number" && version > VERSION) {
    throw new SvcError("internal", { refusal: refusal("wallet.newer", { version, known: VERSION }) });
  }
  if (version !== VERSION) throw damaged(refusal("wallet.version"));
  const { accountId, peerId, machine, payload } = json;
  if (typeof accountId !== "string" || !parseAccountId(accountId)) throw damaged(refusal("wallet.account_id"));
  if (typeof peerId !== "string" || !parsePeerId(peerId)) throw damaged(refusal("wallet.peer_id"));
  if (typeof machine !== "string") throw damaged(refusal("wallet.machine"));
  if (payload === undefined) throw damaged(refusal("wallet.no_payload"));
  const envelope: Envelope = {
    accountId: accountId as AccountId,
    peerId: peerId as PeerId,
    machineId: machine,
    kdf: json["kdf"] === undefined ? undefined : parseKdf(json["kdf"]),
    payload,
  };
  if (json["checksum"] !== checksumOf(envelope)) throw damaged(refusal("wallet.checksum"));
  return envelope;
}

function parseKdf(json: Json): Kdf {
  if (!isJsonObject(json) || json["name"] !== "argon2id") throw damaged(refusal("wallet.kdf_name"));
  const { memoryKiB, passes, parallelism, salt } = json;
  if (typeof memoryKiB !== "number" || typeof passes !== "number" || typeof parallelism !== "number") {
    throw damaged(refusal("wallet.kdf_number"));
  }
  const cost = { memoryKiB, passes, parallelism };
  const fault = passkeyCostFault(cost);
  if (fault) throw damaged(refusal("wallet.kdf_cost", fault));
  if (typeof salt !== "string" || base64ToBytes(salt)?.length !== PASSKEY_SALT_BYTES) {
    throw damaged(refusal("wallet.salt", { bytes: PASSKEY_SALT_BYTES }));
  }
  return { name: "argon2id", ...cost, salt };
}

function secretBytes(secrets: JsonObject, field: string, length: number): Uint8Array {
  const value = secrets[field];
  const bytes = typeof value === "string" ? hexToBytes(value) : undefined;
  if (bytes?.length !== length) throw damaged(refusal("wallet.secret", { field, bytes: length }));
  return bytes;
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw damaged(refusal("wallet.json"));
  }
}

/** The reasons name fields and never values, so that no secret gets into a log. */
function damaged(why: Refusal): SvcError {
  return new SvcError("internal", { refusal: refusal("wallet.damaged", { why }) });
}
