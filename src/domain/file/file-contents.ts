import { equalBytes } from "../../base/bytes.ts";
import { type Content, contentOf } from "../../files/content.ts";
import type { ContentStore } from "../../files/content-store.ts";
import { refusedAs } from "../../protocol/errors.ts";
import { FILE_DURABLE, FILE_INFLIGHT, type FileStateNo } from "../../protocol/file-state.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { Space } from "../../space/space.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { FileContent, FileRef } from "../../store/tables/file-table.ts";
import { followFileRows } from "./file-refs.ts";
import { bytesOfRow } from "./file-row.ts";
import { FILES_DATASET } from "./file-rules.ts";
import { createFileStatuses } from "./file-status.ts";
import { createInlineDurability } from "./inline-durability.ts";

interface FileContentsDeps {
  space: Space;
  tables: Pick<SpaceStore, "files" | "sync">;
  contents: ContentStore;
  /** Something is to be fetched, or backed up. */
  onWork(): void;
  onBackgroundError(error: unknown): void;
}

/** How a content's backup went last. */
export interface BackupNote {
  readonly attempts: number;
  readonly lastErr: string;
  /** Unix milliseconds before which it is not tried again. */
  readonly nextMs: number;
}

const ORPHANS_AT_ONCE = 1000;
const NOTHING_TO_NOTE: BackupNote = { attempts: 0, lastErr: "", nextMs: 0 };

/** What this device has and knows of the contents that a space's files name, in step with their rows. */
export type FileContents = ReturnType<typeof createFileContents>;

export function createFileContents(deps: FileContentsDeps) {
  const { space, contents } = deps;
  const { engine } = space;
  const { files: table, sync } = deps.tables;
  const isCached = (ref: Pick<FileRef, "root" | "size">): boolean =>
    ref.root === null || contents.isCached(space.id, ref.root, ref.size);
  const statuses = createFileStatuses(table, isCached);
  const refs = followFileRows(engine, table);

  const rowOf = (ref: FileRef): JsonObject | undefined => {
    const child = engine.object(ref.child);
    return child && engine.record(child, FILES_DATASET, ref.fileId);
  };

  const stopFollowing = space.events.on("committed", (batch) => {
    const touchesFiles = batch.touched.some(({ dataset }) => dataset === FILES_DATASET);
    if (touchesFiles) deps.onWork();
    const roots = refs.takeDropped();
    if (roots.length === 0) return;
    // What somebody else deleted may be back once it is known what their right was: the only copy waits for a sweep.
    const due = batch.localChanges > 0 ? roots : roots.filter((root) => table.content(root)?.state === FILE_DURABLE);
    collect(due).catch(deps.onBackgroundError);
  });

  /** Drops contents that nothing names or is about to name, unless something that might name them cannot be read yet. */
  async function collect(roots: readonly string[]): Promise<number> {
    let freed = 0;
    for (const root of roots) {
      if (table.isNamed(root) || contents.isIntended(space.id, root) || table.isWaiting()) continue;
      freed += await contents.drop(space.id, root);
      await engine.write(() => {
        if (!table.isNamed(root) && !contents.isIntended(space.id, root)) table.dropContent(root);
      });
    }
    return freed;
  }

  refs.repair().catch(deps.onBackgroundError);

  const identityOf = (root: string, size: number, hash: Uint8Array, keyId: Uint8Array): Content => {
    const key = space.keys.byId(keyId);
    if (!key) throw refusedAs("file.not_available", undefined, refusal("file.key_not_here"));
    return contentOf(space.id, { id: keyId, key }, { rootCid: root, size, hash });
  };

  const provedOf = (content: FileContent | undefined): Content | undefined =>
    content?.hash && content.keyId
      ? identityOf(content.root, content.size, new Uint8Array(content.hash), new Uint8Array(content.keyId))
      : undefined;

  const inline = createInlineDurability({ engine, table, sync, changed: statuses.changed });

  const setStates = async (root: string, state: FileStateNo, note: BackupNote): Promise<void> => {
    const changed = await engine.write((tx) => {
      const before = table.content(root);
      if (!before) return [];
      table.setState(root, state, note);
      const refs = table.refsOfRoot(root);
      if ((before.state === FILE_DURABLE) !== (state === FILE_DURABLE)) {
        for (const ref of refs) {
          const child = tx.object(ref.child);
          if (child) tx.setLocal(child, FILES_DATASET, ref.fileId, { durable: state === FILE_DURABLE });
        }
      }
      const isNews = before.state !== state || before.lastErr !== note.lastErr || before.attempts !== note.attempts;
      return isNews ? refs.map(({ fileId }) => fileId) : [];
    });
    statuses.changed(changed);
    // What the network keeps may make way for other files now.
    if (state === FILE_DURABLE && changed.length > 0) deps.onWork();
  };

  const noteProved = (content: Content): void => {
    table.prove(content.rootCid, content.size, content.hash, content.keyId);
    table.setWanted(content.rootCid, false);
  };
  const notifyProved = (content: Content): void => {
    statuses.changed(table.refsOfRoot(content.rootCid).map(({ fileId }) => fileId));
    deps.onWork();
  };

  /** Another device has its bytes, besides this one. */
  const noteElsewhere = (root: string): Promise<void> => engine.write(() => table.setElsewhere(root, true));

  return {
    space,
    table,
    statuses,
    isCached,
    rowOf,
    collect,
    setStates,

    /** What a row names, if that is what was proved to be under its root. Errors: file.not_available. */
    async contentOf(ref: FileRef, row: JsonObject): Promise<Content> {
      const bytes = bytesOfRow(row);
      if (bytes.kind === "inline") throw new Error("the bytes lie in the row");
      const content = identityOf(bytes.rootCid, ref.size, bytes.hash, bytes.keyId);
      const proved = provedOf(table.content(bytes.rootCid));
      if (proved) {
        if (
          proved.size === content.size &&
          equalBytes(proved.hash, content.hash) &&
          equalBytes(proved.keyId, content.keyId)
        )
          return content;
        throw refusedAs("file.not_available", undefined, refusal("file.other_bytes"));
      }
      return content;
    },

    /** A content that files of the space name; undefined when none does, or all who do were seen to be wrong. Errors: file.not_available without its key. */
    contentOfRoot(root: string): Content | undefined {
      const proved = provedOf(table.content(root));
      if (proved) return proved;
      for (const ref of table.refsOfRoot(root)) {
        const row = rowOf(ref);
        const bytes = row && bytesOfRow(row);
        if (bytes?.kind !== "content") continue;
        const content = identityOf(root, ref.size, bytes.hash, bytes.keyId);
        // Whoever may write can name a root that is not theirs: one such row keeps nobody from the bytes.
        if (!contents.isRefuted(content)) return content;
      }
      return undefined;
    },
    isProved: (root: string): boolean => table.content(root)?.hash !== null,

    /** It was fetched, and is whole here. What the network does not keep came from a device that has it, too. */
    async arrived(content: Content): Promise<void> {
      await engine.write(() => noteProved(content));
      notifyProved(content);
      if (table.content(content.rootCid)?.state !== FILE_DURABLE) await noteElsewhere(content.rootCid);
    },
    /** Within a write: its bytes are here, whole, and are what its identity says. `notifyProved` after it. */
    noteProved,
    notifyProved,
    noteElsewhere,
    /** Its bytes are not here any more. */
    gone: (root: string): void => statuses.changed(table.refsOfRoot(root).map(({ fileId }) => fileId)),

    /** It is fetched as soon as somebody has it. */
    async want(root: string): Promise<void> {
      if (table.content(root)?.wanted === 1) return;
      await engine.write(() => table.setWanted(root, true));
      deps.onWork();
    },

    async retry(ref: FileRef): Promise<void> {
      if (ref.root === null) return;
      const content = table.content(ref.root);
      if (content && content.state !== FILE_DURABLE)
        await setStates(ref.root, content.state, { ...content, nextMs: 0 });
      deps.onWork();
    },
    offload: (root: string): Promise<number> => contents.drop(space.id, root),

    confirmInline: inline.confirm,
    doubtInline: inline.doubt,
    /** The network's store is another one, or an older copy: nothing is known to be kept there. */
    async doubtAll(): Promise<void> {
      const fileIds = await engine.write((tx) => {
        const doubted = table.undoDurable();
        for (const { fileId } of doubted) {
          const ref = table.ref(fileId);
          const child = ref && tx.object(ref.child);
          if (child) tx.setLocal(child, FILES_DATASET, fileId, { durable: false });
        }
        return doubted.map(({ fileId }) => fileId);
      });
      statuses.changed(fileIds);
      deps.onWork();
    },
    doubt: (root: string): Promise<void> => setStates(root, FILE_INFLIGHT, NOTHING_TO_NOTE),

    /**
     * Drops what nothing has referred to for `graceMs` of the server's running time, of which `elapsedMs` passed since the last
     * sweep. A clock that jumps moves nothing; what is named again begins anew. Answers how many bytes that freed.
     */
    async sweep(elapsedMs: number, graceMs: number): Promise<number> {
      await contents.blobs.takeStock(space.id);
      await engine.write(() => {
        // What lies here and nothing knows of: left by an upload that a crash broke off before its row.
        for (const [root, { bytes }] of contents.blobs.list(space.id))
          if (!table.content(root)) table.addContent(root, bytes);
        table.age(elapsedMs);
      });
      const due = table.orphans(ORPHANS_AT_ONCE).filter(({ orphanMs }) => orphanMs >= graceMs);
      return collect(due.map(({ root }) => root));
    },

    close: () => stopFollowing(),
  };
}
