/** The tab's end of the browser's one connection: the streams that its components want, and the frames they get. */
import { ApiError } from "../api/api-client.ts";
import type { Frame } from "./frame-parser.ts";
import { linkToHub } from "./hub-link.ts";
import type { Asked, HubLink, HubMessage } from "./stream-messages.ts";
import { TAB } from "./tab-id.ts";

export interface StreamListener {
  frame(frame: Frame): void;
  /** The stream is not open and is being opened. */
  down(): void;
  /** The server refuses the stream. */
  refused(error: ApiError): void;
}

interface Followed {
  id: string;
  readonly asked: Asked;
  readonly listener: StreamListener;
}

const followedById = new Map<string, Followed>();
let link: HubLink | undefined;
let ids = 0;
let announcing = false;

/** Follows a stream until the returned function is called. */
export function follow(asked: Asked, listener: StreamListener): () => void {
  const followed: Followed = { id: String(++ids), asked, listener };
  followedById.set(followed.id, followed);
  announceSoon();
  return () => {
    followedById.delete(followed.id);
    announceSoon();
  };
}

/** Called when the page starts. */
export async function startStreams(): Promise<void> {
  addEventListener("pageshow", (event) => {
    if ((event as PageTransitionEvent).persisted) renew();
    wake();
  });
  addEventListener("pagehide", () => link?.send({ kind: "bye", tab: TAB }));
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") wake();
  });
  link = await linkToHub(TAB, receive);
  announce();
}

function wake(): void {
  link?.send({ kind: "wake", tab: TAB });
}

/** Announces all changes of one turn in one message. */
function announceSoon(): void {
  if (announcing) return;
  announcing = true;
  queueMicrotask(() => {
    announcing = false;
    announce();
  });
}

function announce(): void {
  const wanted = [...followedById.values()].map(({ id, asked }) => ({ id, asked }));
  link?.send({ kind: "announce", tab: TAB, wanted });
}

/** A page that the browser put aside has signed off, so its streams start again under new ids. */
function renew(): void {
  const all = [...followedById.values()];
  followedById.clear();
  for (const followed of all) {
    followed.id = String(++ids);
    followedById.set(followed.id, followed);
    followed.listener.down();
  }
  announceSoon();
}

function receive(message: HubMessage): void {
  if (message.kind === "hello") {
    announce();
  } else if (message.kind === "down" && message.id === undefined) {
    for (const { listener } of followedById.values()) listener.down();
  } else if (message.id !== undefined) {
    const listener = followedById.get(message.id)?.listener;
    if (message.kind === "down") listener?.down();
    else if (message.kind === "refused")
      listener?.refused(new ApiError(message.code, message.message, 0, message.details));
    else if (message.kind === "frame") listener?.frame(message);
  }
}
