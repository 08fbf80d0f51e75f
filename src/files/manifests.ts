import { readFile } from "node:fs/promises";
import { HASHES } from "./blob-store.ts";
import { buildTree, type ChunkTree, chunkCount } from "./chunk-tree.ts";
import type { Content } from "./content.ts";
import type { ContentSealer } from "./content-sealer.ts";

/** A whole content on this disk with its manifest. */
export interface WholeContent {
  readonly path: string;
  readonly digests: Uint8Array;
  readonly tree: ChunkTree;
}

interface ManifestDeps {
  /** Path of a content that is whole here. */
  whole(content: Content): Promise<string | undefined>;
  readonly sealer: ContentSealer;
  nameOf(spaceId: string, rootCid: string): string;
}

/** Manifests kept for peers that fetch chunk by chunk: at most this many bytes of digests in total. */
const KEPT_BYTES = 8 << 20;
const DIGEST_BYTES = 32;

/**
 * Manifests of the contents that are whole on this disk: read from the file beside the content, or rebuilt by sealing it.
 */
export function createManifests({ whole, sealer, nameOf }: ManifestDeps) {
  const kept = new Map<string, WholeContent>();
  let keptBytes = 0;

  const forget = (name: string): void => {
    const known = kept.get(name);
    if (!known) return;
    kept.delete(name);
    keptBytes -= known.digests.length;
  };

  const hashesOf = async (path: string, content: Content): Promise<Uint8Array | undefined> => {
    const read = await readFile(path + HASHES).catch(() => undefined);
    if (read?.length !== chunkCount(content.size) * DIGEST_BYTES) return undefined;
    const digests = new Uint8Array(read);
    return buildTree(content, digests).rootCid === content.rootCid ? digests : undefined;
  };

  const sealedAgain = async (path: string, content: Content): Promise<Uint8Array | undefined> => {
    const { key, hash, size } = content;
    const digests = await sealer.digests({ path, key, hash, size }).catch(() => undefined);
    return digests && buildTree(content, digests).rootCid === content.rootCid ? digests : undefined;
  };

  return {
    forget,
    forgetSpace(spaceId: string): void {
      for (const name of [...kept.keys()]) if (name.startsWith(nameOf(spaceId, ""))) forget(name);
    },
    async of(content: Content): Promise<WholeContent | undefined> {
      const name = nameOf(content.spaceId, content.rootCid);
      const path = await whole(content);
      if (!path) {
        forget(name);
        return undefined;
      }
      const known = kept.get(name);
      if (known) return known;
      const digests = (await hashesOf(path, content)) ?? (await sealedAgain(path, content));
      if (!digests) return undefined;
      const made = { path, digests, tree: buildTree(content, digests) };
      kept.set(name, made);
      keptBytes += digests.length;
      for (const [oldest] of kept) {
        if (keptBytes <= KEPT_BYTES || oldest === name) break;
        forget(oldest);
      }
      return made;
    },
    /** Seals the copy again, to see whether the disk still gives what was written. */
    isTrue: async (path: string, content: Content): Promise<boolean> =>
      (await sealedAgain(path, content)) !== undefined,
  };
}
