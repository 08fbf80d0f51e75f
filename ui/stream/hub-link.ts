/** Connects a tab to the hub that keeps the browser's connection: a shared worker, or the leading tab. */
import { browserHub } from "./browser-hub.ts";
import { holdUntilGone, tabLock, untilGone } from "./hub-locks.ts";
import { leadOrFollow } from "./stream-leader.ts";
import type { HubLink, HubMessage, TabMessage } from "./stream-messages.ts";

/** The worker's file, whose name contains the build's hash. The bundler inserts it. */
declare const STREAM_WORKER_URL: string;

export async function linkToHub(tab: string, receive: (message: HubMessage) => void): Promise<HubLink> {
  // A browser without locks cannot tell which tabs are alive, so each tab has its own connection.
  if (!("locks" in navigator)) {
    const hub = browserHub();
    return { send: (message) => hub.receive(message, receive) };
  }
  await holdUntilGone(tabLock(tab));
  if (typeof SharedWorker === "undefined") return leadOrFollow(tab, STREAM_WORKER_URL, receive);
  return linkToWorker(tab, receive);
}

function linkToWorker(tab: string, receive: (message: HubMessage) => void): HubLink {
  let send: (message: TabMessage) => void = () => {};
  function open(): void {
    const worker = new SharedWorker(STREAM_WORKER_URL, { type: "module", name: "svc streams" });
    send = (message) => worker.port.postMessage(message);
    worker.port.onmessage = ({ data }: MessageEvent<HubMessage>) => {
      // The tab requests the worker's lock; getting it means that the worker is gone.
      if (data.kind === "hello" && data.lock !== undefined) {
        void untilGone(data.lock).then(reopen);
      }
      receive(data);
    };
    // The worker could not be loaded: the server has another build by now, or the browser does not allow it.
    worker.onerror = () => {
      const link = leadOrFollow(tab, STREAM_WORKER_URL, receive);
      send = (message) => link.send(message);
      receive({ kind: "hello" });
    };
  }
  function reopen(): void {
    receive({ kind: "down" });
    open();
  }
  open();
  return { send: (message) => send(message) };
}
