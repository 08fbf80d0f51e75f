import { deriveKey } from "../../crypto/derive.ts";
import type { Content } from "../../files/content.ts";
import type { ChunkKeys } from "../network/chunk-store.ts";
import type { NetworkStore } from "../network/network-store.ts";

/**
 * Names and outer seal of a content's chunks on the network. They follow from the epoch, so former members find nothing
 * new.
 */
export function chunkKeysOf({ channelSecret }: Pick<Content, "channelSecret">): ChunkKeys {
  return {
    chunkKey: deriveKey(channelSecret, "network/chunk"),
    sealKey: deriveKey(channelSecret, "network/chunk-seal"),
  };
}

/** The network as a source of chunks. `onAbsent` is told of what it does not have. */
export function createNetworkChunks(
  store: Pick<NetworkStore, "state" | "chunks">,
  onAbsent: (content: Content) => void,
) {
  return {
    name: "network",
    mayHave: () => store.state().phase === "online",
    async get({ content, digest }: { content: Content; digest: Uint8Array }): Promise<Uint8Array | undefined> {
      const found = await store.chunks.get(chunkKeysOf(content), digest);
      if (!found) onAbsent(content);
      return found;
    },
  };
}
