import { readUint32, writeUint32 } from "../../base/bytes.ts";

/**
 * Frames of the LAN link inside TLS: length of what follows (4 bytes, big-endian), type (1), id (4), payload. A message
 * larger than a fragment is several frames of one type and id, all but the last marked as having more to come.
 */
export const FRAME = {
  handshake: 0,
  request: 1,
  response: 2,
  failure: 3,
  notice: 4,
  ping: 5,
  pong: 6,
} as const;
const MORE = 0x80;

/** Small enough that a small request waits for little. */
export const FRAGMENT_BYTES = 32 << 10;
/** A handshake's list of tokens is one frame. */
export const HANDSHAKE_BYTES_MAX = 72 << 10;
const HEADER_BYTES = 9;

export interface Frame {
  readonly type: number;
  readonly more: boolean;
  readonly id: number;
  readonly payload: Uint8Array;
}

export function encodeFrame(type: number, id: number, payload: Uint8Array, more = false): Uint8Array {
  const frame = new Uint8Array(HEADER_BYTES + payload.length);
  writeUint32(frame, 0, 5 + payload.length);
  frame[4] = more ? type | MORE : type;
  writeUint32(frame, 5, id);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/**
 * Cuts a byte stream into frames. Holds at most one frame: a length over the limit is refused before its bytes are waited
 * for.
 */
export interface FrameReader {
  /** The frames that these bytes complete. Undefined when the peer breaks the format: close, and do not go on. */
  push(bytes: Uint8Array): Frame[] | undefined;
  /** From the next frame on; a handshake may send more at once than what follows it. */
  setLimit(payloadBytes: number): void;
}

export function createFrameReader(payloadLimit: number): FrameReader {
  let limit = payloadLimit;
  /** The frame that is not complete yet. It is held in one piece, however small the pieces are in which it comes. */
  let begun = new Uint8Array(HEADER_BYTES);
  let begunBytes = 0;
  let broken = false;

  /** Bytes of the frame that begins here, as far as they are known; undefined when it may not be so long. */
  const sizeOf = (bytes: Uint8Array): number | undefined => {
    if (bytes.length < HEADER_BYTES) return HEADER_BYTES;
    const length = readUint32(bytes, 0);
    return length < 5 || length > 5 + limit ? undefined : 4 + length;
  };
  /** Adds to the frame that was begun. Answers how many bytes it took; undefined when it may not be so long. */
  const goOn = (bytes: Uint8Array): number | undefined => {
    const size = sizeOf(begun.subarray(0, begunBytes));
    if (size === undefined) return undefined;
    if (begun.length < size) {
      const roomy = new Uint8Array(size);
      roomy.set(begun.subarray(0, begunBytes));
      begun = roomy;
    }
    const part = bytes.subarray(0, size - begunBytes);
    begun.set(part, begunBytes);
    begunBytes += part.length;
    return part.length;
  };
  const take = (): Uint8Array => {
    const whole = begun;
    begun = new Uint8Array(HEADER_BYTES);
    begunBytes = 0;
    return whole;
  };
  /** The frames that `bytes` complete; undefined when the format is broken. */
  const framesOf = (bytes: Uint8Array): Frame[] | undefined => {
    const frames: Frame[] = [];
    let rest = bytes;
    while (rest.length > 0) {
      const size = begunBytes === 0 ? sizeOf(rest) : undefined;
      if (size !== undefined && rest.length >= size) {
        frames.push(frameIn(rest.subarray(0, size)));
        rest = rest.subarray(size);
        continue;
      }
      const taken = goOn(rest);
      if (taken === undefined) return undefined;
      rest = rest.subarray(taken);
      const wanted = sizeOf(begun.subarray(0, begunBytes));
      if (wanted === undefined) return undefined;
      if (begunBytes >= HEADER_BYTES && begunBytes === wanted) frames.push(frameIn(take()));
    }
    return frames;
  };
  return {
    setLimit: (payloadBytes) => {
      limit = payloadBytes;
    },
    push: (bytes) => {
      const frames = broken ? undefined : framesOf(bytes);
      broken = frames === undefined;
      return frames;
    },
  };
}

function frameIn(bytes: Uint8Array): Frame {
  const typeByte = bytes[4]!;
  return {
    type: typeByte & ~MORE,
    more: (typeByte & MORE) !== 0,
    id: readUint32(bytes, 5),
    payload: bytes.subarray(HEADER_BYTES),
  };
}
