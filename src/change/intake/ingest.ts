import { compareBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { WriteScope } from "../../store/commit/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { StoredChange } from "../../store/tables/change-table.ts";
import type { BodyOpener } from "../codec/body-opener.ts";
import {
  type Change,
  ChangeFault,
  decodeChange,
  decodeCheckedChange,
  isDerivedRoot,
  isSignedByAuthor,
} from "../codec/change-codec.ts";
import { changeIdOf, isStub, stubOf } from "../codec/change-stub.ts";
import type { AclView, RulesRegistry } from "../codec/ports.ts";
import { sealedPartsOf } from "../codec/stored-change.ts";
import type { FoldInput } from "../fold/change-parts.ts";
import type { OpenBatch } from "../fold/commit-batch.ts";
import { FOLD_FAULT } from "../fold/fold-fault.ts";
import type { ObjectDeletions } from "../fold/object-deletions.ts";
import type { Projection } from "../fold/projection.ts";
import { type ChangeLog, ROOT_DATASET } from "../graph/change-log.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { Unblocked } from "../graph/unblocked.ts";
import type { WriterChains } from "../graph/writer-chains.ts";
import { createPositionFinder, type GraphPosition } from "./change-position.ts";
import { contentOf, isNeedless } from "./content.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";
import { createLateBodies } from "./late-body.ts";
import { createRetry } from "./retry.ts";
import { createSetAside, type ParkQuota, STRANGER } from "./set-aside.ts";

interface IngestDeps {
  spaceId: SpaceId;
  store: SpaceStore;
  unblocked: Unblocked;
  batch: Pick<OpenBatch, "judgeAnew" | "noteObject">;
  deletions: Pick<ObjectDeletions, "apply">;
  log: ChangeLog;
  chains: Pick<WriterChains, "of">;
  objects: ObjectCache;
  projection: Projection;
  opener: BodyOpener;
  acl: AclView;
  registry: RulesRegistry;
  clock: Clock;
  quota: ParkQuota;
  /** How long a change is folded while it is taken in; what it does to further records is left to later turns. */
  foldSliceMs: number;
  /** A parked change could not be tried again; it stays where it is. */
  onFailure?: ((error: unknown) => void) | undefined;
}

const KNOWN: IngestVerdict = { kind: "known" };

/** Derived roots that nobody has written to: anybody can make some, and nobody signs them. */
const MAX_IDLE_ROOTS = 4096;

/** A change, or what becomes of bytes that are none, and under which name. */
type Decoded = { change: ReturnType<typeof decodeChange> } | { id: Uint8Array; verdict: IngestVerdict };

export type Ingest = ReturnType<typeof createIngest>;

/** Takes in the bytes of other replicas. Runs inside the commit queue, through the same log and fold as local writes. */
export function createIngest(deps: IngestDeps) {
  const { store, unblocked, log, chains, objects, projection, opener, acl, registry } = deps;
  const { changes, parked, pendingBodies } = store;
  const space = digestOfCid(deps.spaceId)!;
  const aside = createSetAside({ store, acl, quota: deps.quota, clock: deps.clock });
  const { quarantine, park, hasRoom, isStranger } = aside;
  const positionOf = createPositionFinder({ store, objects, acl, aside });
  /** Definitions that came in, and that may unblock waiting changes. */
  const defined: string[] = [];
  /** What does not count is not folded, but what it defines is known as of any other. Answers whether it was folded. */
  const fold = (input: FoldInput): boolean => {
    if (input.change.counts) {
      defined.push(...(projection.foldChange(input, performance.now() + deps.foldSliceMs).defined ?? []));
      return true;
    }
    defined.push(...(registry.learn?.(input.object.idText, input.body) ?? []));
    projection.notePendingBody(input.change, input.parents, input.object);
    return false;
  };
  const complete = createLateBodies({ store, objects, opener, registry, aside, fold });

  /**
   * Judges one change and, if nothing is missing, puts it into the log and folds it. `isChecked`: canonical form and
   * signature of exactly these bytes were found good before.
   */
  const admit = (
    bytes: Uint8Array,
    scope: WriteScope,
    isChecked: boolean,
  ): { verdict: IngestVerdict; id: Uint8Array } => {
    const id = changeIdOf(bytes);
    const stored = changes.byId(id);
    if (stored) return { id, verdict: isStub(bytes) || !isStub(stored.bytes) ? KNOWN : complete(stored, bytes) };
    const known = parked.whyQuarantined(id);
    if (known) return { id, verdict: { kind: "quarantined", refusal: known } };
    const decoded = decode(bytes, id, isChecked);
    if ("verdict" in decoded) return decoded;
    const { change } = decoded;
    const refused = (why: Refusal) => ({ id, verdict: quarantine(id, why, bytes) });
    if (compareBytes(change.header.space, space) !== 0) return refused(refusal("change.another_space"));
    if (isDerivedRoot(change)) {
      if (!parked.anyWaitingFor("change", id) && objects.idleDerived() >= MAX_IDLE_ROOTS)
        return { id, verdict: { kind: "refused", refusal: refusal("change.idle_roots"), ofStranger: true } };
      log.appendDerivedRoot(id, bytes, scope);
      return { id, verdict: { kind: "stored", counts: true } };
    }
    if (!isChecked && !admitPublicKey(change.header.author)) return refused(refusal("change.author_key"));
    if (!isChecked && !isSignedByAuthor(change)) return refused(refusal("change.signature"));
    return { id, verdict: admitSigned(change, bytes, scope) };
  };

  const decode = (bytes: Uint8Array, id: Uint8Array, isChecked: boolean): Decoded => {
    try {
      return { change: isChecked ? decodeCheckedChange(bytes, id) : decodeChange(bytes, id) };
    } catch (error) {
      if (!(error instanceof ChangeFault)) throw error;
      if (error.refusal.code === "change.version")
        return { id, verdict: park({ id, author: STRANGER, object: undefined, bytes }, "version", new Uint8Array(0)) };
      // It is quarantined under the hash of its bytes: bytes that are not canonical must not spoil the name of the change
      // that they resemble.
      const name = sha256(bytes);
      const kept = bytes.length > 1 << 20 ? bytes.subarray(0, 0) : bytes;
      return { id: name, verdict: quarantine(name, error.refusal, kept) };
    }
  };

  /** The rest, for a change that its author signed. */
  const admitSigned = (change: Change, bytes: Uint8Array, scope: WriteScope): IngestVerdict => {
    admitUnread(change, scope);
    const found = positionOf(change, bytes);
    if ("verdict" in found) return found.verdict;
    const { counts, object } = found.position;
    if (!counts && !hasRoom(bytes) && !parked.voucherFor(change.id))
      return { kind: "refused", refusal: refusal("change.uncounted_quota"), ofStranger: true };
    return object
      ? admitChange(change, found.position, object, bytes, scope)
      : admitRoot(change, found.position, bytes, scope);
  };

  const admitRoot = (change: Change, position: GraphPosition, bytes: Uint8Array, scope: WriteScope): IngestVerdict => {
    const { header, id } = change;
    const writer = chains.of(header.author, header.writer, scope);
    const created = objects.insert(id, bytes, header.author, header.time);
    scope.onRollback(() => objects.forget(created));
    log.append({ ...entryOf(change, position), bytes, datasetNo: ROOT_DATASET }, created, writer, scope);
    deps.deletions.apply(created); // it may be in the deletion log already
    parked.drop(id);
    noteDecisive(change);
    // It touches no record, and others may have to be given it all the same.
    if (position.counts) deps.batch.noteObject(created.idText);
    return { kind: "stored", counts: position.counts };
  };

  const admitChange = (
    change: Change,
    position: GraphPosition,
    object: ObjectEntry,
    bytes: Uint8Array,
    scope: WriteScope,
  ): IngestVerdict => {
    const { header, id } = change;
    const { counts, parents } = position;
    const whole = wholeOf(change, bytes);
    const opened = change.sealed ? opener.open(change, object.idText) : opener.openStored(whole, object.idText);
    const content = contentOf(opened, id, registry);
    // A stub is in the graph wherever it has come, so a body that cannot be read must not keep its change out for ever, nor
    // the changes that others built on it.
    if (counts && "wait" in content && content.wait !== "body" && !isStub(bytes) && !parked.voucherFor(id))
      return park({ id, author: header.author, object: object.id, bytes }, content.wait, content.what);

    const isDropped =
      (!counts && "wait" in content) || isNeedless(content, object, isStranger(header.author), registry);
    const writer = chains.of(header.author, header.writer, scope);
    const kept = isDropped ? stubOf(bytes) : whole;
    const datasetNo = "body" in content && counts && !isDropped ? store.datasetNo(content.body.dataset) : 0;
    const no = log.append({ ...entryOf(change, position), bytes: kept, datasetNo }, object, writer, scope);
    if ("wait" in content && !isDropped && !(content.wait === "body" && object.deleted))
      pendingBodies.put(no, object.no, content.wait, content.what);
    const folding = { no, id, lamport: header.lamport, writer: writer.no, counts, timeMs: header.time };
    if ("body" in content && !isDropped) fold({ change: folding, parents, author: header.author, object, ...content });
    else projection.notePendingBody(folding, parents, object);
    parked.drop(id);
    noteDecisive(change);
    if (counts) deps.batch.noteObject(object.idText);
    if (!("broken" in content)) return { kind: "stored", counts };
    // It is in the graph, since stubs are, and does nothing on any device. Debug shows it.
    quarantine(id, content.broken, bytes);
    return { kind: "stored", counts, refusal: content.broken };
  };

  /**
   * A change on which another stands is parked here because its body cannot be read. The author of the other had it in its
   * graph, so it enters the graph here too, and its body waits there.
   */
  const admitUnread = ({ header }: Change, scope: WriteScope): void => {
    for (const id of header.prev ? [...header.parents, header.prev] : header.parents) {
      const waiting = changes.byId(id) ? undefined : parked.get(id);
      if (!waiting || waiting.waitKind === "change" || waiting.waitKind === "acl") continue;
      noteVerdict(admit(stubOf(waiting.bytes), scope, waiting.waitKind !== "version"), scope);
    }
  };

  /** The change with its body, if that came before its stub and waits here. */
  const wholeOf = (change: Change, bytes: Uint8Array): Uint8Array =>
    change.sealed ? bytes : (parked.get(change.id)?.bytes ?? bytes);

  const noteDecisive = ({ id, header }: Change): void => {
    if (acl.decidesCutOff?.({ author: header.author, writer: header.writer, seq: header.seq, id }))
      deps.batch.judgeAnew(header.author);
  };

  /** Notes what became of the change, for those that waited for it. */
  const noteVerdict = ({ verdict, id }: { verdict: IngestVerdict; id: Uint8Array }, scope: WriteScope): void => {
    if (verdict.kind === "stored" || verdict.kind === "quarantined") unblocked.note("change", id, scope);
    noteDefinitions(scope);
  };
  const noteDefinitions = (scope: WriteScope): void => {
    for (const name of defined.splice(0)) unblocked.note("definition", utf8ToBytes(name), scope);
  };

  const retry = createRetry({
    unblocked,
    table: store.unblocked,
    parked,
    pendingBodies,
    onFailure: deps.onFailure,
    retry(waiting, scope) {
      // It was found good before it was parked, except for what this program or an earlier one could not read.
      const admitted = admit(waiting.bytes, scope, waiting.waitKind !== "version");
      noteVerdict(admitted, scope);
      return admitted.verdict;
    },
    openAgain(no, scope) {
      const stored = changes.byNo(no)!;
      complete(stored, stored.bytes);
      noteDefinitions(scope);
    },
    giveUp: (waiting) => void quarantine(waiting.id, FOLD_FAULT, waiting.bytes),
    giveUpOpening(no) {
      pendingBodies.drop(no);
      const { id, bytes } = changes.byNo(no)!;
      quarantine(id, FOLD_FAULT, bytes);
    },
  });

  return {
    /**
     * One change; what waited for it is noted as unblocked. `checked` is the SHA-256 of bytes that were found good; it says
     * nothing of other bytes.
     */
    take(bytes: Uint8Array, scope: WriteScope, checked?: Uint8Array): IngestVerdict {
      const admitted = admit(bytes, scope, checked !== undefined && equalBytes(checked, sha256(bytes)));
      noteVerdict(admitted, scope);
      return admitted.verdict;
    },
    /**
     * Something threw while this change was taken in, and would throw again: the changes that wait for it learn that it is
     * refused.
     */
    giveUp(bytes: Uint8Array, scope: WriteScope): IngestVerdict {
      defined.length = 0;
      const id = changeIdOf(bytes);
      const verdict = quarantine(id, FOLD_FAULT, bytes);
      noteVerdict({ verdict, id }, scope);
      return verdict;
    },
    /** A change counts that was not folded for as long as it did not: it is opened as if its key had come. */
    foldLater({ no, objectNo, bytes }: StoredChange): void {
      pendingBodies.put(no, objectNo, "key", sealedPartsOf(bytes)!.keyId);
      unblocked.noteAll("key");
    },
    /** Tries one of the changes that something has unblocked. Answers false when there was none to try. */
    tryUnblocked: retry.step,
  };
}

/** What the log keeps of a change besides its bytes. */
const entryOf = ({ id, header }: Change, { aclPos, counts }: GraphPosition) => ({
  id,
  lamport: header.lamport,
  parents: header.parents,
  seq: header.seq,
  aclPos,
  timeMs: header.time,
  counts,
});
