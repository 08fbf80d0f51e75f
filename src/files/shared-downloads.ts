import { bytesToHex } from "../base/bytes.ts";
import type { BlobStore } from "./blob-store.ts";
import type { ChunkSources } from "./chunk-sources.ts";
import type { Content } from "./content.ts";
import { ContentDamaged, type Download, openDownload } from "./download.ts";

/** A download that nobody uses is closed after this long. */
const LINGER_MS = 3_000;
/** Most false identities that are remembered. */
const REFUTED_KEPT = 10_000;

interface Shared {
  readonly rootName: string;
  readonly opening: Promise<Download>;
  users: number;
  linger: ReturnType<typeof setTimeout> | undefined;
}

/**
 * Downloads, each shared by all readers of the same content. Two contents are the same only if everything in their rows
 * agrees: a row that names the root of another content with a false hash gets its own download, which fails alone.
 */
export function createSharedDownloads(deps: {
  readonly blobs: BlobStore;
  readonly sources: ChunkSources;
  rootNameOf(spaceId: string, rootCid: string): string;
  /** A content is whole here. */
  arrived(content: Content): void;
}) {
  const downloads = new Map<string, Shared>();
  const refuted = new Set<string>();
  /** Names of the roots that are being worked on: a download requested meanwhile opens afterwards. */
  const taken = new Map<string, Promise<void>>();
  const rootNameOf = ({ spaceId, rootCid }: Pick<Content, "spaceId" | "rootCid">): string =>
    deps.rootNameOf(spaceId, rootCid);
  const nameOf = (content: Content): string =>
    `${rootNameOf(content)}/${content.size}/${bytesToHex(content.hash)}/${bytesToHex(content.keyId)}`;

  const refute = (name: string): void => {
    refuted.add(name);
    if (refuted.size > REFUTED_KEPT) refuted.delete(refuted.values().next().value as string);
  };

  const close = async (name: string, held: Shared): Promise<void> => {
    if (downloads.get(name) === held) downloads.delete(name);
    clearTimeout(held.linger);
    const download = await held.opening.catch(() => undefined); // it never opened
    await download?.close();
  };

  const open = async (content: Content, rootName: string): Promise<Download> => {
    for (let work = taken.get(rootName); work; work = taken.get(rootName)) await work;
    return openDownload(content, deps.blobs, deps.sources);
  };

  const sharedOf = (name: string, content: Content): Shared => {
    const known = downloads.get(name);
    if (known) return known;
    const rootName = rootNameOf(content);
    const opening = open(content, rootName);
    const shared: Shared = { rootName, opening, users: 0, linger: undefined };
    downloads.set(name, shared);
    opening.then(
      (download) => download.whole.then(() => deps.arrived(content)).catch(() => undefined),
      () => downloads.delete(name),
    );
    return shared;
  };

  const closeWhere = async (matches: (held: Shared) => boolean): Promise<void> => {
    for (const [name, held] of [...downloads]) if (matches(held)) await close(name, held);
  };

  return {
    /** Works with the download of a content, which is closed a while after its last user is done. */
    async using<T>(content: Content, work: (download: Download) => Promise<T>): Promise<T> {
      const name = nameOf(content);
      const held = sharedOf(name, content);
      clearTimeout(held.linger);
      held.users++;
      try {
        return await work(await held.opening);
      } catch (error) {
        if (error instanceof ContentDamaged) refute(name);
        throw error;
      } finally {
        held.users--;
        if (held.users === 0) {
          clearTimeout(held.linger);
          held.linger = setTimeout(() => void close(name, held), LINGER_MS);
          held.linger.unref?.();
        }
      }
    },
    /** The download of a content that is under way; undefined when there is none. */
    current: (content: Content): Promise<Download> | undefined => downloads.get(nameOf(content))?.opening,
    /** Whether the content's own bytes, proved by its root, were seen not to match its identity. */
    isRefuted: (content: Content): boolean => refuted.has(nameOf(content)),
    isRead: (rootName: string): boolean =>
      [...downloads.values()].some((held) => held.rootName === rootName && held.users > 0),
    /** Works on a content on the disk while no download of it is open. For one root, one caller after the other. */
    async without<T>(rootName: string, work: () => Promise<T>): Promise<T> {
      const done = Promise.withResolvers<void>();
      taken.set(rootName, done.promise);
      try {
        await closeWhere((held) => held.rootName === rootName);
        return await work();
      } finally {
        taken.delete(rootName);
        done.resolve();
      }
    },
    closeSpace: (spaceId: string): Promise<void> => closeWhere((held) => held.rootName.startsWith(`${spaceId}/`)),
    close: (): Promise<void> => closeWhere(() => true),
  };
}
