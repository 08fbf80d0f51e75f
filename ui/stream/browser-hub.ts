import { tabLock, untilGone } from "./hub-locks.ts";
import { createStreamHub, type StreamHub } from "./stream-hub.ts";

/** Makes a hub with the facilities of a browser window or worker. */
export function browserHub(): StreamHub {
  return createStreamHub({
    fetch: (path, init) => fetch(path, init),
    nowMs: () => Date.now(),
    random: () => Math.random(),
    after(ms, run) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    tabGone: (tab) => ("locks" in navigator ? untilGone(tabLock(tab)) : new Promise(() => {})),
  });
}
