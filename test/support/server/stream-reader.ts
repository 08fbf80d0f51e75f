import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { authOptions } from "../../../src/sync/network/auth.ts";
import { parseNetworkUrl } from "../../../src/sync/network/network-url.ts";
import type { NetworkKey } from "../../../src/sync/network/nkey.ts";
import { STREAM_SHAPES } from "../../../src/sync/network/streams.ts";

export interface ReadMessage {
  readonly stream: string;
  readonly subject: string;
  readonly seq: number;
  readonly data: Uint8Array;
}

/** A connection to a nats-server as any account that is admitted may make it, without the service. */
export function connectWith(url: string, key: NetworkKey): Promise<NatsConnection> {
  const servers = parseNetworkUrl(url);
  if ("problem" in servers) throw new Error(servers.problem);
  return connect({ ...authOptions(servers, { key }), reconnect: false });
}

/** Every message of every stream of the network, oldest first in each. */
export async function readStreams(nc: NatsConnection): Promise<ReadMessage[]> {
  const { streams } = await jetstreamManager(nc, { checkAPI: false });
  const read: ReadMessage[] = [];
  for (const { name } of STREAM_SHAPES) {
    const { state } = await streams.info(name);
    for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
      const found = await streams.getMessage(name, { seq });
      if (found) read.push({ stream: name, subject: found.subject, seq, data: found.data });
    }
  }
  return read;
}
