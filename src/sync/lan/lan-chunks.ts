import { decodeCbor, encodeCbor } from "../../base/dag-cbor.ts";
import type { PeerId, SpaceId } from "../../base/ids.ts";
import { createSemaphore } from "../../base/semaphore.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import type { Content } from "../../files/content.ts";
import type { ChunkPosition } from "../../files/content-seal.ts";
import type { PeerLink } from "./peer-link.ts";

/** Request to a peer: a sealed chunk or page of a content. */
export const CHUNK_KIND = "file.chunk";

/** First byte of the answer. */
const NOTHING = 0;
const NOT_THIS_ONE = 1;
const HERE = 2;
const REQUEST_TIMEOUT_MS = 15_000;
/** How long a peer that has nothing of a content is not asked for it again. */
const REST_MS = 5_000;
/** Chunks sealed for peers at once: the rest wait their turn. */
const SERVED_AT_ONCE = 4;
/** How many pairs of peer and content are counted; those counted longest ago are forgotten. */
const COUNTED_MAX = 10_000;

export interface ChunkRequest {
  readonly space: string;
  readonly root: string;
  readonly level: number;
  readonly index: number;
}

function decodeChunkRequest(bytes: Uint8Array): ChunkRequest | undefined {
  const value = decodeCbor(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array)
    return undefined;
  const { space, root, level, index } = value as Record<string, unknown>;
  const isCount = (each: unknown): each is number => Number.isSafeInteger(each) && (each as number) >= 0;
  if (typeof space !== "string" || typeof root !== "string" || !digestOfCid(root)) return undefined;
  return isCount(level) && isCount(index) ? { space, root, level, index } : undefined;
}

/** A peer as a source of chunks, for as long as its link lasts. */
export function createPeerChunks(link: PeerLink, techId: SpaceId) {
  const restingUntilMs = new Map<string, number>();
  return {
    name: link.peerId,
    mayHave({ spaceId, rootCid }: Content): boolean {
      if (link.signal.aborted || (!link.own && (spaceId === techId || !link.sharedSpaces().includes(spaceId))))
        return false;
      return (restingUntilMs.get(rootCid) ?? 0) <= performance.now();
    },
    async get({ content, position }: { content: Content; position: ChunkPosition }): Promise<Uint8Array | undefined> {
      const { spaceId: space, rootCid: root } = content;
      const request = encodeCbor({ space, root, level: position.level, index: position.index });
      const answer = await link.request(CHUNK_KIND, request, { timeoutMs: REQUEST_TIMEOUT_MS });
      if (answer[0] === HERE) return answer.subarray(1);
      if (answer[0] === NOTHING) restingUntilMs.set(root, performance.now() + REST_MS);
      return undefined;
    },
  };
}

export interface ChunkServing {
  /** Whether files of the space name the content, and what this device has of it; undefined when none does. */
  sealed(
    spaceId: SpaceId,
    request: ChunkRequest,
  ): Promise<{ sealed: Uint8Array | undefined; chunks: number } | undefined>;
  /** A peer was given all of a content. */
  copied(spaceId: SpaceId, root: string): void;
}

/** Answers peers that ask for chunks. `served` says which spaces a peer may have the content of. */
export function createChunkServer(serving: ChunkServing) {
  const turn = createSemaphore(SERVED_AT_ONCE);
  /** How many chunks of a content a peer was given. */
  const given = new Map<string, number>();

  const count = (peerId: PeerId, spaceId: SpaceId, root: string, chunks: number): void => {
    const name = `${peerId}/${root}`;
    const sum = (given.get(name) ?? 0) + 1;
    given.delete(name);
    if (sum >= chunks) {
      serving.copied(spaceId, root);
      return;
    }
    given.set(name, sum);
    for (const [oldest] of given) {
      if (given.size <= COUNTED_MAX) break;
      given.delete(oldest);
    }
  };

  return async (
    peerId: PeerId,
    body: Uint8Array,
    served: (spaceId: string) => Promise<SpaceId | undefined>,
  ): Promise<Uint8Array> => {
    const request = decodeChunkRequest(body);
    const spaceId = request && (await served(request.space));
    if (!request || spaceId === undefined) return Uint8Array.of(NOTHING);
    const found = await turn(() => serving.sealed(spaceId, request));
    if (!found) return Uint8Array.of(NOTHING);
    if (!found.sealed) return Uint8Array.of(NOT_THIS_ONE);
    if (request.level === 0) count(peerId, spaceId, request.root, found.chunks);
    const answer = new Uint8Array(found.sealed.length + 1);
    answer[0] = HERE;
    answer.set(found.sealed, 1);
    return answer;
  };
}
