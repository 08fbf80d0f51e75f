import { base64ToBytes, bytesToBase64, bytesToHex, bytesToUtf8, hexToBytes, utf8ToBytes } from "../base/bytes.ts";
import type { AccountId, PeerId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { SvcError, svcError } from "../protocol/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../protocol/json.ts";
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
    const reason = "must not be empty; leave it out for a wallet without one";
    throw svcError("request.invalid_field", { field: "passkey", reason }, `passkey ${reason}`);
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
  if (!isJsonObject(secrets)) throw damaged("its payload is not an object");
  const index = secrets["index"];
  if (typeof index !== "number" || !Number.isInteger(index) || index < 0) throw damaged("index is not an integer");
  const wallet = assembleWallet({
    entropy: secretBytes(secrets, "entropy", ENTROPY_BYTES),
    index,
    accountSeed: secretBytes(secrets, "accountSeed", SEED_BYTES),
    deviceSeed: secretBytes(secrets, "deviceSeed", SEED_BYTES),
    machineId: envelope.machineId,
  });
  if (wallet.accountId !== envelope.accountId) throw damaged("accountId is not that of its account key");
  if (wallet.peerId !== envelope.peerId) throw damaged("peerId is not that of its device key");
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
  if (!sealed) throw damaged("its payload is not base64");
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
  if (text.length > MAX_CHARS) throw damaged(`it is longer than ${MAX_CHARS} characters`);
  const json = parseJson(text);
  if (!isJsonObject(json)) throw damaged("it is not a JSON object");
  if (json["kind"] !== KIND) throw damaged(`kind is not "${KIND}"`);
  const version = json["version"];
  if (typeof version === "number" && version > VERSION) {
    const message = `The wallet file is of version ${version}, this program knows version ${VERSION}: use a newer one`;
    throw new SvcError("internal", { message });
  }
  if (version !== VERSION) throw damaged("version is not known");
  const { accountId, peerId, machine, payload } = json;
  if (typeof accountId !== "string" || !parseAccountId(accountId)) throw damaged("accountId is not an account id");
  if (typeof peerId !== "string" || !parsePeerId(peerId)) throw damaged("peerId is not a peer id");
  if (typeof machine !== "string") throw damaged("machine is not a text");
  if (payload === undefined) throw damaged("payload is absent");
  const envelope: Envelope = {
    accountId: accountId as AccountId,
    peerId: peerId as PeerId,
    machineId: machine,
    kdf: json["kdf"] === undefined ? undefined : parseKdf(json["kdf"]),
    payload,
  };
  if (json["checksum"] !== checksumOf(envelope)) throw damaged("its checksum does not agree");
  return envelope;
}

function parseKdf(json: Json): Kdf {
  if (!isJsonObject(json) || json["name"] !== "argon2id") throw damaged("kdf.name is not argon2id");
  const { memoryKiB, passes, parallelism, salt } = json;
  if (typeof memoryKiB !== "number" || typeof passes !== "number" || typeof parallelism !== "number") {
    throw damaged("kdf has a parameter that is not a number");
  }
  const cost = { memoryKiB, passes, parallelism };
  const fault = passkeyCostFault(cost);
  if (fault) throw damaged(`kdf.${fault}`);
  if (typeof salt !== "string" || base64ToBytes(salt)?.length !== PASSKEY_SALT_BYTES) {
    throw damaged(`kdf.salt is not base64 of ${PASSKEY_SALT_BYTES} bytes`);
  }
  return { name: "argon2id", ...cost, salt };
}

function secretBytes(secrets: JsonObject, field: string, length: number): Uint8Array {
  const value = secrets[field];
  const bytes = typeof value === "string" ? hexToBytes(value) : undefined;
  if (bytes?.length !== length) throw damaged(`${field} is not ${length} bytes of hex`);
  return bytes;
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw damaged("it is not JSON");
  }
}

/** The reasons name fields and never values, so that no secret gets into a log. */
function damaged(reason: string): SvcError {
  return new SvcError("internal", {
    message: `The wallet file is damaged: ${reason}. Put back a copy of it, or restore the account from its 12 words`,
  });
}
