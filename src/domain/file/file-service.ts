import { equalBytes } from "../../base/bytes.ts";
import { OBJECTS_DATASET } from "../../change/fold/projection.ts";
import type { ObjectEntry } from "../../change/graph/object-cache.ts";
import type { ChangeEngine, WriteTx } from "../../change/space-engine.ts";
import type { Content } from "../../files/content.ts";
import type { ContentStore } from "../../files/content-store.ts";
import type { Received } from "../../files/receive-content.ts";
import { refusedAs, svcError } from "../../protocol/errors.ts";
import { FILE_DURABLE } from "../../protocol/file-state.ts";
import type { JsonObject } from "../../protocol/json.ts";
import { refusal } from "../../protocol/refusals.ts";
import type { Space } from "../../space/space.ts";
import type { FileRef } from "../../store/tables/file-table.ts";
import type { QuerySource } from "../record/port.ts";
import { type AttachInput, checkAttach, refusedVariant } from "./file-checks.ts";
import type { FileContents } from "./file-contents.ts";
import { bytesOfRow, type FileInfo, rowOf, toFileInfo } from "./file-row.ts";
import { FILE_RULES, FILES_DATASET, FILES_TYPE } from "./file-rules.ts";
import type { FileStatus } from "./file-status.ts";
import { chooseMime } from "./mime.ts";

interface FileServiceDeps {
  space: Space;
  contents: ContentStore;
  own: FileContents;
  requireWriter(): void;
}

/** Rows deleted in one change. */
const DELETE_AT_ONCE = 500;
const KEY_ATTEMPTS = 5;

/** What is served of a file. */
export interface ServedFile {
  readonly info: FileInfo;
  /** Names the bytes: the root of a content, or the hash of what lies in the row. */
  readonly tag: string;
  /** Bytes from `start` to `end`, inclusive. Errors: file.not_available. */
  read(start: number, end: number): Promise<Blob | ReadableStream<Uint8Array> | Uint8Array>;
}

/** Files of the objects of a space. */
export type FileService = ReturnType<typeof createFileService>;

export function createFileService(deps: FileServiceDeps) {
  const { space, contents, own } = deps;
  const { statuses, table } = own;
  const { engine } = space;

  /** Bodies that are coming in. */
  let under = 0;
  const ownerOf = (source: Pick<ChangeEngine, "object">, objectId: string): ObjectEntry => {
    const object = source.object(objectId);
    if (!object || object.deleted) throw refusedAs("file.not_found", { objectId }, refusal("object.unknown"));
    return object;
  };
  const refOf = (fileId: string): FileRef => {
    const ref = table.ref(fileId);
    if (!ref || engine.object(ref.owner)?.deleted) throw svcError("file.not_found", { fileId });
    return ref;
  };
  const rowIn = (ref: FileRef): JsonObject => {
    const row = own.rowOf(ref);
    if (!row) throw svcError("file.not_found", { fileId: ref.fileId });
    return row;
  };
  const infoOf = (ref: FileRef): FileInfo => toFileInfo(ref, rowIn(ref), own.isCached(ref));

  const requireOriginal = (objectId: string, input: AttachInput): void => {
    if (input.variantOf === undefined) return;
    const original = table.ref(input.variantOf);
    if (!original) throw refusedVariant("variantOf", refusal("file.no_original"));
    if (original.owner !== objectId) throw refusedVariant("variantOf", refusal("file.original_elsewhere"));
    if (original.original !== null) throw refusedVariant("variantOf", refusal("file.original_variant"));
  };

  /** Writes the row; undefined when the key of the space has changed since the content was sealed. */
  const writeRow = (objectId: string, input: AttachInput, row: JsonObject, content?: Content) =>
    engine.write((tx) => {
      ownerOf(tx, objectId);
      requireOriginal(objectId, input);
      const current = space.keys.current();
      if (content && current && !equalBytes(current.id, content.keyId)) return undefined;
      if (content) own.noteProved(content);
      const child = tx.ensureDerived(FILES_TYPE, objectId);
      const record = { id: "", upsert: true, ops: [{ type: "$set" as const, path: "", value: row }] };
      return tx.append(child, { dataset: FILES_DATASET, records: [record] }, FILE_RULES).recordIds[0]!;
    });

  const attachStored = async (
    objectId: string,
    input: AttachInput,
    mime: string | undefined,
    received: Extract<Received, { kind: "stored" }>,
  ): Promise<string> => {
    const { size, hash } = received;
    let source = received;
    for (let attempt = 0; attempt < KEY_ATTEMPTS; attempt++) {
      const current = space.keys.current();
      if (!current) throw refusedAs("space.not_joined", { spaceId: space.id }, refusal("space.no_read_key"));
      const content = await contents.seal(space.id, current, source);
      const { keyId } = content;
      let failed = false;
      try {
        const file = { objectId, size, name: input.name, mime, variant: input.variant, variantOf: input.variantOf };
        const fileId = await writeRow(objectId, input, rowOf(file, { rootCid: content.rootCid, hash, keyId }), content);
        if (fileId !== undefined) {
          own.notifyProved(content);
          return fileId;
        }
        // Somebody was removed meanwhile: what they had the key of is sealed anew, from the copy that is there now.
        source = await contents.receiveAgain(content, received);
      } catch (error) {
        failed = true;
        throw error;
      } finally {
        contents.release(content);
        if (failed || source !== received) await own.collect([content.rootCid]);
      }
    }
    throw refusedAs("server.unavailable", undefined, refusal("space.key_changes"));
  };

  const take = async (
    objectId: string,
    input: AttachInput,
    body: ReadableStream<Uint8Array> | null,
  ): Promise<FileInfo> => {
    const received = await contents.receive(space.id, body);
    try {
      deps.requireWriter();
      const mime = chooseMime(input.mime, input.name, received.head);
      const file = { objectId, name: input.name, mime, variant: input.variant, variantOf: input.variantOf };
      const fileId =
        received.kind === "stored"
          ? await attachStored(objectId, input, mime, received)
          : await writeRow(
              objectId,
              input,
              rowOf({ ...file, size: received.bytes.length }, { data: received.bytes }),
              undefined,
            );
      return infoOf(refOf(fileId!));
    } finally {
      await contents.discard(received);
    }
  };

  return {
    /**
     * Attaches what comes in to an object. The bytes are on the disk before the row is written, and the row before this
     * resolves; when it rejects, nothing is left. Errors: file.not_found, file.variant_invalid, request.invalid_field,
     * space.read_only, storage.full.
     */
    async attach(objectId: string, input: AttachInput, body: ReadableStream<Uint8Array> | null): Promise<FileInfo> {
      deps.requireWriter();
      checkAttach(input);
      ownerOf(engine, objectId);
      if (!engine.record(ownerOf(engine, objectId), OBJECTS_DATASET, objectId))
        throw refusedAs("file.not_found", { objectId }, refusal("object.no_files"));
      requireOriginal(objectId, input);
      under++;
      try {
        return await take(objectId, input, body);
      } finally {
        under--;
      }
    },
    /** Whether something is coming in. */
    busy: (): boolean => under > 0 || statuses.watched(),

    /** Newest first. `limit` 0: all. */
    list(objectId: string | undefined, limit: number): FileInfo[] {
      const infos: FileInfo[] = [];
      for (const ref of table.newest(objectId, limit > 0 ? limit : -1)) {
        if (engine.object(ref.owner)?.deleted) continue;
        const row = own.rowOf(ref);
        if (row) infos.push(toFileInfo(ref, row, own.isCached(ref)));
      }
      return infos;
    },

    get: (fileId: string): FileInfo => infoOf(refOf(fileId)),

    /** A file, or its variant of this kind. Errors: file.not_found. */
    serve(fileId: string, variant: string | undefined): ServedFile {
      const asked = refOf(fileId);
      const ref = variant === undefined ? asked : table.variant(asked.original ?? asked.fileId, variant);
      if (!ref) throw refusedAs("file.not_found", { fileId }, refusal("file.no_variant", { variant }));
      const row = rowIn(ref);
      const info = toFileInfo(ref, row, own.isCached(ref));
      const bytes = bytesOfRow(row);
      if (bytes.kind === "inline")
        return { info, tag: bytes.tag, read: async (start, end) => bytes.bytes.subarray(start, end + 1) };
      return {
        info,
        tag: bytes.rootCid,
        async read(start, end) {
          try {
            return await contents.read(await own.contentOf(ref, row), start, end);
          } catch (error) {
            if ((error as { code?: string }).code !== "file.not_available") throw error;
            // Whoever turns up with it later is asked then.
            await own.want(bytes.rootCid);
            throw svcError("file.not_available", { fileId: ref.fileId }, (error as Error).message);
          }
        },
      };
    },

    status: (fileId: string): FileStatus => statuses.of(refOf(fileId)),
    subscribe: statuses.subscribe,

    /** Files by where their backup stands, and those of which one copy alone is known. */
    stats() {
      const counts = { total: 0, durable: 0, inflight: 0, limited: 0, oneCopy: 0 };
      for (const { state, elsewhere, count } of table.counts()) {
        counts.total += count;
        counts[statuses.nameOf(state)] += count;
        if (state !== FILE_DURABLE && elsewhere === 0) counts.oneCopy += count;
      }
      return counts;
    },

    /** Keeps the bytes on this device, and fetches them if they are not here. */
    async pin(fileId: string): Promise<void> {
      const ref = refOf(fileId);
      await engine.write(() => table.setPinned(ref.fileId, true));
      if (ref.root !== null && !own.isCached(ref)) await own.want(ref.root);
    },

    /** Tries the backup again now. */
    async retry(fileId: string): Promise<void> {
      await own.retry(refOf(fileId));
    },

    /** Drops the bytes here when the network keeps them. What lies in its row stays. Errors: file.not_durable. */
    async offload(fileId: string): Promise<void> {
      const ref = refOf(fileId);
      if (ref.root === null) return;
      if (ref.state !== FILE_DURABLE) throw svcError("file.not_durable", { fileId });
      await engine.write(() => {
        for (const each of table.refsOfRoot(ref.root!)) table.setPinned(each.fileId, false);
        table.setWanted(ref.root!, false);
      });
      await own.offload(ref.root);
    },

    /** Deletes a file and its variants; bytes that nothing else names go with them. */
    async delete(fileId: string): Promise<void> {
      deps.requireWriter();
      const ref = refOf(fileId);
      const roots = new Set<string>();
      const deleteRows = (tx: WriteTx, refs: readonly FileRef[]): void => {
        const child = tx.object(ref.child);
        if (!child || child.deleted) throw svcError("file.not_found", { fileId });
        for (const { root } of refs) if (root !== null) roots.add(root);
        const records = refs.map(({ fileId: id }) => ({ id, delete: true as const, ops: [] }));
        tx.append(child, { dataset: FILES_DATASET, records }, FILE_RULES);
      };
      for (let isOver = false; !isOver; ) {
        isOver = await engine.write((tx) => {
          const current = table.ref(fileId);
          if (!current) throw svcError("file.not_found", { fileId });
          const variants = table.variantsOf(fileId, DELETE_AT_ONCE);
          const isLast = variants.length < DELETE_AT_ONCE;
          deleteRows(tx, isLast ? [...variants, current] : variants);
          return isLast;
        });
      }
      await own.collect([...roots]);
    },

    /** Where the rows of an object's files are. Errors: file.not_found before the first was attached. */
    rowsOf(objectId: string): QuerySource & { objectId: string } {
      ownerOf(engine, objectId);
      const childId = engine.derivedId(FILES_TYPE, objectId);
      const child = engine.object(childId);
      if (!child || child.deleted) throw refusedAs("file.not_found", { objectId }, refusal("object.no_files_yet"));
      return { collectionId: engine.collectionIdOf(child, FILES_DATASET), dataset: FILES_DATASET, objectId: childId };
    },
  };
}

/** The object that holds the files of another, if there is one: it ends with it. */
export function filesObjectIn(engine: ChangeEngine, owner: string): string[] {
  const child = engine.derivedId(FILES_TYPE, owner);
  return engine.object(child) ? [child] : [];
}
