import type { Socket } from "node:net";
import { concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { AccountId, PeerId, SpaceId } from "../../base/ids.ts";
import { accountIdOf } from "../../crypto/account-id.ts";
import { parsePeerId } from "../../crypto/peer-id.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { SIGNATURE_BYTES, type Signer, verify } from "../../crypto/sign.ts";
import { encodeFrame, FRAME, type Frame, type FrameReader } from "./framing.ts";
import {
  createTokenMatcher,
  isTokenList,
  type LinkKeys,
  type LinkRole,
  type Matches,
  TOKEN_LISTS_MAX,
  type TokenMatcher,
  tokenLists,
} from "./space-tokens.ts";

/**
 * What happens on a connection before anything else, inside mutual TLS 1.3 that has proved both device keys:
 *
 *   dialler → listener   version, tokens of all its keys
 *   listener → dialler   version, tokens of those keys both have
 *                        (these two again for every further list of one who has more than 4,096 keys)
 *   dialler → listener   account key, signature        only if something matched
 *   listener → dialler   account key, signature        only if the dialler's holds
 *
 * A side that shares no key learns nothing but the other's device key and how many keys it has, rounded up to a power of
 * two: no space, no account. The signatures cover the TLS exporter, both peer ids and the signer's role, so a proof can
 * neither be relayed to another connection nor reflected (SYNC-6).
 */

export interface HandshakeIdentity {
  readonly peerId: PeerId;
  /** Signs as the account, kind `p2p-account`. */
  readonly account: Signer;
}

export interface HandshakeResult extends Matches {
  readonly accountId: AccountId;
}

/** Why a handshake ended without a link. `nothing-shared` is the ordinary end between strangers. */
export type HandshakeFailure =
  | "self"
  | "bad-certificate"
  | "nothing-shared"
  | "bad-format"
  | "bad-proof"
  | "bad-account"
  | "closed"
  | "timeout";

/** Ends a handshake; does not leave this room. */
export class HandshakeError extends Error {
  readonly failure: HandshakeFailure;
  constructor(failure: HandshakeFailure) {
    super(failure);
    this.failure = failure;
  }
}

export interface HandshakeContext {
  readonly role: LinkRole;
  /** 32 bytes from the TLS exporter (RFC 8446 § 7.5). */
  readonly exporter: Uint8Array;
  readonly remotePeerId: PeerId;
}

/** First byte of a list of tokens: the last one, or one that another follows. */
const LAST_LIST = 1;
const LIST_GOES_ON = 2;
/** What may arrive before it is asked for: the peer's part of the handshake, and what it says right after. */
const EARLY_FRAMES_MAX = 64;
const PROOF_BYTES = 32 + SIGNATURE_BYTES;

/** Runs a handshake. Rejects with a HandshakeError; the socket is the caller's to close. */
export async function shakeHands(
  frames: FrameSource,
  identity: HandshakeIdentity,
  keys: LinkKeys,
  context: HandshakeContext,
): Promise<HandshakeResult> {
  const binding = connectionBinding(identity.peerId, context);
  const matches = await (context.role === "dialler" ? matchAsDialler : matchAsListener)(frames, keys, { binding });
  if (!isSharing(matches)) throw new HandshakeError("nothing-shared");
  const accountKey = await exchangeProofs(frames, identity, context.role, binding);
  const isOwnAccount = Buffer.compare(accountKey, identity.account.publicKey) === 0;
  // Only the account's own devices hold this key; a device of the account that does not show it does not count as one.
  if (isOwnAccount !== matches.own) throw new HandshakeError("bad-account");
  return { ...matches, accountId: accountIdOf(accountKey) };
}

/** Whether there is anything to exchange on this link. */
export const isSharing = ({ own, inboxMessages, spaceIds }: Matches): boolean =>
  own || inboxMessages || spaceIds.length > 0;

/** What is unique to this connection and the same on both sides: exporter, the dialler's device key, the listener's. */
export function connectionBinding(ownPeerId: PeerId, context: HandshakeContext): Uint8Array {
  const own = parsePeerId(ownPeerId);
  const remote = parsePeerId(context.remotePeerId);
  if (!own || !remote) throw new HandshakeError("bad-format");
  return context.role === "dialler"
    ? concatBytes(context.exporter, own, remote)
    : concatBytes(context.exporter, remote, own);
}

async function matchAsDialler(frames: FrameSource, keys: LinkKeys, context: { binding: Uint8Array }): Promise<Matches> {
  const matcher = await createTokenMatcher(keys, "listener", context);
  const lists = await tokenLists(keys, "dialler", context);
  for (const [index, shown] of lists.entries()) {
    frames.send(markedList(shown, index + 1 < lists.length));
    const answer = readTokens(await frames.next()).tokens;
    if (answer.length !== shown.length) throw new HandshakeError("bad-format");
    matcher.note(answer);
  }
  return matcher.matches();
}

async function matchAsListener(
  frames: FrameSource,
  keys: LinkKeys,
  context: { binding: Uint8Array },
): Promise<Matches> {
  let matcher: TokenMatcher | undefined;
  for (let lists = 1; lists <= TOKEN_LISTS_MAX; lists++) {
    const { tokens, goesOn } = readTokens(await frames.next());
    // Tokens are made only after something was shown, so a peer that merely connects costs nothing.
    matcher ??= await createTokenMatcher(keys, "dialler", context);
    frames.send(markedList(matcher.answer(tokens), goesOn));
    if (!goesOn) return matcher.matches();
  }
  throw new HandshakeError("bad-format");
}

async function exchangeProofs(
  frames: FrameSource,
  identity: HandshakeIdentity,
  role: LinkRole,
  binding: Uint8Array,
): Promise<Uint8Array> {
  const sendOwn = () => {
    const signature = identity.account.sign("p2p-account", provenBytes(role, binding));
    frames.send(concatBytes(identity.account.publicKey, signature));
  };
  const readOther = async () => {
    const proof = await frames.next();
    if (proof.length !== PROOF_BYTES) throw new HandshakeError("bad-format");
    const accountKey = proof.slice(0, 32);
    const signed = provenBytes(role === "dialler" ? "listener" : "dialler", binding);
    if (!admitPublicKey(accountKey) || !verify(accountKey, "p2p-account", signed, proof.subarray(32))) {
      throw new HandshakeError("bad-proof");
    }
    return accountKey;
  };
  if (role === "listener") {
    const accountKey = await readOther();
    sendOwn();
    return accountKey;
  }
  sendOwn();
  return readOther();
}

/**
 * What a key proves about itself on a connection that belongs to another account. The role and the space make the proof
 * worthless elsewhere.
 */
export const guestProofBytes = (role: LinkRole, binding: Uint8Array, spaceId: SpaceId): Uint8Array =>
  concatBytes(provenBytes(role, binding), utf8ToBytes(`\0${spaceId}`));

const provenBytes = (role: LinkRole, binding: Uint8Array): Uint8Array => concatBytes(utf8ToBytes(`${role}\0`), binding);

/** A list of tokens, behind a byte that says whether another follows. */
export const markedList = (tokens: Uint8Array, goesOn: boolean): Uint8Array =>
  concatBytes(Uint8Array.of(goesOn ? LIST_GOES_ON : LAST_LIST), tokens);

/** Throws a HandshakeError for what is no such list. */
export function readTokens(payload: Uint8Array): { tokens: Uint8Array; goesOn: boolean } {
  const tokens = payload.subarray(1);
  const [mark] = payload;
  if ((mark !== LAST_LIST && mark !== LIST_GOES_ON) || !isTokenList(tokens)) throw new HandshakeError("bad-format");
  return { tokens, goesOn: mark === LIST_GOES_ON };
}

/** A socket's handshake frames, one by one. */
export interface FrameSource {
  send(payload: Uint8Array): void;
  /** The next payload. Rejects with a HandshakeError when the peer breaks the format, goes, or is too slow. */
  next(): Promise<Uint8Array>;
  /** Stops reading. Frames that came too early for the handshake belong to the next reader of the socket. */
  detach(): Frame[];
}

export function createFrameSource(socket: Socket, reader: FrameReader, deadlineMs: number): FrameSource {
  const arrived: Frame[] = [];
  let failure: HandshakeFailure | undefined;
  let notify: () => void = () => {};
  const failWith = (reason: HandshakeFailure) => {
    failure ??= reason;
    notify();
  };
  const onData = (bytes: Uint8Array) => {
    const frames = reader.push(bytes);
    if (!frames || arrived.length + frames.length > EARLY_FRAMES_MAX) return failWith("bad-format");
    arrived.push(...frames);
    notify();
  };
  const onEnd = () => failWith("closed");
  socket.on("data", onData);
  socket.on("close", onEnd);
  socket.on("error", onEnd);
  const timer = setTimeout(() => failWith("timeout"), deadlineMs);
  return {
    send: (payload) => void socket.write(encodeFrame(FRAME.handshake, 0, payload)),
    next: async () => {
      for (;;) {
        const frame = arrived.shift();
        if (frame) {
          if (frame.type !== FRAME.handshake || frame.more) throw new HandshakeError("bad-format");
          return frame.payload;
        }
        if (failure) throw new HandshakeError(failure);
        await new Promise<void>((done) => {
          notify = done;
        });
      }
    },
    detach: () => {
      clearTimeout(timer);
      socket.off("data", onData);
      socket.off("close", onEnd);
      socket.off("error", onEnd);
      return arrived.splice(0);
    },
  };
}
