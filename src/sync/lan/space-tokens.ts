import { createHmac } from "node:crypto";
import { concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";

/**
 * Finding out what two peers share without telling what one has: each shows, for every key, a keyed hash over what is
 * unique to this connection (the TLS exporter, made from both sides' randomness) and its role in it. Who holds the same
 * key recognises the hash; to anybody else it is noise, as are the random ones among which it hides, and it is worth
 * nothing on another connection or from the other side.
 */

/** A key by which peers recognise that they share a space. A space may have several (by epoch, by pair of members). */
interface SpaceKey {
  readonly spaceId: SpaceId;
  readonly key: Uint8Array;
}

export interface LinkKeys {
  readonly spaces: readonly SpaceKey[];
  /** Shared by the devices of this account, and nobody else. */
  readonly own: Uint8Array;
  /** This account's inbox, and those of accounts for which inbox messages wait here. */
  readonly inboxMessages?: readonly Uint8Array[];
}

export type LinkRole = "dialler" | "listener";

export const TOKEN_BYTES = 16;
const TOKENS_MAX = 4096;
const BUCKET_MIN = 16;
/** So that inbox messages nobody fetches do not crowd out spaces. */
const INBOXES_MAX = 256;
const LABEL = utf8ToBytes("svc/p2p/token/v1\0");

/** What tokens of one exchange are bound to. */
export interface TokenContext {
  /** Unique to the connection, and for later exchanges on it to the exchange. */
  readonly binding: Uint8Array;
}

export interface Matches {
  readonly own: boolean;
  /** An inbox message waits here for the other side, or there for us. */
  readonly inboxMessages: boolean;
  readonly spaceIds: readonly SpaceId[];
}

/** The tokens that a side shows, with noise up to the next bucket, in an order that tells nothing. */
export function showTokens(keys: LinkKeys, role: LinkRole, context: TokenContext): Uint8Array {
  const tokens = allKeys(keys).map(({ key }) => tokenOf(key, role, context));
  return padTokens(tokens, bucketOf(tokens.length));
}

/** What the other side's tokens have in common with our keys. */
export function matchTokens(keys: LinkKeys, shown: Uint8Array, shownBy: LinkRole, context: TokenContext): Matches {
  const matched = matchedKeys(keys, shown, shownBy, context);
  const spaceIds = new Set<SpaceId>();
  for (const { of } of matched) if (typeof of === "object") spaceIds.add(of.spaceId);
  const has = (kind: "own" | "inboxMessages") => matched.some(({ of }) => of === kind);
  return { own: has("own"), inboxMessages: has("inboxMessages"), spaceIds: [...spaceIds] };
}

/** Our own tokens for the keys that the other side has shown, and nothing of the others; as many as it showed. */
export function answerTokens(keys: LinkKeys, shown: Uint8Array, shownBy: LinkRole, context: TokenContext): Uint8Array {
  const role: LinkRole = shownBy === "dialler" ? "listener" : "dialler";
  const tokens = matchedKeys(keys, shown, shownBy, context).map(({ key }) => tokenOf(key, role, context));
  return padTokens(tokens, shown.length / TOKEN_BYTES);
}

/** Whether bytes can be a list of tokens: a bucket's size exactly. */
export const isTokenList = (bytes: Uint8Array): boolean =>
  bytes.length % TOKEN_BYTES === 0 &&
  bytes.length / TOKEN_BYTES <= TOKENS_MAX &&
  bucketOf(bytes.length / TOKEN_BYTES) * TOKEN_BYTES === bytes.length;

interface TokenKey {
  readonly key: Uint8Array;
  readonly of: "own" | "inboxMessages" | { readonly spaceId: SpaceId };
}

function matchedKeys(keys: LinkKeys, shown: Uint8Array, shownBy: LinkRole, context: TokenContext): TokenKey[] {
  const present = new Set<string>();
  for (let at = 0; at < shown.length; at += TOKEN_BYTES) present.add(shown.subarray(at, at + TOKEN_BYTES).toHex());
  return allKeys(keys).filter(({ key }) => present.has(tokenOf(key, shownBy, context).toHex()));
}

function allKeys(keys: LinkKeys): TokenKey[] {
  const all: TokenKey[] = [
    { key: keys.own, of: "own" },
    ...(keys.inboxMessages ?? []).slice(0, INBOXES_MAX).map((key) => ({ key, of: "inboxMessages" as const })),
    ...keys.spaces.map(({ key, spaceId }) => ({ key, of: { spaceId } })),
  ];
  return all.slice(0, TOKENS_MAX);
}

function tokenOf(key: Uint8Array, role: LinkRole, context: TokenContext): Uint8Array {
  const hmac = createHmac("sha256", key)
    .update(LABEL)
    .update(Uint8Array.of(role === "dialler" ? 1 : 2))
    .update(context.binding);
  return new Uint8Array(hmac.digest()).subarray(0, TOKEN_BYTES);
}

function bucketOf(count: number): number {
  let bucket = BUCKET_MIN;
  while (bucket < count) bucket *= 2;
  return bucket;
}

/** Sorted: tokens and noise are both uniform, so their order says nothing about which is which. */
function padTokens(tokens: readonly Uint8Array[], bucket: number): Uint8Array {
  const all = [...tokens];
  while (all.length < bucket) all.push(randomBytes(TOKEN_BYTES));
  return concatBytes(...all.sort((a, b) => Buffer.compare(a, b)));
}
