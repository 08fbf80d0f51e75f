import { freeBytes } from "../base/bytes.ts";
import { LIMITS } from "../protocol/limits.ts";

/**
 * Reads what nobody has read of a request's body, and keeps none of it. Many clients read no answer before they have sent
 * everything, and a connection that closes while they send is all they would learn of a refusal. Resolves to whether the
 * body was read to its end: one that is longer than `LIMITS.unreadBodyBytes`, pauses for `unreadPauseMs` or takes
 * `unreadTotalMs` is left alone, and so is every body once `stopping` is aborted. Never rejects.
 */
export async function readUnread(request: Request, stopping: AbortSignal): Promise<boolean> {
  const { body } = request;
  if (body === null || body.locked) return true;
  if (stopping.aborted || Number(request.headers.get("content-length") ?? 0) > LIMITS.unreadBodyBytes) return false;
  const { promise: givenUp, resolve } = Promise.withResolvers<"given up">();
  const giveUp = (): void => resolve("given up");
  const pause = setTimeout(giveUp, LIMITS.unreadPauseMs);
  const total = setTimeout(giveUp, LIMITS.unreadTotalMs);
  stopping.addEventListener("abort", giveUp);
  const reader = body.getReader();
  try {
    for (let bytes = 0; bytes <= LIMITS.unreadBodyBytes; ) {
      const part = await Promise.race([reader.read(), givenUp]);
      if (part === "given up") return false;
      if (part.done) return true;
      pause.refresh();
      bytes += part.value.length;
      freeBytes(part.value);
    }
    return false;
  } catch {
    return false; // the client has gone
  } finally {
    clearTimeout(pause);
    clearTimeout(total);
    stopping.removeEventListener("abort", giveUp);
  }
}
