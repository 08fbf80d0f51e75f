/** What a network's store of files holds, seen from outside. */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

/** Messages and bytes in the stream of chunks; none while there is no such stream. */
export async function filesInStore(url: string): Promise<{ messages: number; bytes: number }> {
  const nc = await connect({ servers: url });
  try {
    const jsm = await jetstreamManager(nc);
    const names = await jsm.streams.names().next();
    if (!names.includes("SVC_FILES")) return { messages: 0, bytes: 0 };
    const { state } = await jsm.streams.info("SVC_FILES");
    return { messages: state.messages, bytes: state.bytes };
  } finally {
    await nc.close();
  }
}
