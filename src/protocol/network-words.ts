interface Stream {
  stream: string;
}

/** Wordings for what the network or a peer does not do; they belong to the one table of `refusals.ts`. */
export const NETWORK_WORDS = {
  "network.lost": "The connection to the network was lost; retry",
  "network.not_allowed": ({ publish, subject }: { publish: boolean; subject: string }) =>
    `The network's credentials do not allow ${publish ? "publishing" : "subscribing"} to ${subject}`,
  "network.not_admitted": ({ identity }: { identity?: string }) =>
    `The network refuses these credentials; its operator must admit ${identity ?? "this account's network key"}`,
  "network.refused": ({ fault, code }: { fault: string; code: number }) =>
    `The network refused: ${fault} (JetStream ${code})`,
  "network.no_responders":
    "The network's JetStream does not answer: it is off, has no leader, or the streams are missing",
  "network.old_server": ({ version, least }: { version: string; least: string }) =>
    `The network runs nats-server ${version}; it needs ${least} or newer`,
  "network.no_stream": ({ stream }: Stream) =>
    `The network lacks the stream ${stream} and these credentials may not make it; its operator runs \`svc network init\` with credentials that may`,
  "network.stream_not_made": ({ stream, fault }: Stream & { fault: string }) =>
    `The network did not make the stream ${stream}: ${fault}`,
  "network.stream_misfit": ({ stream, problems }: Stream & { problems: readonly string[] }) =>
    `The network's stream ${stream} cannot be used: ${problems.join("; ")}. Its operator has to change it`,
  "network.small_messages": ({ limitBytes }: { limitBytes: number }) =>
    `The network takes messages of ${limitBytes} bytes, too few for a change; its operator must raise max_payload`,
  "network.small_chunks": ({ limitBytes, bytes }: { limitBytes: number; bytes: number }) =>
    `The network's server takes messages of at most ${limitBytes} bytes; chunks of files need ${bytes}: its operator has to raise max_payload`,
  "network.keeps_changes": "The network acknowledges changes but does not give them back",
  "network.keeps_chunk": "The network acknowledged a chunk but does not give it back; retry",
  "network.other_chunk": "The network holds other bytes in place of a chunk",
  "network.others_faster": "Others were faster every time; retry",
  "network.read_late": "The network did not answer a read in time; retry",
  "network.read_nonsense": "The network answered a read with nonsense",
  "network.read_refused": ({ status, description }: { status: number; description: string }) =>
    `The network did not answer a read: ${status === 503 ? "the stream is missing or has no leader" : `${status} ${description}`}`,
  "peer.gone": ({ why }: { why: string }) => `The peer is not connected any more: ${why}`,
  "peer.message_too_large": ({ bytes }: { bytes: number }) => `A message of ${bytes} bytes does not fit the link`,
  "peer.failed": ({ reason }: { reason: string }) => `The peer did not answer: ${reason}`,
  "peer.too_slow": "The peer is too slow: too many requests wait for it",
  "peer.late": "The peer did not answer in time",
} as const;
