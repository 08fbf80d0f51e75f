/**
 * The shared worker that keeps the browser's one connection. Its file name contains its hash, so another build is another
 * worker.
 */
import { browserHub } from "./browser-hub.ts";
import { holdUntilGone, workerLock } from "./hub-locks.ts";
import type { HubMessage, TabMessage } from "./stream-messages.ts";

const hub = browserHub();
const lock = workerLock(crypto.randomUUID());
const held = holdUntilGone(lock);

addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (!port) return;
  const post = (message: HubMessage) => port.postMessage(message);
  port.onmessage = ({ data }: MessageEvent<TabMessage>) => hub.receive(data, post);
  void held.then(() => post({ kind: "hello", lock }));
});
