import type { Log } from "../../base/log.ts";
import type { Timers } from "../../base/timers.ts";
import { refusedAs, SvcError, svcError } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { readFromLeader, type StoredMessage } from "./direct-read.ts";
import { isAnchor, type LogCursor, messageDigest, startCursor } from "./log-cursor.ts";
import type { LiveConnection, NatsLink } from "./nats-link.ts";
import { networkFailure } from "./network-error.ts";
import { pause } from "./pause.ts";
import { hintSubject } from "./subjects.ts";

/** Where a log lies: it is the messages of one subject of a stream. */
interface LogAddress {
  readonly stream: string;
  readonly subject: string;
}

interface LogSink {
  /**
   * Takes messages in the log's order, junk included, and the cursor behind them, all to be stored in one transaction. The
   * next page is read when the promise resolves; after a rejection the same messages are given again.
   */
  deliver(messages: readonly StoredMessage[], cursor: LogCursor): Promise<void>;
  /**
   * The log no longer holds the message at which the cursor stands: the store was wiped, was restored from an older copy,
   * or is another one. Reading begins again at the start, and nothing that was confirmed before is confirmed.
   */
  reset(cursor: LogCursor): Promise<void>;
  /** The state changed. */
  changed?(): void;
}

export interface LogState {
  /** `verifying` until the cursor was found to stand on the log; `following` afterwards. */
  readonly phase: "offline" | "verifying" | "following" | "failing";
  /** The stream's leader said so on this connection, and everything announced since was delivered. */
  readonly atTail: boolean;
  /** When it said so last, Unix milliseconds; kept while offline. */
  readonly checkedAtMs?: number;
  /** How many messages are known to be missing here. */
  readonly pending: number;
  readonly error?: SvcError;
}

export interface LogFollower extends AsyncDisposable {
  state(): LogState;
  cursor(): LogCursor;
  /** Something may have been appended; `seq` if it is known what. */
  kick(seq?: number): void;
  /** Compares the cursor with the log again: the stream may not be what it was. */
  reverify(): void;
  /**
   * Resolves when the leader, asked after this call, said that nothing is missing here, and everything was delivered.
   * Rejects with what prevented that: a lost connection, a refusal, or a sink that failed.
   */
  checkTail(): Promise<void>;
  /**
   * Resolves when a message of this sequence or a later one was delivered, or the leader said that there is none (the
   * cursor tells which). Rejects as `checkTail`.
   */
  reached(seq: number): Promise<void>;
  /** Delivers a message once more that was delivered before; resolves and rejects as `checkTail`. */
  readAgain(seq: number): Promise<void>;
  /** Calls back when the log is read from its start again, once the sink knows it. */
  onReset(listener: () => void): void;
}

export interface LogFollowerDeps {
  readonly link: NatsLink;
  readonly address: LogAddress;
  readonly cursor: LogCursor | undefined;
  readonly sink: LogSink;
  readonly log: Log;
  readonly timers: Timers;
  readonly nowMs: () => number;
  /** A log that has to be read to its tail before this one is begun: this log's messages are judged by what it says. */
  readonly after?: LogFollower;
  /**
   * Everything up to the tail is delivered at once, however many pages that takes, so that no state in between is ever
   * taken for the truth.
   */
  readonly whole?: boolean;
  /** The last sequence that counts: the log is read as if it ended there. Undefined while it has no end. */
  readonly lastSeq?: () => number | undefined;
}

const PAGE = { maxMessages: 500, maxBytes: 2 << 20 };
/**
 * How much of a log is gathered that is delivered whole; a longer log comes in parts of this size. Of junk behind the end
 * of a place no more than one part is read, and the pages that were on their way.
 */
const WHOLE_BYTES_MAX = 4 << 20;
const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 30_000;
/**
 * On a cluster it takes a moment until all servers know that hints are wanted; the follower asks again for what was
 * appended meanwhile.
 */
const SECOND_LOOK_MS = 2000;
/** How often a log is asked for where the server does not let clients listen to hints. */
const HINTLESS_POLL_MS = 5000;

interface Waiter {
  satisfied(): boolean;
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Follows a log without leaving anything on the server: pages are read by direct get, from the cursor on, whenever a hint,
 * a poll or a caller says that there may be more. Direct gets are answered by replicas that may lag, so the leader is asked
 * before anything is called complete.
 */
export function createLogFollower(deps: LogFollowerDeps): LogFollower {
  const { link, address, sink, nowMs } = deps;
  const { stream, subject } = address;
  const closing = new AbortController();
  let cursor = deps.cursor ?? startCursor();
  let state: LogState = { phase: "offline", atTail: false, pending: 0 };
  let verified = false;
  /** The leader confirmed the tail on this connection. */
  let confirmed = false;
  let announced = 0;
  /** Counts questions put to the leader; a waiter needs one that begins after its own call. */
  let checksBegun = 0;
  let checksDone = 0;
  let checkWanted = 1;
  /** Sequences of messages that are to be delivered once more. */
  const again: number[] = [];
  let wake: () => void = () => {};
  const waiters = new Set<Waiter>();
  const resetListeners: (() => void)[] = [];

  const setState = (next: Partial<Omit<LogState, "error">> & { error?: SvcError | undefined }) => {
    const { error, ...rest } = { ...state, ...next };
    state = error === undefined ? rest : { ...rest, error };
    sink.changed?.();
  };
  const resolveWaiters = () => {
    for (const waiter of waiters) {
      if (!waiter.satisfied()) continue;
      waiters.delete(waiter);
      waiter.resolve();
    }
  };
  const failWaiters = (error: Error) => {
    for (const waiter of waiters) waiter.reject(error);
    waiters.clear();
  };

  /** Read, and not delivered yet. */
  let gathered: StoredMessage[] = [];
  let gatheredBytes = 0;
  const readUpto = (): number => gathered.at(-1)?.seq ?? cursor.seq;

  const deliverGathered = async (pending: number) => {
    const last = gathered.at(-1);
    if (!last) return;
    const next: LogCursor = { ...cursor, seq: last.seq, digest: messageDigest(last.data) };
    await sink.deliver(gathered, next);
    gathered = [];
    gatheredBytes = 0;
    cursor = next;
    setState({ pending });
    resolveWaiters();
  };
  const lastSeq = (): number => deps.lastSeq?.() ?? Number.MAX_SAFE_INTEGER;
  /** The message behind those that were read, where it was met, which does not count. */
  let beyondSeq = 0;
  /** Nothing further on counts. */
  const hasEnded = (): boolean => Math.max(readUpto(), beyondSeq - 1) >= lastSeq();
  const gather = async (read: readonly StoredMessage[], pending: number) => {
    const messages = read.filter(({ seq }) => seq <= lastSeq());
    beyondSeq = read[messages.length]?.seq ?? beyondSeq;
    gathered.push(...messages);
    for (const { data } of messages) gatheredBytes += data.length;
    if (!deps.whole || gatheredBytes > WHOLE_BYTES_MAX) await deliverGathered(pending);
  };

  const restart = async () => {
    const next = startCursor();
    deps.log.warn("network: the store is not the one read before; reading this log again", { stream, seq: cursor.seq });
    await sink.reset(next);
    for (const listener of resetListeners) listener();
    cursor = next;
    announced = 0;
    beyondSeq = 0;
  };

  /** Finds the cursor's message in the log, or begins anew. What the replica sent along with it is delivered at once. */
  const verify = async (connection: LiveConnection) => {
    if (cursor.seq > 0) {
      const page = await connection.reader.page(stream, subject, cursor.seq, PAGE);
      const anchor = page.messages[0];
      if (isAnchor(anchor, cursor)) await gather(page.messages.slice(1), page.pending);
      // A replica may lag, or is about to be overwritten; the leader's answer counts.
      else if (!isAnchor(await readFromLeader(connection.jsm, stream, subject, cursor.seq), cursor)) await restart();
    }
    verified = true;
    setState({ phase: "following", error: undefined });
  };

  /** While a page is delivered, the next is on its way. */
  const readPages = async (connection: LiveConnection) => {
    const read = (fromSeq: number) => connection.reader.page(stream, subject, fromSeq, PAGE);
    for (let reading = hasEnded() ? undefined : read(readUpto() + 1); reading; ) {
      const page = await reading;
      const last = page.messages.at(-1);
      const isLast = !last || page.pending === 0 || last.seq >= lastSeq() || closing.signal.aborted;
      if (!isLast) {
        reading = read(last.seq + 1);
        reading.catch(() => {}); // its failure shows when it is awaited
      }
      await gather(page.messages, page.pending);
      if (isLast || closing.signal.aborted) return;
    }
  };

  /** One pass: everything the replicas have, then, if asked, what the leader has beyond. */
  const pass = async (connection: LiveConnection) => {
    gathered = [];
    gatheredBytes = 0;
    if (deps.after && !verified && !deps.after.state().atTail) await deps.after.checkTail();
    if (!verified) await verify(connection);
    await readPages(connection);
    while (
      (checkWanted > checksDone || Math.min(announced, lastSeq()) > readUpto()) &&
      !closing.signal.aborted &&
      !connection.signal.aborted
    ) {
      const readOne = (seq: number) => readFromLeader(connection.jsm, stream, subject, seq);
      await deliverAgain(again, readOne, (message) => sink.deliver([message], cursor));
      const check = ++checksBegun;
      const announcedBefore = announced;
      const next = hasEnded() ? undefined : await readFromLeader(connection.jsm, stream, subject, readUpto() + 1);
      if (next && next.seq <= lastSeq()) {
        await gather([next], 0);
        await readPages(connection);
        continue;
      }
      await deliverGathered(0);
      checksDone = check;
      confirmed = true;
      if (announced === announcedBefore) announced = Math.min(announced, cursor.seq); // announced, yet not there: a forged hint
      setState({ checkedAtMs: nowMs(), pending: 0 });
      resolveWaiters();
    }
    if (closing.signal.aborted || connection.signal.aborted) return;
    await deliverGathered(0);
    const atTail = confirmed && Math.min(announced, lastSeq()) <= cursor.seq;
    if (atTail !== state.atTail) setState({ atTail });
  };

  const followOn = async (connection: LiveConnection) => {
    verified = false;
    confirmed = false;
    checkWanted = checksBegun + 1;
    setState({ phase: "verifying", atTail: false });
    const hints = connection.nc.subscribe(hintSubject(subject), {
      callback: (error, message) => {
        if (error) onHintless(networkFailure(error));
        else kick(Number(message.headers?.get("Nats-Sequence")) || undefined);
      },
    });
    let asking: ReturnType<typeof setInterval> | undefined;
    const onHintless = (error: SvcError) => {
      deps.log.warn("network: no hints for a log, so it is asked for", { err: error, everyMs: HINTLESS_POLL_MS });
      asking ??= setInterval(() => kick(), HINTLESS_POLL_MS);
    };
    const secondLook = connection.nc.info?.cluster === undefined ? undefined : setTimeout(() => kick(), SECOND_LOOK_MS);
    const onLost = () => wake();
    connection.signal.addEventListener("abort", onLost);
    let retryMs = RETRY_FIRST_MS;
    try {
      while (!connection.signal.aborted && !closing.signal.aborted) {
        const woken = new Promise<void>((done) => {
          wake = done;
        });
        try {
          await pass(connection);
          retryMs = RETRY_FIRST_MS;
          if (state.phase === "failing") setState({ phase: "following", error: undefined });
          if (isIdle()) await woken;
        } catch (error) {
          if (connection.signal.aborted || closing.signal.aborted) return;
          const failure = error instanceof SvcError ? error : new SvcError("internal", { cause: error });
          deps.log.warn("network: following a log failed", { err: error });
          setState({ phase: "failing", atTail: false, error: failure });
          failWaiters(failure);
          await pause(deps.timers, retryMs, connection.signal, closing.signal);
          retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
          checkWanted = checksBegun + 1;
        }
      }
    } finally {
      clearTimeout(secondLook);
      clearInterval(asking);
      connection.signal.removeEventListener("abort", onLost);
      hints.unsubscribe();
    }
  };
  const isIdle = () => verified && checkWanted <= checksDone && Math.min(announced, lastSeq()) <= cursor.seq;

  const run = async () => {
    while (!closing.signal.aborted) {
      const connection = await link.online(closing.signal).catch(() => undefined); // rejects when closing
      if (!connection) break;
      await followOn(connection);
      setState({ phase: "offline", atTail: false });
      failWaiters(refusedAs("network.unavailable", undefined, refusal("network.lost")));
    }
  };
  const kick = (seq?: number) => {
    if (seq === undefined) checkWanted = checksBegun + 1;
    else if (seq > cursor.seq && seq <= lastSeq()) announced = Math.max(announced, seq);
    else return;
    if (announced > cursor.seq && state.atTail) setState({ atTail: false });
    wake();
  };
  const until = (satisfied: () => boolean): Promise<void> => {
    if (satisfied()) return Promise.resolve();
    if (closing.signal.aborted) return Promise.reject(svcError("server.unavailable"));
    if (!link.connection()) return Promise.reject(svcError("network.unavailable"));
    return new Promise((resolve, reject) => void waiters.add({ satisfied, resolve, reject }));
  };
  const checkTail = (): Promise<void> => {
    const wanted = checksBegun + 1;
    kick();
    return until(() => checksDone >= wanted);
  };
  const running = run();

  return {
    onReset: (listener) => void resetListeners.push(listener),
    state: () => state,
    cursor: () => cursor,
    kick,
    reverify: () => {
      verified = false;
      confirmed = false;
      kick();
    },
    checkTail,
    reached: (seq) => {
      const wanted = checksBegun + 1;
      kick(seq);
      return until(() => cursor.seq >= seq || seq > lastSeq() || checksDone >= wanted);
    },
    readAgain: (seq) => {
      again.push(seq);
      return checkTail();
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      wake();
      await running;
      failWaiters(svcError("server.unavailable"));
    },
  };
}

/** Empties a list of sequences by delivering their messages once more, and those that it gets meanwhile. */
async function deliverAgain(
  again: number[],
  read: (seq: number) => Promise<StoredMessage | undefined>,
  deliver: (message: StoredMessage) => Promise<void>,
): Promise<void> {
  for (const seq of again) {
    const message = await read(seq);
    if (message?.seq === seq) await deliver(message);
  }
  again.length = 0;
}
