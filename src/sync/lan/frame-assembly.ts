import { concatBytes } from "../../base/bytes.ts";
import type { Frame } from "./framing.ts";

interface Partial {
  readonly parts: Uint8Array[];
  bytes: number;
}

/** How much messages that are not complete yet may cost us. */
interface AssemblyLimits {
  /** Every fragment but the last has this size: small ones would cost far more to hold than to send. */
  readonly fragmentBytes: number;
  readonly messageBytes: number;
  readonly kindChars: number;
  readonly partialBytes: number;
  readonly partialMessages: number;
}

/** Puts together the fragments of messages. Fragments of several messages may be interleaved. */
export function createFrameAssembly(limits: AssemblyLimits) {
  const partials = new Map<string, Partial>();
  let partialBytes = 0;

  return {
    /** The whole message when this was its last fragment; undefined when more is to come; `too-much` beyond a limit. */
    collect(frame: Frame): Uint8Array | "too-much" | undefined {
      const name = `${frame.type}/${frame.id}`;
      const partial = partials.get(name);
      if (!partial && !frame.more) return frame.payload;
      const entry = partial ?? { parts: [], bytes: 0 };
      entry.parts.push(frame.payload.slice());
      entry.bytes += frame.payload.length;
      partialBytes += frame.payload.length;
      if (!partial) partials.set(name, entry);
      const tooMuch =
        entry.bytes > limits.messageBytes + 1 + limits.kindChars ||
        partialBytes > limits.partialBytes ||
        partials.size > limits.partialMessages ||
        (frame.more && frame.payload.length < limits.fragmentBytes);
      if (tooMuch) return "too-much";
      if (frame.more) return undefined;
      partials.delete(name);
      partialBytes -= entry.bytes;
      return concatBytes(...entry.parts);
    },
    /** Nobody waits for the message any more. */
    drop(type: number, id: number): void {
      const partial = partials.get(`${type}/${id}`);
      if (!partial) return;
      partials.delete(`${type}/${id}`);
      partialBytes -= partial.bytes;
    },
    clear: (): void => partials.clear(),
  };
}
