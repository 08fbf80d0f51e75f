import type { Socket } from "node:net";
import { bytesToUtf8, concatBytes, utf8ToBytes } from "../../base/bytes.ts";
import { refusedAs, type SvcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { createFrameAssembly } from "./frame-assembly.ts";
import { encodeFrame, FRAGMENT_BYTES, FRAME, type Frame, type FrameReader } from "./framing.ts";
import { createNoticeQueue } from "./notice-queue.ts";

/** How much memory and time an authenticated peer may cost us. Bytes unless the name says otherwise. */
export const CHANNEL_LIMITS = {
  fragmentBytes: FRAGMENT_BYTES,
  messageBytes: 2 << 20,
  /** Messages being received in fragments, together. */
  partialBytes: 8 << 20,
  partialMessages: 64,
  /** Requests being handled. One more is answered `busy`, or not at all if the peer does not read answers. */
  handlers: 32,
  /** Notices that wait for the one being handled. One more is dropped. */
  queuedNotices: 256,
  queuedNoticeBytes: 4 << 20,
  /** Requests of ours that wait for an answer. */
  pendingRequests: 256,
  /** Large messages that wait to be sent; the caller of one more waits with it. */
  queueBytes: 4 << 20,
  queuedSmall: 512,
  kindChars: 32,
  requestTimeoutMs: 30_000,
} as const;

/** After how much silence the peer is asked whether it is there, and after how much it is given up. */
export interface SilenceLimits {
  readonly pingAfterMs: number;
  readonly deadAfterMs: number;
}

export const SILENCE_LIMITS: SilenceLimits = { pingAfterMs: 15_000, deadAfterMs: 40_000 };

/** Why a peer did not answer a request: a closed list, because a peer's own words are not passed on. */
const FAILURE_REASONS = ["unknown-kind", "busy", "failed", "too-large"] as const;
type FailureReason = (typeof FAILURE_REASONS)[number];

export interface MessageHandlers {
  /** The answer, or undefined if the kind is not known. A rejection is sent to the peer as `failed`. */
  request(kind: string, body: Uint8Array): Promise<Uint8Array> | undefined;
  /** Called with one notice at a time, in their order; not with the next before the promise settles. */
  notice(kind: string, body: Uint8Array): Promise<void> | undefined;
  closed(reason: string): void;
}

/** Requests, answers and notices over one socket, interleaved so that small ones do not wait for large ones. */
export interface MessageChannel {
  /** Throws `network.unavailable`: the peer is gone, refused, too slow, or the message is too large. */
  request(kind: string, body: Uint8Array, options?: { readonly timeoutMs?: number }): Promise<Uint8Array>;
  /** Resolves when it was handed to the network. It says nothing of whether the peer took it. */
  notify(kind: string, body: Uint8Array): Promise<void>;
  close(reason: string): void;
  /** Notices dropped because too many were being handled. */
  dropped(): number;
}

interface Outgoing {
  readonly type: number;
  readonly id: number;
  readonly bytes: Uint8Array;
  offset: number;
  sent(): void;
  lost(error: SvcError): void;
}

interface PendingRequest {
  readonly timer: ReturnType<typeof setTimeout>;
  resolve(body: Uint8Array): void;
  reject(error: SvcError): void;
}

/** How many small messages may pass a waiting fragment of a large one. */
const SMALL_IN_A_ROW = 8;

/** Takes over a socket. `early` are frames that arrived together with what came before the channel. */
export function createMessageChannel(
  socket: Socket,
  reader: FrameReader,
  early: readonly Frame[],
  handlers: MessageHandlers,
  { pingAfterMs, deadAfterMs }: SilenceLimits = SILENCE_LIMITS,
): MessageChannel {
  const small: Outgoing[] = [];
  const bulk: Outgoing[] = [];
  const pending = new Map<number, PendingRequest>();
  const assembly = createFrameAssembly(CHANNEL_LIMITS);
  const waitingForRoom: (() => void)[] = [];
  let queuedBytes = 0;
  let handling = 0;
  let nextId = 1;
  let smallInARow = 0;
  let blocked = false;
  let closed: string | undefined;
  const notices = createNoticeQueue(CHANNEL_LIMITS, handlers.notice, () => closed !== undefined);
  let heardAtMs = performance.now();
  let wroteAtMs = performance.now();

  const gone = () => refusedAs("network.unavailable", undefined, refusal("peer.gone", { why: closed ?? "" }));

  const close = (reason: string) => {
    if (closed !== undefined) return;
    closed = reason;
    clearInterval(keepalive);
    socket.destroy();
    const error = gone();
    for (const request of pending.values()) {
      clearTimeout(request.timer);
      request.reject(error);
    }
    pending.clear();
    assembly.clear();
    for (const message of [...small.splice(0), ...bulk.splice(0)]) message.lost(error);
    for (const waiter of waitingForRoom.splice(0)) waiter();
    handlers.closed(reason);
  };

  const nextOutgoing = (): Outgoing | undefined => {
    const takeSmall = small.length > 0 && (bulk.length === 0 || smallInARow < SMALL_IN_A_ROW);
    smallInARow = takeSmall ? smallInARow + 1 : 0;
    return takeSmall ? small.shift() : bulk.shift();
  };
  const pump = () => {
    while (!blocked && closed === undefined) {
      const message = nextOutgoing();
      if (!message) return;
      const end = Math.min(message.bytes.length, message.offset + FRAGMENT_BYTES);
      const more = end < message.bytes.length;
      const part = message.bytes.subarray(message.offset, end);
      queuedBytes -= part.length;
      message.offset = end;
      if (more) bulk.push(message);
      wroteAtMs = performance.now();
      blocked = !socket.write(encodeFrame(message.type, message.id, part, more));
      if (!more) message.sent();
    }
  };
  const releaseRoom = () => {
    for (const waiter of waitingForRoom.splice(0)) waiter();
  };
  /** Small messages do not wait for room among large ones; being spared that wait is what they are for. */
  const hasRoom = (isSmall: boolean) =>
    isSmall ? small.length < CHANNEL_LIMITS.queuedSmall : queuedBytes < CHANNEL_LIMITS.queueBytes;
  /** Resolves when the last fragment was given to the socket. Waits while the queue is full. */
  const send = async (type: number, id: number, bytes: Uint8Array): Promise<void> => {
    const isSmall = bytes.length <= FRAGMENT_BYTES;
    while (closed === undefined && !hasRoom(isSmall)) {
      await new Promise<void>((room) => waitingForRoom.push(room));
    }
    if (closed !== undefined) throw gone();
    await new Promise<void>((sent, lost) => {
      queuedBytes += bytes.length;
      const message = { type, id, bytes, offset: 0, sent, lost };
      if (isSmall) small.push(message);
      else bulk.push(message);
      pump();
    });
    releaseRoom();
  };
  /** Sends nothing while the socket is full: what waits in it shows just as well that we are here, once it is read. */
  const sendControl = (type: number) => {
    if (closed !== undefined || blocked) return;
    wroteAtMs = performance.now();
    blocked = !socket.write(encodeFrame(type, 0, new Uint8Array(0)));
  };

  const withKind = (kind: string, body: Uint8Array): Uint8Array => {
    const name = utf8ToBytes(kind);
    if (name.length === 0 || name.length > CHANNEL_LIMITS.kindChars) throw new RangeError(`the kind ${kind}`);
    if (body.length > CHANNEL_LIMITS.messageBytes) {
      throw refusedAs("network.unavailable", undefined, refusal("peer.message_too_large", { bytes: body.length }));
    }
    return concatBytes(Uint8Array.of(name.length), name, body);
  };

  const answer = async (id: number, kind: string, body: Uint8Array): Promise<void> => {
    const answering = handlers.request(kind, body);
    let failure: FailureReason | undefined;
    let result: Uint8Array | undefined;
    try {
      if (answering === undefined) failure = "unknown-kind";
      else result = await answering;
      if (result && result.length > CHANNEL_LIMITS.messageBytes) failure = "too-large";
    } catch {
      failure = "failed"; // the handler's owner logs why; the peer is not told
    }
    if (failure !== undefined) await send(FRAME.failure, id, utf8ToBytes(failure));
    else await send(FRAME.response, id, result ?? new Uint8Array(0));
  };
  const handle = (type: number, id: number, message: Uint8Array) => {
    const kindLength = message[0] ?? 0;
    const kind = bytesToUtf8(message.subarray(1, 1 + kindLength));
    if (
      kindLength === 0 ||
      kindLength > CHANNEL_LIMITS.kindChars ||
      message.length < 1 + kindLength ||
      kind === undefined
    ) {
      return close("the peer sent a message without a kind");
    }
    const body = message.subarray(1 + kindLength);
    if (type === FRAME.notice) return notices.add(kind, body);
    if (handling >= CHANNEL_LIMITS.handlers) {
      if (!hasRoom(true)) return; // it asks without reading the answers, so nothing of the request is kept
      void send(FRAME.failure, id, utf8ToBytes("busy")).catch(() => {}); // closed meanwhile
      return;
    }
    handling++;
    void answer(id, kind, body)
      .catch(() => {}) // closed while answering
      .finally(() => {
        handling--;
      });
  };
  const resolveRequest = (frame: { readonly type: number; readonly id: number }, message: Uint8Array) => {
    const request = pending.get(frame.id);
    if (!request) return; // the answer came too late
    pending.delete(frame.id);
    clearTimeout(request.timer);
    if (frame.type === FRAME.response) return request.resolve(message);
    const given = bytesToUtf8(message);
    const reason = FAILURE_REASONS.find((known) => known === given) ?? "failed";
    request.reject(refusedAs("network.unavailable", undefined, refusal("peer.failed", { reason })));
  };

  /** The whole message if this was its last fragment; undefined if more is to come or the peer passed a limit. */
  const collect = (frame: Frame): Uint8Array | undefined => {
    const message = assembly.collect(frame);
    if (message !== "too-much") return message;
    close("the peer passed a limit");
    return undefined;
  };
  const onFrames = (frames: readonly Frame[] | undefined) => {
    for (const frame of frames ?? []) {
      if (closed !== undefined) return;
      onFrame(frame);
    }
    if (!frames) close("the peer broke the frame format");
  };
  const onFrame = (frame: Frame) => {
    switch (frame.type) {
      case FRAME.ping:
        return sendControl(FRAME.pong);
      case FRAME.pong:
        return;
      case FRAME.response:
      case FRAME.failure: {
        if (!pending.has(frame.id)) return; // nobody waits: not worth keeping
        const message = collect(frame);
        if (message) resolveRequest(frame, message);
        return;
      }
      case FRAME.request:
      case FRAME.notice: {
        const message = collect(frame);
        if (message) handle(frame.type, frame.id, message);
        return;
      }
      default:
        close("the peer sent a frame of an unknown type");
    }
  };

  socket.on("data", (bytes: Uint8Array) => {
    heardAtMs = performance.now();
    onFrames(reader.push(bytes));
  });
  socket.on("drain", () => {
    blocked = false;
    pump();
    releaseRoom();
  });
  socket.on("error", (error: Error) => close(`the connection failed (${error.message})`));
  socket.on("close", () => close("the connection was closed"));
  const keepalive = setInterval(() => {
    const now = performance.now();
    if (now - heardAtMs > deadAfterMs) return close("the peer fell silent");
    if (blocked && now - wroteAtMs > deadAfterMs) return close("the peer does not read");
    if (now - heardAtMs > pingAfterMs) sendControl(FRAME.ping);
  }, pingAfterMs / 2);
  // Only after the caller holds the channel, which its handlers may use.
  queueMicrotask(() => onFrames(early));

  return {
    request: async (kind, body, options) => {
      if (pending.size >= CHANNEL_LIMITS.pendingRequests)
        throw refusedAs("network.unavailable", undefined, refusal("peer.too_slow"));
      const message = withKind(kind, body);
      const id = nextId++ >>> 0;
      const timeoutMs = options?.timeoutMs ?? CHANNEL_LIMITS.requestTimeoutMs;
      const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
      const timer = setTimeout(() => {
        pending.delete(id);
        for (const type of [FRAME.response, FRAME.failure]) assembly.drop(type, id);
        reject(refusedAs("network.unavailable", undefined, refusal("peer.late")));
      }, timeoutMs);
      pending.set(id, { timer, resolve, reject });
      send(FRAME.request, id, message).catch((error: SvcError) => {
        clearTimeout(timer);
        pending.delete(id);
        reject(error);
      });
      return promise;
    },
    notify: (kind, body) => send(FRAME.notice, nextId++ >>> 0, withKind(kind, body)),
    close,
    dropped: notices.dropped,
  };
}
