/**
 * The process that turns texts into vectors: a fault in native code ends only this process, and its memory is freed when it ends.
 * It ends with the server that started it; on Linux at once, even while native code runs.
 */

import { FFIType } from "bun:ffi";
import { constants, setPriority } from "node:os";
import { openLibc } from "../../base/libc.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import { failureOf, sendToParent } from "../child-process.ts";
import type { Embedded, EmbedRequest, Loaded } from "./embed-protocol.ts";
import { prepareOrtBinding } from "./ort-binding.ts";
import { loadTextEmbedder, type TextEmbedder } from "./text-embedder.ts";

export function runEmbedChild(): Promise<number> {
  dieWithParent();
  setPriority(0, constants.priority.PRIORITY_LOW);
  const { promise, resolve } = Promise.withResolvers<number>();
  let embedder: TextEmbedder | undefined;
  const inTurn = createSemaphore(1);
  /** People wait for queries, so these are answered between the batches of other work. */
  const urgent: (EmbedRequest & { id: number })[] = [];
  const answerUrgent = async (): Promise<void> => {
    for (let next = urgent.shift(); next; next = urgent.shift()) await reply(next);
  };

  const answer = async (request: EmbedRequest): Promise<Loaded | Embedded> => {
    if (request.kind === "load") {
      prepareOrtBinding(request.nativeDir);
      embedder = await loadTextEmbedder(request);
      return { dimension: embedder.dimension, center: embedder.center };
    }
    if (!embedder) throw new Error("no model is loaded");
    const between = request.use === "passage" ? answerUrgent : undefined;
    const vectors = await embedder.embed(request.texts, request.use, between);
    return { vectors, rssBytes: process.memoryUsage.rss() };
  };

  const reply = async (request: EmbedRequest & { id: number }): Promise<void> => {
    try {
      sendToParent({ kind: "reply", id: request.id, result: await answer(request) });
    } catch (error) {
      sendToParent(failureOf(request.id, error));
    }
  };

  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => {});
  process.on("message", (request: EmbedRequest & { id: number }) => {
    const isUrgent = request.kind === "embed" && request.use === "query";
    if (isUrgent) urgent.push(request);
    void inTurn(() => (isUrgent ? answerUrgent() : reply(request)));
  });
  process.on("disconnect", () => resolve(0));
  return promise.then((code) => process.exit(code));
}

const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9n;

/** Without the GNU libc, this process ends a little later, when the channel closes. */
function dieWithParent(): void {
  const parent = process.ppid;
  const libc = openLibc({
    prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  });
  if (!libc) return;
  libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0n, 0n, 0n);
  // The parent may have ended before this process asked to be ended with it.
  if (process.ppid !== parent) process.exit(0);
}
