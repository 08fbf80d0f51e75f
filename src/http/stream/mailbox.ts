import { LIMITS } from "../../protocol/limits.ts";

/**
 * Marks in the queue where frames were dropped; the notice is rendered when it is taken, with the count at that moment.
 */
const LAG = Symbol("lag");

export interface MailboxOptions {
  /** Frames held for a slow reader. */
  readonly capacity: number;
  /** Encodes the notice of dropped frames. Without it a full mailbox refuses frames instead of dropping them silently. */
  readonly lagged?: (total: number) => Uint8Array;
  /** Called whenever the number of waiting bytes changes. */
  readonly weighed?: (deltaBytes: number) => void;
}

/** The frames that wait for one reader, bounded in number and bytes. */
export interface Mailbox {
  readonly isEmpty: boolean;
  /** Number of frames that wait. */
  readonly frames: number;
  readonly bytes: number;
  /** Frames dropped so far (with `lagged`). */
  readonly dropped: number;
  /**
   * Queues a frame. Returns false when the mailbox is full: the frame was dropped and counted (with `lagged`), or
   * refused.
   */
  push(frame: Uint8Array): boolean;
  /** Queues a frame whatever the capacity, for the first and the last frame of a stream. */
  force(frame: Uint8Array): void;
  /** Takes the first frames, joined, up to about `maxBytes`; undefined when there are none. */
  take(maxBytes: number): Uint8Array | undefined;
  clear(): void;
}

export function createMailbox(options: MailboxOptions): Mailbox {
  const { capacity, lagged, weighed } = options;
  let queue: (Uint8Array | typeof LAG)[] = [];
  let head = 0;
  let frames = 0;
  let bytes = 0;
  let dropped = 0;
  let reported = 0;

  function add(frame: Uint8Array): void {
    queue.push(frame);
    frames++;
    bytes += frame.length;
    weighed?.(frame.length);
  }

  function next(): Uint8Array | undefined {
    while (head < queue.length) {
      const item = queue[head++] as Uint8Array | typeof LAG;
      if (head > 64 && head * 2 > queue.length) {
        queue = queue.slice(head);
        head = 0;
      }
      if (item !== LAG) {
        frames--;
        bytes -= item.length;
        weighed?.(-item.length);
        return item;
      }
      if (lagged && dropped > reported) {
        reported = dropped;
        return lagged(dropped);
      }
    }
    return undefined;
  }

  return {
    get isEmpty() {
      return head === queue.length;
    },
    get frames() {
      return frames;
    },
    get bytes() {
      return bytes;
    },
    get dropped() {
      return dropped;
    },
    push(frame) {
      if (frames < capacity && (frames === 0 || bytes + frame.length <= LIMITS.mailboxBytes)) {
        add(frame);
        return true;
      }
      if (lagged) {
        dropped++;
        if (queue[queue.length - 1] !== LAG) queue.push(LAG);
      }
      return false;
    },
    force: add,
    take(maxBytes) {
      const first = next();
      if (first === undefined || head === queue.length) return first;
      const parts = [first];
      let total = first.length;
      while (total < maxBytes) {
        const part = next();
        if (part === undefined) break;
        parts.push(part);
        total += part.length;
      }
      return parts.length === 1 ? first : Buffer.concat(parts, total);
    },
    clear() {
      queue = [];
      head = 0;
      frames = 0;
      const freed = bytes;
      bytes = 0;
      if (freed > 0) weighed?.(-freed);
    },
  };
}
