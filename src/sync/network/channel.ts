import type { Log } from "../../base/log.ts";
import type { Timers } from "../../base/timers.ts";
import type { SvcError } from "../../protocol/errors.ts";
import { type AclAppendResult, appendAclRecord, openAclRecord } from "./acl-append.ts";
import type { StoredMessage } from "./direct-read.ts";
import type { LogCursor } from "./log-cursor.ts";
import { createLogFollower, type LogFollower, type LogState } from "./log-follower.ts";
import { openLogMessage } from "./log-message.ts";
import { createLogPublisher, type PublisherSource, type PublisherState } from "./log-publisher.ts";
import type { NatsLink } from "./nats-link.ts";
import { networkFailure } from "./network-error.ts";
import type { StreamWatch } from "./stream-watch.ts";
import { type ChannelKeys, deriveChannelKeys, logSubject } from "./subjects.ts";

/** An item as it came from the log. */
interface StoredItem {
  readonly bytes: Uint8Array;
}

interface StoredAclRecord {
  readonly bytes: Uint8Array;
  /** Its position in the stream, which an append names as its predecessor. */
  readonly seq: number;
}

/**
 * What a space lends to its channel. Deliveries come one at a time for each log, in the log's order, own items included.
 * They are to be stored in one transaction with the cursor, and from then on count as confirmed by the network. After a
 * reset nothing is confirmed until it is delivered again under the cursor's new generation.
 */
export interface ChannelPort extends PublisherSource {
  /** Where the ACL log of this place ends, as a sequence of the stream. Nothing behind it counts, in either log. */
  lastSeq?(): number | undefined;
  /** `messages`: how many they came in. */
  deliverItems(items: readonly StoredItem[], cursor: LogCursor, messages: number): Promise<void>;
  resetItems(cursor: LogCursor): Promise<void>;
  deliverAcl(records: readonly StoredAclRecord[], cursor: LogCursor): Promise<void>;
  resetAcl(cursor: LogCursor): Promise<void>;
  /** `state()` may say something else now. */
  changed(): void;
}

interface ChannelState {
  readonly phase: "offline" | "syncing" | "live" | "failing";
  /** Both logs were read to the tail that their leader named, and on through everything that was announced since. */
  readonly atTail: boolean;
  /** When both were at their tail last, Unix milliseconds. */
  readonly checkedAtMs?: number;
  /** Messages known to be missing here. */
  readonly pending: number;
  readonly error?: SvcError;
  readonly items: LogState;
  readonly acl: LogState;
  readonly publisher: PublisherState;
  /** Messages skipped because they do not open: their authors do not hold the secret. */
  readonly junk: number;
  /** How often the store turned out to be another one, or an older one, than the one that was read. */
  readonly resets: number;
  /** When the store's stream was made. */
  readonly storeCreated?: string;
}

const BEHIND_PAGE = { maxMessages: 500, maxBytes: 2 << 20 };

/**
 * A space's place on the network: two logs, which are read to the end and followed, and to which this device appends what
 * it has to add.
 */
export interface Channel extends AsyncDisposable {
  readonly keys: ChannelKeys;
  state(): ChannelState;
  /** The port has something to publish. */
  wake(): void;
  /**
   * One round: resolves when both logs' leaders, asked after this call, had nothing that was not delivered. Rejects with
   * `network.unavailable`, `network.forbidden` or what the port threw.
   */
  round(): Promise<void>;
  /** Reads the ACL log alone, to its end. */
  readAcl(): Promise<void>;
  /** The sequence of the last record delivered. */
  aclSeq(): number;
  /**
   * Appends behind the record of this sequence, or behind the last one delivered if none is given. A conflict means that
   * others came first; their records have been delivered meanwhile. A record that was built on the log as it was is to be
   * appended behind the record that it was built on.
   */
  appendAcl(record: Uint8Array, behindSeq?: number): Promise<AclAppendResult>;
  /** Changes delivered that stand behind a sequence of the stream. */
  itemsBehind(seq: number): Promise<Uint8Array[]>;
}

export interface ChannelDeps {
  readonly link: NatsLink;
  readonly watch: StreamWatch;
  readonly log: Log;
  readonly timers: Timers;
  readonly nowMs: () => number;
}

export interface ChannelOptions {
  /** 32 bytes, of the place that is followed. */
  readonly transportSecret: Uint8Array;
  readonly itemsCursor?: LogCursor | undefined;
  readonly aclCursor?: LogCursor | undefined;
  readonly port: ChannelPort;
}

export function createChannel(deps: ChannelDeps, options: ChannelOptions): Channel {
  const { link, watch, timers, nowMs } = deps;
  const { port } = options;
  const keys = deriveChannelKeys(options.transportSecret);
  const log = deps.log.child({ channel: keys.tag });
  const closing = new AbortController();
  let junk = 0;
  let resets = 0;
  let started = false;
  const changed = () => {
    if (started && !closing.signal.aborted) port.changed();
  };

  const aclFollower = createLogFollower({
    link,
    address: { stream: keys.stream, subject: logSubject(keys, "a") },
    cursor: options.aclCursor,
    whole: true,
    lastSeq: () => port.lastSeq?.(),
    log,
    timers,
    nowMs,
    sink: {
      deliver: (messages, cursor) => port.deliverAcl(openRecords(messages), cursor),
      reset: (cursor) => {
        resets++;
        return port.resetAcl(cursor);
      },
      changed,
    },
  });
  const itemsSubject = logSubject(keys, "c");
  const itemsFollower = createLogFollower({
    link,
    address: { stream: keys.stream, subject: itemsSubject },
    cursor: options.itemsCursor,
    after: aclFollower,
    lastSeq: () => port.lastSeq?.(),
    log,
    timers,
    nowMs,
    sink: {
      deliver: (messages, cursor) => port.deliverItems(openItems(messages), cursor, messages.length),
      reset: async (cursor) => {
        resets++;
        await port.resetItems(cursor);
      },
      changed,
    },
  });
  const publisher = createLogPublisher({ link, keys, follower: itemsFollower, source: port, log, timers, changed });
  const stopWatching = [aclFollower, itemsFollower].map((follower) => watch.watch(keys.stream, watched(follower)));
  started = true;

  const openItems = (messages: readonly StoredMessage[]): StoredItem[] => {
    const items: StoredItem[] = [];
    for (const message of messages) {
      const opened = openLogMessage(keys.sealKey, itemsSubject, message.data);
      if (!opened) junk++;
      for (const bytes of opened ?? []) items.push({ bytes });
    }
    return items;
  };
  const openRecords = (messages: readonly StoredMessage[]): StoredAclRecord[] => {
    const records: StoredAclRecord[] = [];
    for (const message of messages) {
      const bytes = openAclRecord(keys, message.data);
      if (bytes) records.push({ bytes, seq: message.seq });
      else junk++;
    }
    return records;
  };

  return {
    keys,
    state: () => {
      const items = itemsFollower.state();
      const acl = aclFollower.state();
      const created = watch.created(keys.stream);
      const publishing = publisher.state();
      const error = acl.error ?? items.error ?? publishing.error;
      const checkedAtMs = earlier(acl.checkedAtMs, items.checkedAtMs);
      return {
        phase: phaseOf(items, acl, publishing),
        atTail: items.atTail && acl.atTail,
        pending: items.pending + acl.pending,
        items,
        acl,
        publisher: publishing,
        junk,
        resets,
        ...(checkedAtMs === undefined ? {} : { checkedAtMs }),
        ...(error ? { error } : {}),
        ...(created === undefined ? {} : { storeCreated: created }),
      };
    },
    wake: () => publisher.wake(),
    round: async () => {
      await aclFollower.checkTail();
      await itemsFollower.checkTail();
    },
    readAcl: () => aclFollower.checkTail(),
    aclSeq: () => aclFollower.cursor().seq,
    appendAcl: async (record, behindSeq) => {
      if (behindSeq === undefined && !aclFollower.state().atTail) await aclFollower.checkTail();
      const afterSeq = behindSeq ?? aclFollower.cursor().seq;
      const result = await appendAclRecord(deps, keys, record, afterSeq, closing.signal);
      if (result.outcome === "appended") await aclFollower.reached(result.seq);
      else await aclFollower.checkTail();
      return result;
    },
    itemsBehind: async (seq) => {
      const connection = link.connection();
      const upto = itemsFollower.cursor().seq;
      const behind: StoredItem[] = [];
      for (let at = seq; at < upto; ) {
        if (!connection) throw networkFailure(undefined);
        const page = await connection.reader.page(keys.stream, itemsSubject, at + 1, BEHIND_PAGE);
        const last = page.messages.at(-1);
        if (!last) break;
        behind.push(...openItems(page.messages.filter((message) => message.seq <= upto)));
        at = last.seq;
      }
      return behind.map(({ bytes }) => bytes);
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      for (const stop of stopWatching) stop();
      // All at once: if one of them waits for something that ended with the others, that is nothing to warn of.
      await Promise.all([publisher, itemsFollower, aclFollower].map((part) => part[Symbol.asyncDispose]()));
    },
  };
}

const watched = (follower: LogFollower) => ({
  checkedAtMs: () => follower.state().checkedAtMs,
  stale: () => follower.kick(),
  suspect: () => follower.reverify(),
});

function phaseOf(items: LogState, acl: LogState, publisher: PublisherState): ChannelState["phase"] {
  if (items.phase === "offline" || acl.phase === "offline") return "offline";
  if (items.phase === "failing" || acl.phase === "failing" || publisher.phase === "failing") return "failing";
  return items.atTail && acl.atTail && publisher.phase === "idle" ? "live" : "syncing";
}

const earlier = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : Math.min(a, b);
