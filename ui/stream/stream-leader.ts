/**
 * Where there are no shared workers, the tab that holds the leader's lock keeps the connection for all. It yields the
 * lock when it is hidden and another tab wants to lead, and when it is frozen.
 */
import { browserHub } from "./browser-hub.ts";
import type { StreamHub } from "./stream-hub.ts";
import type { HubLink, HubMessage, TabMessage } from "./stream-messages.ts";

type ChannelMessage =
  | { to: "hub"; message: TabMessage }
  | { to: "tab"; tab: string; message: HubMessage }
  /** From a tab that has just become the leader. */
  | { to: "all"; message: HubMessage }
  /** From a visible tab: a hidden leader yields to it. */
  | { to: "leader" };

export function leadOrFollow(tab: string, build: string, receive: (message: HubMessage) => void): HubLink {
  const lock = `svc leader ${build}`;
  const channel = new BroadcastChannel(`svc streams ${build}`);
  const say = (message: ChannelMessage) => channel.postMessage(message);
  let hub: StreamHub | undefined;
  let endLead: (() => void) | undefined;
  let queued: AbortController | undefined;
  /** Whether the tab follows something; a hidden tab follows only streams without a snapshot. */
  let follows = false;

  const isShown = () => document.visibilityState === "visible";

  function queue(): void {
    if (queued || hub) return;
    const own = new AbortController();
    queued = own;
    navigator.locks.request(lock, { signal: own.signal }, lead).catch((error: unknown) => {
      if (!own.signal.aborted) throw error;
    });
  }

  function lead(): Promise<void> {
    queued = undefined;
    hub = browserHub();
    say({ to: "all", message: { kind: "hello" } });
    receive({ kind: "hello" });
    return new Promise((resolve) => {
      endLead = resolve;
    });
  }

  function yieldLead(): void {
    if (!hub) return;
    hub.close();
    hub = undefined;
    endLead?.();
    receive({ kind: "down" });
    if (follows) queue();
  }

  async function onHidden(): Promise<void> {
    if (!follows) queued?.abort();
    if (!follows) queued = undefined;
    if (!hub) return;
    const { pending = [] } = await navigator.locks.query();
    if (!isShown() && pending.some(({ name }) => name === lock)) yieldLead();
  }

  function onShown(): void {
    queue();
    say({ to: "leader" });
  }

  channel.onmessage = ({ data }: MessageEvent<ChannelMessage>) => {
    if (data.to === "hub") {
      const { message } = data;
      hub?.receive(message, (answer) => say({ to: "tab", tab: message.tab, message: answer }));
    } else if (data.to === "all" || (data.to === "tab" && data.tab === tab)) {
      receive(data.message);
    } else if (data.to === "leader" && !isShown()) {
      yieldLead();
    }
  };
  document.addEventListener("visibilitychange", () => {
    if (isShown()) onShown();
    else void onHidden();
  });
  document.addEventListener("freeze", yieldLead);
  if (isShown()) onShown();

  return {
    send(message) {
      if (message.kind === "announce") follows = message.wanted.length > 0;
      if (follows) queue();
      if (hub) hub.receive(message, receive);
      else say({ to: "hub", message });
    },
  };
}
