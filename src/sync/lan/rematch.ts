import { bytesToHex, concatBytes } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { HandshakeError, markedList, readTokens } from "./handshake.ts";
import {
  createTokenMatcher,
  type LinkKeys,
  type LinkRole,
  type Matches,
  TOKEN_BYTES,
  TOKEN_LISTS_MAX,
  type TokenMatcher,
  tokenCount,
  tokenLists,
} from "./space-tokens.ts";

const NONCE_BYTES = 32;

/**
 * Compares keys once more on a link that is up: as in the handshake, and bound to a nonce as well. A question is the nonce
 * and a list of tokens; its answer is a list of the same length. Of several lists with one nonce the last says what both
 * sides have.
 */
export function createRematch(at: {
  readonly role: LinkRole;
  readonly binding: Uint8Array;
  currentKeys(): LinkKeys;
  /** Resolves when the peer may have so many more tokens made for its questions. */
  afford(tokens: number): Promise<void>;
  /** What is shared by now. */
  matched(matches: Matches): void;
}) {
  const remoteRole: LinkRole = at.role === "dialler" ? "listener" : "dialler";
  /** The comparison that the peer is in the middle of. */
  let asked: { nonce: string; matcher: TokenMatcher; lists: number } | undefined;
  /** Our own comparisons go one after the other, because the peer keeps one at a time. */
  let last: Promise<void> = Promise.resolve();
  /** A comparison that has not begun yet serves everybody who asks meanwhile. */
  let next: Promise<void> | undefined;
  /** The peer's comparisons go one after the other too, because each costs a token of every key. */
  let answered: Promise<unknown> = Promise.resolve();

  const ask = async (request: (body: Uint8Array) => Promise<Uint8Array>): Promise<void> => {
    const nonce = randomBytes(NONCE_BYTES);
    const context = { binding: concatBytes(at.binding, nonce) };
    const keys = at.currentKeys();
    const matcher = await createTokenMatcher(keys, remoteRole, context);
    const lists = await tokenLists(keys, at.role, context);
    for (const [index, shown] of lists.entries()) {
      const answer = await request(concatBytes(nonce, markedList(shown, index + 1 < lists.length)));
      const { tokens } = readTokens(answer);
      if (tokens.length !== shown.length) throw new HandshakeError("bad-format");
      matcher.note(tokens);
    }
    at.matched(matcher.matches());
  };

  const answer = async (body: Uint8Array): Promise<Uint8Array> => {
    if (body.length < NONCE_BYTES) throw new HandshakeError("bad-format");
    const nonce = bytesToHex(body.subarray(0, NONCE_BYTES));
    const { tokens, goesOn } = readTokens(body.subarray(NONCE_BYTES));
    const context = { binding: concatBytes(at.binding, body.subarray(0, NONCE_BYTES)) };
    const known = asked?.nonce === nonce ? asked : undefined;
    await at.afford(tokens.length / TOKEN_BYTES + (known ? 0 : tokenCount(at.currentKeys())));
    const matcher = known?.matcher ?? (await createTokenMatcher(at.currentKeys(), remoteRole, context));
    const lists = (known?.lists ?? 0) + 1;
    if (lists > TOKEN_LISTS_MAX) throw new HandshakeError("bad-format");
    const list = markedList(matcher.answer(tokens), goesOn);
    asked = goesOn ? { nonce, matcher, lists } : undefined;
    // Runs after the answer was sent, so that a link which it ends still tells the peer why.
    if (!goesOn) setTimeout(() => at.matched(matcher.matches()), 0);
    return list;
  };

  return {
    /** Asks the peer, after what is being compared already. Rejects when it does not answer, or breaks the format. */
    ask(request: (body: Uint8Array) => Promise<Uint8Array>): Promise<void> {
      if (next) return next;
      const asking = last.then(() => {
        next = undefined;
        return ask(request);
      });
      next = asking;
      last = asking.catch(() => {}); // told to whoever asked
      return asking;
    },

    /** Answers the peer's question. Throws a HandshakeError for what is none. */
    answer(body: Uint8Array): Promise<Uint8Array> {
      const answering = answered.then(() => answer(body));
      answered = answering.catch(() => {}); // told to whoever asked
      return answering;
    },
  };
}
