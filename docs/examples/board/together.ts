import type { Schemas } from "./api.ts";
import { type Frame, follow } from "./live.ts";

type Message =
  | { readonly kind: "ask" }
  | { readonly kind: "frame"; readonly frame: Frame }
  | { readonly kind: "lost"; readonly reason: string };

export interface Follower {
  take(frame: Frame): void;
  lost(reason: string): void;
  /** What a tab that comes later has to be told. */
  soFar(): Frame[];
}

/**
 * Follows in all tabs over one connection, since a browser opens six to a server, for all its tabs. The visible tab that has the
 * lock holds it and tells the others; when it goes or is hidden, the next one takes over, with a snapshot.
 */
export function followTogether(
  server: string,
  subscriptions: readonly Schemas["SubscriptionRequest"][],
  { take, lost, soFar }: Follower,
): void {
  const name = `board ${server}`;
  const channel = new BroadcastChannel(name);
  let holds = false;
  let visible: AbortController | undefined;
  const post = (message: Message) => channel.postMessage(message);
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === "frame") take(data.frame);
    else if (data.kind === "lost") lost(data.reason);
    else if (holds) for (const frame of soFar()) post({ kind: "frame", frame });
  };

  async function hold(signal: AbortSignal): Promise<void> {
    holds = true;
    const taken = (frame: Frame) => {
      take(frame);
      post({ kind: "frame", frame });
    };
    const broken = (reason: string) => {
      lost(reason);
      post({ kind: "lost", reason });
    };
    await follow(server, subscriptions, taken, broken, signal);
    holds = false;
  }

  const look = () => {
    if (document.hidden) visible?.abort();
    else if (!visible || visible.signal.aborted) {
      visible = new AbortController();
      const { signal } = visible;
      post({ kind: "ask" });
      navigator.locks
        .request(name, { signal }, () => hold(signal))
        .catch((error: unknown) => {
          if (!signal.aborted) lost(String(error));
        });
    }
  };
  document.addEventListener("visibilitychange", look);
  look();
}
