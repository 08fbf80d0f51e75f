import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { digestOfCid } from "../crypto/cid.ts";
import type { Signer } from "../crypto/sign.ts";
import { refusedAs, svcError } from "../protocol/errors.ts";
import { LIMITS } from "../protocol/limits.ts";
import { type Refusal, refusal } from "../protocol/refusals.ts";
import type { WriteScope } from "../store/commit/commit-queue.ts";
import type { WriterRow } from "../store/tables/change-table.ts";
import type { BodyOpener } from "./codec/body-opener.ts";
import { type ChangeBody, normaliseBody } from "./codec/change-body.ts";
import { type ChangeHeader, encodeChange, encodeDerivedRoot, encodeHeader } from "./codec/change-codec.ts";
import type { DatasetRules } from "./codec/dataset-rules.ts";
import type { AclView, KeyRing } from "./codec/ports.ts";
import type { FoldOutcome, Projection } from "./fold/projection.ts";
import { type ChangeLog, ROOT_DATASET } from "./graph/change-log.ts";
import type { ObjectCache, ObjectEntry } from "./graph/object-cache.ts";
import type { Unblocked } from "./graph/unblocked.ts";
import type { WriterChains } from "./graph/writer-chains.ts";

const ROOT_NONCE_BYTES = 16;

interface WriterStore {
  /** This device's writer id for the space, if one was minted. */
  load(): Uint8Array | undefined;
  save(id: Uint8Array): void;
}

interface LocalWriterDeps {
  spaceId: SpaceId;
  log: ChangeLog;
  chains: Pick<WriterChains, "of">;
  objects: ObjectCache;
  projection: Projection;
  opener: BodyOpener;
  acl: AclView;
  keys: KeyRing;
  signer: Signer;
  clock: Clock;
  writerStore: WriterStore;
  datasetNo(name: string): number;
  /** Changes from elsewhere may wait for a derived root that is made here. */
  unblocked: Pick<Unblocked, "note">;
}

export interface Appended extends FoldOutcome {
  changeId: Uint8Array;
  lamport: number;
}

/** Builds this device's own changes: one call, one change, folded at once. Runs inside the commit queue. */
export type LocalWriter = ReturnType<typeof createLocalWriter>;

export function createLocalWriter(deps: LocalWriterDeps) {
  const { log, chains, objects, projection, opener, acl, keys, signer, clock } = deps;
  const space = digestOfCid(deps.spaceId)!;
  let writerId: Uint8Array | undefined;

  const ownWriter = (scope: WriteScope): WriterRow => {
    writerId ??= deps.writerStore.load();
    if (!writerId) {
      const minted = randomBytes(16);
      deps.writerStore.save(minted);
      writerId = minted;
      scope.onRollback(() => {
        writerId = undefined;
      });
    }
    return chains.of(signer.publicKey, writerId, scope);
  };

  /** The writer's next envelope, and the position of the ACL log that it names. */
  const nextHeader = (
    { kind, object, keyId }: Pick<ChangeHeader, "kind" | "object" | "keyId">,
    writer: WriterRow,
    parents: readonly { id: Uint8Array; lamport: number }[],
  ): { header: ChangeHeader; aclPos: number } => {
    const head = acl.head();
    const lamport = 1 + Math.max(writer.lamport, head.clock, ...parents.map((parent) => parent.lamport));
    // Written out: to spread it was 0.8 % of a write.
    const header: ChangeHeader = {
      kind,
      object,
      keyId,
      space,
      parents: parents.map((parent) => parent.id),
      lamport,
      writer: writer.id,
      seq: writer.seq + 1,
      prev: writer.last,
      author: signer.publicKey,
      time: clock.nowMs(),
      acl: head.id,
    };
    return { header, aclPos: head.pos };
  };

  return {
    /** The writer this device continues here, or undefined before its first change. */
    writerId: () => writerId ?? deps.writerStore.load(),

    /**
     * From now on a new writer is used: the present one was found to be used elsewhere (by a copied or rolled-back device).
     */
    mintWriter(): void {
      writerId = randomBytes(16);
      deps.writerStore.save(writerId);
    },

    /** Makes an object. Its first content change must follow in the same write. */
    createObject(scope: WriteScope): ObjectEntry {
      const writer = ownWriter(scope);
      // Without it, two copies of one device make the same object when they write in the same millisecond.
      const keyId = randomBytes(ROOT_NONCE_BYTES);
      const { header, aclPos } = nextHeader({ kind: "root", object: null, keyId }, writer, []);
      const { bytes, id } = encodeChange(encodeHeader(header), undefined, signer);
      const object = objects.insert(id, bytes, signer.publicKey, header.time);
      scope.onRollback(() => objects.forget(object));
      log.append(
        {
          id,
          bytes,
          lamport: header.lamport,
          parents: [],
          seq: header.seq,
          aclPos,
          timeMs: header.time,
          datasetNo: ROOT_DATASET,
          counts: true,
        },
        object,
        writer,
        scope,
      );
      return object;
    },

    /** The derived object of (type, derivation), known to this device from now on. */
    ensureDerived(type: string, derivation: string, scope: WriteScope): ObjectEntry {
      const { bytes, id } = encodeDerivedRoot({ space, type, derivation });
      const known = objects.byId(id);
      if (known) return known;
      const made = log.appendDerivedRoot(id, bytes, scope);
      deps.unblocked.note("change", id, scope);
      return made;
    },

    /** Signs, seals and folds one change to an object. */
    append(object: ObjectEntry, body: ChangeBody, rules: DatasetRules, scope: WriteScope): Appended {
      const epoch = keys.current();
      if (!epoch) throw svcError("space.not_accepted", { spaceId: deps.spaceId });
      const fault = normaliseBody(body);
      if (fault) throw bodyTooLarge(fault);
      const writer = ownWriter(scope);
      const parents =
        object.heads.length <= LIMITS.changeParents
          ? object.heads
          : [...object.heads]
              .sort((a, b) => b.lamport - a.lamport)
              .slice(0, LIMITS.changeParents)
              .sort((a, b) => Buffer.compare(a.id, b.id));
      const { header, aclPos } = nextHeader({ kind: "change", object: object.id, keyId: epoch.id }, writer, parents);
      const headerBytes = encodeHeader(header);
      const sealed = opener.seal(body, object.idText, epoch, headerBytes);
      if (!sealed) throw bodyTooLarge(refusal("body.opened"));
      if (sealed.length > LIMITS.sealedChangeBytes) {
        const limitBytes = LIMITS.sealedChangeBytes;
        throw refusedAs("request.too_large", { limitBytes }, refusal("write.too_large"));
      }
      const { bytes, id } = encodeChange(headerBytes, sealed, signer);
      const counts = acl.counts({ author: header.author, writer: header.writer, seq: header.seq, id, aclPos });
      const no = log.append(
        {
          id,
          bytes,
          lamport: header.lamport,
          parents: header.parents,
          seq: header.seq,
          aclPos,
          timeMs: header.time,
          datasetNo: deps.datasetNo(body.dataset),
          counts,
        },
        object,
        writer,
        scope,
      );
      const folded = projection.foldChange({
        change: { no, id, lamport: header.lamport, writer: writer.no, counts, timeMs: header.time },
        parents: parents.map((parent) => parent.no),
        author: header.author,
        object,
        body,
        rules,
      });
      return { ...folded, changeId: id, lamport: header.lamport };
    },

    /** After a failed batch: what was minted in it may not be stored. */
    forgetBatch(): void {
      writerId = undefined;
    },
  };
}

const bodyTooLarge = (limit: Refusal) =>
  refusedAs("request.too_large", undefined, refusal("write.too_large"), { limit });
