import type { JetStreamManager, SeqMsgRequest } from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { networkFailure } from "./network-error.ts";

export interface StoredMessage {
  readonly seq: number;
  readonly data: Uint8Array;
}

interface ReadPage {
  /** In the order of the stream. */
  readonly messages: readonly StoredMessage[];
  /** How many more the answering replica knows of. A replica may lag: 0 is no proof that nothing is missing. */
  readonly pending: number;
}

interface PageLimits {
  readonly maxMessages: number;
  /** Soft: at least one message comes. */
  readonly maxBytes: number;
}

/**
 * Reads by direct get: no consumer, no state on the server, answered by any replica. One inbox subscription serves all
 * requests of a connection (the library's own batch read makes one a call and leaves it behind).
 */
export interface DirectReader {
  /** Messages of one subject from a sequence on. Throws `network.unavailable` or `network.forbidden`. */
  page(stream: string, subject: string, fromSeq: number, limits: PageLimits): Promise<ReadPage>;
  /** The last message of a subject as some replica knows it. */
  last(stream: string, subject: string): Promise<StoredMessage | undefined>;
  close(): void;
}

/** Silence after which a read is given up. */
const READ_TIMEOUT_MS = 5000;
/** Without batches (servers before 2.11) a page is read message by message; so short pages. */
const SINGLE_READS_MAX = 64;

interface PendingRead {
  readonly messages: StoredMessage[];
  readonly batch: boolean;
  timer: ReturnType<typeof setTimeout>;
  resolve(page: ReadPage): void;
  reject(error: Error): void;
}

export function createDirectReader(nc: NatsConnection, batches: boolean): DirectReader {
  const inbox = createInbox();
  const reads = new Map<string, PendingRead>();
  let nextRead = 0;

  const finish = (token: string, read: PendingRead, pending: number) => {
    reads.delete(token);
    clearTimeout(read.timer);
    read.resolve({ messages: read.messages, pending });
  };
  const abandon = (token: string, read: PendingRead, error: Error) => {
    reads.delete(token);
    clearTimeout(read.timer);
    read.reject(error);
  };
  const armTimer = (token: string, read: PendingRead) => {
    clearTimeout(read.timer);
    read.timer = setTimeout(
      () => abandon(token, read, refusedAs("network.unavailable", undefined, refusal("network.read_late"))),
      READ_TIMEOUT_MS,
    );
  };

  const onMessage = (message: Msg) => {
    const token = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    const read = reads.get(token);
    if (!read) return; // a late answer to a read given up
    const headers = message.headers;
    const status = headers?.code ?? 0;
    if (status === 0 && headers) {
      const seq = Number(headers.get("Nats-Sequence"));
      if (!Number.isSafeInteger(seq) || seq <= 0) {
        return abandon(token, read, refusedAs("network.unavailable", undefined, refusal("network.read_nonsense")));
      }
      read.messages.push({ seq, data: message.data });
      if (read.batch) armTimer(token, read);
      else finish(token, read, 0);
    } else if (status === 204) {
      finish(token, read, Number(headers?.get("Nats-Num-Pending")) || 0);
    } else if (status === 404) {
      finish(token, read, 0);
    } else {
      const why = refusal("network.read_refused", { status, description: headers?.description ?? "" });
      abandon(token, read, refusedAs("network.unavailable", undefined, why));
    }
  };
  const subscription = nc.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      if (error) for (const [token, read] of reads) abandon(token, read, networkFailure(error));
      else onMessage(message);
    },
  });

  const request = (subject: string, body: object | undefined, batch: boolean): Promise<ReadPage> => {
    const token = (nextRead++).toString(36);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {}, 0);
      const read: PendingRead = { messages: [], batch, timer, resolve, reject };
      reads.set(token, read);
      armTimer(token, read);
      try {
        nc.publish(subject, body ? JSON.stringify(body) : "", { reply: `${inbox}.${token}` });
      } catch (error) {
        abandon(token, read, networkFailure(error));
      }
    });
  };

  const pageBySingles = async (stream: string, subject: string, fromSeq: number, limits: PageLimits) => {
    const messages: StoredMessage[] = [];
    let seq = fromSeq;
    let bytes = 0;
    while (messages.length < Math.min(limits.maxMessages, SINGLE_READS_MAX) && bytes < limits.maxBytes) {
      const { messages: found } = await request(`$JS.API.DIRECT.GET.${stream}`, { seq, next_by_subj: subject }, false);
      const message = found[0];
      if (!message) return { messages, pending: 0 };
      messages.push(message);
      seq = message.seq + 1;
      bytes += message.data.length;
    }
    return { messages, pending: 1 };
  };

  return {
    page: (stream, subject, fromSeq, limits) => {
      const seq = Math.max(1, fromSeq);
      if (!batches) return pageBySingles(stream, subject, seq, limits);
      const body = { seq, next_by_subj: subject, batch: limits.maxMessages, max_bytes: limits.maxBytes };
      return request(`$JS.API.DIRECT.GET.${stream}`, body, true);
    },
    last: async (stream, subject) =>
      (await request(`$JS.API.DIRECT.GET.${stream}.${subject}`, undefined, false)).messages[0],
    close: () => {
      subscription.unsubscribe();
      const gone = refusedAs("network.unavailable", undefined, refusal("network.lost"));
      for (const [token, read] of reads) abandon(token, read, gone);
    },
  };
}

/**
 * The first message of a subject at or after a sequence, as the stream's leader knows it: undefined is proof that the
 * log ends before it.
 */
export async function readFromLeader(
  jsm: JetStreamManager,
  stream: string,
  subject: string,
  fromSeq: number,
): Promise<StoredMessage | undefined> {
  try {
    const query: SeqMsgRequest & { next_by_subj: string } = { seq: Math.max(1, fromSeq), next_by_subj: subject };
    const found = await jsm.streams.getMessage(stream, query);
    return found ? { seq: found.seq, data: found.data } : undefined;
  } catch (error) {
    throw networkFailure(error);
  }
}
