import { JetStreamApiError, type JetStreamManager, type StreamConfig, type StreamInfo } from "@nats-io/jetstream";
import { refusedAs } from "../../protocol/errors.ts";
import { refusal } from "../../protocol/refusals.ts";
import { isForbidden, JS_ERROR, jetStreamCode, networkFailure } from "./network-error.ts";
import { FILE_STREAM, INBOX_STREAM, LOG_SHARDS, logStream } from "./subjects.ts";

/** What clients rely on a stream of the network to be. An operator may set anything else. */
interface StreamShape {
  readonly name: string;
  readonly config: Partial<StreamConfig> & { readonly subjects: string[] };
}

const MESSAGE_BYTES_MAX = 1 << 20;
const INBOX_MESSAGE_BYTES_MAX = 64 << 10;
const INBOX_MESSAGES_MAX = 4096;
const DAY_NS = 86_400_000_000_000;
const INBOX_AGE_NS = 90 * DAY_NS;

/** Messages that are kept for ever, cannot be deleted or rolled up, and can be read by direct get. */
const APPEND_ONLY = {
  retention: "limits",
  storage: "file",
  discard: "old",
  allow_direct: true,
  deny_delete: true,
  deny_purge: true,
  allow_rollup_hdrs: false,
  max_age: 0,
  max_msgs: -1,
  max_bytes: -1,
  max_msgs_per_subject: -1,
  max_msg_size: MESSAGE_BYTES_MAX,
} as const satisfies Partial<StreamConfig>;

const { max_bytes: _quota, ...WITHOUT_QUOTA } = APPEND_ONLY;

function logShape(shard: number): StreamShape {
  return {
    name: logStream(shard),
    config: {
      ...APPEND_ONLY,
      subjects: [`svc.log.${shard}.*.*`],
      republish: {
        src: `svc.log.${shard}.*.*`,
        dest: `svc.hint.log.${shard}.{{wildcard(1)}}.{{wildcard(2)}}`,
        headers_only: true,
      },
    },
  };
}

export const STREAM_SHAPES: readonly StreamShape[] = [
  ...Array.from({ length: LOG_SHARDS }, (_, shard) => logShape(shard)),
  {
    name: FILE_STREAM,
    // Write-once: a subject is a chunk, and a second publish to it is refused. The operator decides how much of it is kept.
    config: {
      ...WITHOUT_QUOTA,
      subjects: ["svc.file.*"],
      max_msgs_per_subject: 1,
      discard: "new",
      discard_new_per_subject: true,
    },
  },
  {
    name: INBOX_STREAM,
    // The one stream that forgets: anyone may write to an inbox, so messages that are never fetched must not pile up.
    config: {
      ...APPEND_ONLY,
      subjects: ["svc.inbox.*"],
      max_age: INBOX_AGE_NS,
      max_msgs_per_subject: INBOX_MESSAGES_MAX,
      max_msg_size: INBOX_MESSAGE_BYTES_MAX,
      republish: { src: "svc.inbox.*", dest: "svc.hint.inbox.{{wildcard(1)}}", headers_only: true },
    },
  },
];

export interface InitResult {
  readonly created: string[];
  readonly existing: string[];
}

/** Ways in which an existing stream would break what clients rely on; empty when it will do. */
function shapeProblems(shape: StreamShape, config: StreamConfig): string[] {
  const problems: string[] = [];
  for (const [key, wanted] of Object.entries(shape.config)) {
    const got = (config as unknown as Record<string, unknown>)[key];
    if (!sameSetting(wanted, got))
      problems.push(`${key} is ${JSON.stringify(got) ?? "unset"}, not ${JSON.stringify(wanted)}`);
  }
  return problems;
}

/** Compares what was asked with what the server reports, which leaves out false and empty settings. */
function sameSetting(wanted: unknown, got: unknown): boolean {
  if (wanted === false || wanted === 0) return got === undefined || got === wanted;
  if (typeof wanted !== "object" || wanted === null) return wanted === got;
  if (typeof got !== "object" || got === null) return false;
  const keys = Object.keys(wanted);
  return keys.every((key) =>
    sameSetting((wanted as Record<string, unknown>)[key], (got as Record<string, unknown>)[key]),
  );
}

/**
 * Makes the network's streams, leaving those that exist as they are (SYNC-10). Idempotent, also when two do it at once. Throws
 * `network.forbidden` when the credentials may not create, or when a stream exists in a shape that cannot be used.
 */
export async function initNetwork(jsm: JetStreamManager, replicas: number): Promise<InitResult> {
  const created: string[] = [];
  const existing: string[] = [];
  for (const shape of STREAM_SHAPES) {
    const info = (await streamInfo(jsm, shape.name)) ?? (await createStream(jsm, shape, replicas));
    if (info === "created") {
      created.push(shape.name);
    } else {
      requireShape(shape, info);
      existing.push(shape.name);
    }
  }
  return { created, existing };
}

/**
 * The streams' present state. Missing ones are made where the credentials allow it, with three replicas on a cluster.
 * Throws `network.forbidden` (the message says what the operator has to do) when they cannot be made or used.
 */
export async function ensureStreams(
  jsm: JetStreamManager,
  clustered: boolean,
): Promise<ReadonlyMap<string, StreamInfo>> {
  const streams = await inspectStreams(jsm);
  if (streams.size < STREAM_SHAPES.length) {
    await initNetwork(jsm, clustered ? 3 : 1);
    return inspectStreams(jsm);
  }
  return streams;
}

async function inspectStreams(jsm: JetStreamManager): Promise<Map<string, StreamInfo>> {
  const streams = new Map<string, StreamInfo>();
  const infos = await Promise.all(STREAM_SHAPES.map((shape) => streamInfo(jsm, shape.name)));
  STREAM_SHAPES.forEach((shape, index) => {
    const info = infos[index];
    if (!info) return;
    requireShape(shape, info);
    streams.set(shape.name, info);
  });
  return streams;
}

/** A stream's state as its leader knows it, or undefined when there is no such stream. */
export async function streamInfo(jsm: JetStreamManager, name: string): Promise<StreamInfo | undefined> {
  try {
    return await jsm.streams.info(name);
  } catch (error) {
    if (jetStreamCode(error) === JS_ERROR.streamNotFound) return undefined;
    throw networkFailure(error);
  }
}

async function createStream(
  jsm: JetStreamManager,
  shape: StreamShape,
  replicas: number,
): Promise<"created" | StreamInfo> {
  try {
    await jsm.streams.add({ name: shape.name, num_replicas: replicas, ...shape.config } as Parameters<
      typeof jsm.streams.add
    >[0]);
    return "created";
  } catch (error) {
    if (jetStreamCode(error) === JS_ERROR.streamNameInUse) {
      const info = await streamInfo(jsm, shape.name); // another client made it a moment ago, with other replicas
      if (info) return info;
    }
    if (isForbidden(error)) {
      throw refusedAs("network.forbidden", undefined, refusal("network.no_stream", { stream: shape.name }));
    }
    if (error instanceof JetStreamApiError) {
      throw refusedAs(
        "network.unavailable",
        undefined,
        refusal("network.stream_not_made", { stream: shape.name, fault: error.message }),
      );
    }
    throw networkFailure(error);
  }
}

function requireShape(shape: StreamShape, info: StreamInfo): void {
  const problems = shapeProblems(shape, info.config);
  if (problems.length === 0) return;
  throw refusedAs("network.forbidden", undefined, refusal("network.stream_misfit", { stream: shape.name, problems }));
}
