import { concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { SpaceId } from "../../base/ids.ts";
import { randomBytes } from "../../base/random.ts";

/**
 * Finds out what two peers share without saying what one of them has. For every key each side shows a keyed hash over what
 * is unique to this connection (the TLS exporter, made from both sides' randomness) and over its role in it. A holder of
 * the same key recognises the hash. To anybody else it is noise, as are the random tokens among which it hides, and it is
 * worth nothing on another connection or from the other side.
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
/** In one list; a side with more keys shows several lists, one after the other. */
const TOKENS_MAX = 4096;
/**
 * Lists of one exchange: 65,536 keys, which is what some ten thousand spaces have. The spaces beyond that are not
 * recognised.
 */
export const TOKEN_LISTS_MAX = 16;
const BUCKET_MIN = 16;
/** A bound, so that inbox messages that nobody fetches do not crowd out spaces. */
const INBOXES_MAX = 256;
/** Tokens made in one go; then other work gets its turn. */
const SLICE = 512;
const LABEL = utf8ToBytes("svc/p2p/token/v1\0");

/** What tokens of one exchange are bound to. */
export interface TokenContext {
  /** Unique to the connection; for a later exchange on the same connection, unique to that exchange. */
  readonly binding: Uint8Array;
}

export interface Matches {
  readonly own: boolean;
  /** An inbox message waits here for the other side, or there for us. */
  readonly inboxMessages: boolean;
  readonly spaceIds: readonly SpaceId[];
}

/** The tokens that a side shows, in lists with noise up to the next bucket, in an order that tells nothing. */
export async function tokenLists(keys: LinkKeys, role: LinkRole, context: TokenContext): Promise<Uint8Array[]> {
  const tokens: Uint8Array[] = [];
  for (const { key } of allKeys(keys)) {
    tokens.push(tokenOf(key, role, context));
    if (tokens.length % SLICE === 0) await Bun.sleep(0);
  }
  const lists: Uint8Array[] = [];
  for (let at = 0; at < tokens.length; at += TOKENS_MAX) {
    const list = tokens.slice(at, at + TOKENS_MAX);
    lists.push(padTokens(list, bucketOf(list.length)));
  }
  return lists;
}

/** What the other side's lists of tokens have in common with our keys; one matcher an exchange. */
export interface TokenMatcher {
  /** Notes what a list has in common with our keys. */
  note(shown: Uint8Array): void;
  /**
   * The same, and answers our own tokens for the shared keys and nothing about the others; as many tokens as the other side
   * showed.
   */
  answer(shown: Uint8Array): Uint8Array;
  /** Of all lists so far. */
  matches(): Matches;
}

export async function createTokenMatcher(
  keys: LinkKeys,
  shownBy: LinkRole,
  context: TokenContext,
): Promise<TokenMatcher> {
  const role: LinkRole = shownBy === "dialler" ? "listener" : "dialler";
  const keysByToken = new Map<string, TokenKey[]>();
  let made = 0;
  for (const one of allKeys(keys)) {
    const token = tokenOf(one.key, shownBy, context).toHex();
    const same = keysByToken.get(token);
    if (same) same.push(one);
    else keysByToken.set(token, [one]);
    if (++made % SLICE === 0) await Bun.sleep(0);
  }
  const matched = new Set<TokenKey>();

  const note = (shown: Uint8Array): TokenKey[] => {
    const found = new Set<TokenKey>();
    for (let at = 0; at < shown.length; at += TOKEN_BYTES)
      for (const one of keysByToken.get(shown.subarray(at, at + TOKEN_BYTES).toHex()) ?? []) found.add(one);
    for (const one of found) matched.add(one);
    return [...found];
  };
  return {
    note: (shown) => void note(shown),
    answer: (shown) =>
      padTokens(
        note(shown).map(({ key }) => tokenOf(key, role, context)),
        shown.length / TOKEN_BYTES,
      ),
    matches() {
      const all = [...matched];
      const has = (kind: "own" | "inboxMessages") => all.some(({ of }) => of === kind);
      const spaceIds = new Set(all.flatMap(({ of }) => (typeof of === "object" ? of.spaceId : [])));
      return { own: has("own"), inboxMessages: has("inboxMessages"), spaceIds: [...spaceIds] };
    },
  };
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

function allKeys(keys: LinkKeys): TokenKey[] {
  const all: TokenKey[] = [
    { key: keys.own, of: "own" },
    ...(keys.inboxMessages ?? []).slice(0, INBOXES_MAX).map((key) => ({ key, of: "inboxMessages" as const })),
    ...keys.spaces.map(({ key, spaceId }) => ({ key, of: { spaceId } })),
  ];
  return all.slice(0, TOKENS_MAX * TOKEN_LISTS_MAX);
}

/** How many tokens have to be made to compare these keys with the tokens that are shown; those shown are not counted. */
export const tokenCount = (keys: LinkKeys): number => allKeys(keys).length;

function tokenOf(key: Uint8Array, role: LinkRole, context: TokenContext): Uint8Array {
  const hmac = new Bun.CryptoHasher("sha256", key)
    .update(LABEL)
    .update(Uint8Array.of(role === "dialler" ? 1 : 2))
    .update(context.binding);
  return hmac.digest().subarray(0, TOKEN_BYTES);
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
