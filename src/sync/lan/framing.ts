import { concatBytes, readUint32, writeUint32 } from "../../base/bytes.ts";

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

/** Small enough that a small call waits for little. */
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

/** Cuts a byte stream into frames. Holds at most one frame: a length over the limit is refused before it is waited for. */
export interface FrameReader {
  /** The frames that these bytes complete. Undefined when the peer breaks the format: close, and do not go on. */
  push(bytes: Uint8Array): Frame[] | undefined;
  /** From the next frame on; a handshake may send more at once than what follows it. */
  setLimit(payloadBytes: number): void;
}

export function createFrameReader(payloadLimit: number): FrameReader {
  let limit = payloadLimit;
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  /** Held bytes below which there is nothing to look at. */
  let needed = HEADER_BYTES;
  let broken = false;

  const take = (): Uint8Array => {
    const all = held.length === 1 ? held[0]! : concatBytes(...held);
    held = [];
    heldBytes = 0;
    return all;
  };
  return {
    setLimit: (payloadBytes) => {
      limit = payloadBytes;
    },
    push: (bytes) => {
      if (broken) return undefined;
      held.push(bytes);
      heldBytes += bytes.length;
      if (heldBytes < needed) return [];
      const frames: Frame[] = [];
      let rest = take();
      needed = HEADER_BYTES;
      while (rest.length >= HEADER_BYTES) {
        const length = readUint32(rest, 0);
        if (length < 5 || length > 5 + limit) {
          broken = true;
          return undefined;
        }
        if (rest.length < 4 + length) {
          needed = 4 + length;
          break;
        }
        const typeByte = rest[4]!;
        frames.push({
          type: typeByte & ~MORE,
          more: (typeByte & MORE) !== 0,
          id: readUint32(rest, 5),
          payload: rest.subarray(HEADER_BYTES, 4 + length),
        });
        rest = rest.subarray(4 + length);
      }
      if (rest.length > 0) {
        held.push(rest);
        heldBytes = rest.length;
      }
      return frames;
    },
  };
}
