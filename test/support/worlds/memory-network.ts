/**
 * A network in memory, below the channels: streams of messages, compare-and-append, repetitions dropped by their ids, hints
 * to whoever listens. What is asked takes its time, may be cut off on either way, and can end whoever asks.
 */
import { JetStreamApiError } from "@nats-io/jetstream";
import { silentLog } from "../../../src/base/log.ts";
import { svcError } from "../../../src/protocol/errors.ts";
import { createChannel } from "../../../src/sync/network/channel.ts";
import type { StoredMessage } from "../../../src/sync/network/direct-read.ts";
import { isAnchor } from "../../../src/sync/network/log-cursor.ts";
import type { LinkState, LiveConnection, NatsLink } from "../../../src/sync/network/nats-link.ts";
import { JS_ERROR } from "../../../src/sync/network/network-error.ts";
import type { LogStore } from "../../../src/sync/network/network-store.ts";
import { hintSubject, logSubject } from "../../../src/sync/network/subjects.ts";
import type { Rng } from "../rng.ts";
import type { ReadMessage } from "../server/stream-reader.ts";
import type { VirtualTime } from "./virtual-time.ts";

interface NetworkStrike {
  /** At the so-many-th thing that the client asks from now on. */
  readonly at: number;
  /** Whether it is done all the same. Nobody is answered. */
  readonly isPassed: boolean;
  readonly strike: () => void;
}

/** A client of the network, until it is let go. */
export interface NetworkClient {
  readonly store: LogStore;
  /** Whether it is connected; what is under way is lost with the connection. */
  connect(on: boolean): void;
  isConnected(): boolean;
  arm(strike: NetworkStrike): void;
  /** Subjects that it named. */
  readonly asked: ReadonlySet<string>;
  /** How often it asked for anything, and how much it was given of what is stored. */
  questions(): number;
  bytesRead(): number;
}

export interface MemoryNetwork {
  delayMs: number;
  /** `reached` is called whenever it is reached, or not any more. */
  join(reached: () => void): NetworkClient;
  /** Everything that is stored, in order. */
  readonly messages: readonly ReadMessage[];
  /** Whoever is admitted can append whatever it likes. */
  append(subject: string, data: Uint8Array): void;
  /** The store loses what a stream held, or all of it. */
  lose(stream?: string): void;
}

interface PublishOptions {
  readonly msgID?: string;
  readonly expect?: { readonly lastSubjectSequence?: number };
}

interface PageLimits {
  readonly maxMessages: number;
  readonly maxBytes: number;
}
const ONE: PageLimits = { maxMessages: 1, maxBytes: 0 };

const streamOf = (subject: string): string => `SVC_LOG_${subject.split(".")[2]}`;

function createStreams() {
  let messages: ReadMessage[] = [];
  const lastByStream = new Map<string, number>();
  const seqById = new Map<string, number>();
  const listeners = new Set<{ subject: string; notify: (seq: number) => void }>();
  const of = (subject: string): ReadMessage[] => messages.filter((message) => message.subject === subject);
  return {
    get messages() {
      return messages;
    },
    listeners,
    append(subject: string, data: Uint8Array, { msgID, expect }: PublishOptions = {}): number {
      const known = msgID === undefined ? undefined : seqById.get(msgID);
      if (known !== undefined) return known;
      const wanted = expect?.lastSubjectSequence;
      const last = of(subject).at(-1)?.seq ?? 0;
      if (wanted !== undefined && wanted !== last)
        throw new JetStreamApiError({ code: 400, err_code: JS_ERROR.wrongLastSequence, description: `it is ${last}` });
      const stream = streamOf(subject);
      const seq = (lastByStream.get(stream) ?? 0) + 1;
      lastByStream.set(stream, seq);
      if (msgID !== undefined) seqById.set(msgID, seq);
      messages.push({ stream, subject, seq, data: data.slice() });
      for (const listener of listeners) if (listener.subject === hintSubject(subject)) listener.notify(seq);
      return seq;
    },
    page(subject: string, fromSeq: number, { maxMessages, maxBytes }: PageLimits) {
      const found = of(subject).filter(({ seq }) => seq >= fromSeq);
      const page: StoredMessage[] = [];
      let bytes = 0;
      for (const { seq, data } of found.slice(0, maxMessages)) {
        bytes += data.length;
        if (page.length > 0 && bytes > maxBytes) break;
        page.push({ seq, data: data.slice() });
      }
      return { messages: page, pending: found.length - page.length };
    },
    lose(stream?: string) {
      messages = messages.filter((message) => stream !== undefined && message.stream !== stream);
      for (const name of lastByStream.keys()) if (stream === undefined || name === stream) lastByStream.delete(name);
      seqById.clear();
    },
  };
}

const lost = () => svcError("network.unavailable", undefined, "The connection to the network was lost; retry");

export function createMemoryNetwork(time: VirtualTime, rng: Rng): MemoryNetwork {
  const streams = createStreams();
  const network: MemoryNetwork = {
    delayMs: 1,
    join: (reached) => joinNetwork({ network, streams, time, rng, reached }),
    get messages() {
      return streams.messages;
    },
    append: (subject, data) => void streams.append(subject, data),
    lose: streams.lose,
  };
  return network;
}

interface Joining {
  readonly network: MemoryNetwork;
  readonly streams: ReturnType<typeof createStreams>;
  readonly time: VirtualTime;
  readonly rng: Rng;
  readonly reached: () => void;
}

/** What passes between one client and the network. */
function createWire({ network, streams, time, rng }: Joining) {
  const asked = new Set<string>();
  let armed: (NetworkStrike & { seen: number }) | undefined;
  let isSilent = false;
  let questions = 0;
  let bytesRead = 0;
  const later = (work: () => void): void => void time.after(rng.int(1, network.delayMs), work);

  /** Carries a question there and its answer back. */
  const ask = <T>(signal: AbortSignal, subject: string, work: () => T): Promise<T> => {
    asked.add(subject);
    questions++;
    const isStruck = armed !== undefined && ++armed.seen === armed.at;
    const passes = !isSilent && (!isStruck || armed!.isPassed);
    return new Promise<T>((resolve, reject) => {
      const fail = () => reject(lost());
      if (signal.aborted) return fail();
      signal.addEventListener("abort", fail, { once: true });
      const answer = (give: () => void) =>
        later(() => {
          if (!isSilent && !signal.aborted) give();
        });
      const arrive = () => {
        if (signal.aborted && !isSilent) return;
        try {
          const done = work();
          answer(() => resolve(done));
        } catch (error) {
          answer(() => reject(error));
        }
      };
      if (passes) later(arrive);
      if (!isStruck) return;
      const { strike } = armed!;
      armed = undefined;
      isSilent = true;
      strike();
    });
  };

  return {
    asked,
    ask,
    questions: () => questions,
    bytesRead: () => bytesRead,
    arm(strike: NetworkStrike): void {
      armed = { ...strike, seen: 0 };
    },
    read: (signal: AbortSignal, subject: string, fromSeq: number, limits: PageLimits) =>
      ask(signal, subject, () => {
        const page = streams.page(subject, fromSeq, limits);
        for (const { data } of page.messages) bytesRead += data.length;
        return page;
      }),
    /** Tells of what is appended, until the signal aborts. */
    listen(signal: AbortSignal, subject: string, hear: (seq: number) => void): () => void {
      const notify = (seq: number) =>
        later(() => {
          if (!signal.aborted && !isSilent) hear(seq);
        });
      const listener = { subject, notify };
      const stop = () => void streams.listeners.delete(listener);
      streams.listeners.add(listener);
      signal.addEventListener("abort", stop, { once: true });
      return stop;
    },
  };
}

type Wire = ReturnType<typeof createWire>;
type HintCallback = (error: null, message: { headers: { get(): string } }) => void;

/** One connection. */
function createConnection(
  number: number,
  signal: AbortSignal,
  wire: Wire,
  streams: Joining["streams"],
): LiveConnection {
  const connection = {
    number,
    signal,
    streams: new Map(),
    nc: {
      info: {},
      subscribe(subject: string, { callback }: { callback: HintCallback }) {
        const hear = (seq: number) => callback(null, { headers: { get: () => String(seq) } });
        return { unsubscribe: wire.listen(signal, subject, hear) };
      },
    },
    js: {
      publish: (subject: string, data: Uint8Array, options: PublishOptions) =>
        wire.ask(signal, subject, () => ({ seq: streams.append(subject, data, options) })),
    },
    jsm: {
      streams: {
        getMessage: async (_stream: string, { seq, next_by_subj: subject }: { seq: number; next_by_subj: string }) =>
          (await wire.read(signal, subject, seq, ONE)).messages[0],
      },
    },
    reader: {
      page: (_stream: string, subject: string, fromSeq: number, limits: PageLimits) =>
        wire.read(signal, subject, fromSeq, limits),
      last: () => Promise.reject(lost()),
      close: () => {},
    },
  };
  return connection as unknown as LiveConnection;
}

/** The link of a client, whose connection comes and goes as it is told. */
function createLink(openConnection: (signal: AbortSignal) => LiveConnection, changed: () => void) {
  const listeners = new Set<(connection: LiveConnection) => void>();
  const closing = new AbortController();
  let current: { connection: LiveConnection; ended: AbortController } | undefined;
  const connect = (on: boolean): void => {
    if (on === (current !== undefined)) return;
    const ended = current?.ended ?? new AbortController();
    current = on ? { connection: openConnection(ended.signal), ended } : undefined;
    if (current) for (const listener of [...listeners]) listener(current.connection);
    else ended.abort(lost());
    changed();
  };
  const link: NatsLink = {
    connection: () => current?.connection,
    state: (): LinkState => ({ phase: current ? "online" : "offline", sinceMs: 0 }),
    onState: () => () => {},
    onConnected(listener) {
      listeners.add(listener);
      if (current) listener(current.connection);
      return () => void listeners.delete(listener);
    },
    online(signal) {
      if (current) return Promise.resolve(current.connection);
      return new Promise((resolve, reject) => {
        const stop = link.onConnected((connection) => {
          stop();
          resolve(connection);
        });
        for (const ending of [signal, closing.signal]) {
          if (ending?.aborted) reject(lost());
          ending?.addEventListener("abort", () => reject(lost()), { once: true });
        }
      });
    },
    renew: () => {},
    hurry: () => {},
    lastViolation: () => undefined,
    [Symbol.asyncDispose]: async () => {
      connect(false);
      closing.abort();
    },
  };
  return { link, connect };
}

function joinNetwork(joining: Joining): NetworkClient {
  const { streams, time, reached } = joining;
  const wire = createWire(joining);
  let connections = 0;
  const { link, connect } = createLink(
    (signal) => createConnection(++connections, signal, wire, streams),
    () => {
      time.stir();
      reached();
    },
  );
  const deps = {
    link,
    watch: { watch: () => () => {}, created: () => undefined, pollNow: async () => {}, [Symbol.dispose]: () => {} },
    log: silentLog,
    timers: time,
    nowMs: () => time.clock.nowMs(),
  };
  const store: LogStore = {
    state: link.state,
    openChannel: (options) => createChannel(deps, options),
    connection: () => link.connection()?.number,
    async holds(keys, kind, cursor) {
      const connection = link.connection();
      if (!connection) throw lost();
      const { messages } = await wire.read(connection.signal, logSubject(keys, kind), cursor.seq, ONE);
      return isAnchor(messages[0], cursor);
    },
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose]() as Promise<void>,
  };
  return {
    store,
    connect,
    isConnected: () => link.connection() !== undefined,
    arm: wire.arm,
    asked: wire.asked,
    questions: wire.questions,
    bytesRead: wire.bytesRead,
  };
}
