import { compareBytes, equalBytes, utf8ToBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { SpaceId } from "../../base/ids.ts";
import { digestOfCid } from "../../crypto/cid.ts";
import { sha256 } from "../../crypto/hash.ts";
import { admitPublicKey } from "../../crypto/public-key.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { CHANGE_STUB, type StoredChange } from "../../store/change-table.ts";
import type { WriteScope } from "../../store/commit-queue.ts";
import type { SpaceStore } from "../../store/space-store.ts";
import type { UnopenedWait } from "../../store/unopened-table.ts";
import type { BodyOpener, OpenedBody } from "../codec/body-opener.ts";
import type { ChangeBody } from "../codec/change-body.ts";
import {
  type Change,
  ChangeFault,
  decodeChange,
  decodeCheckedChange,
  isDerivedRoot,
  isSignedByAuthor,
} from "../codec/change-codec.ts";
import { changeIdOf, isStub, kindOf, stubOf } from "../codec/change-stub.ts";
import type { DatasetRules } from "../codec/dataset-rules.ts";
import { sealedPartsOf } from "../codec/stored-change.ts";
import type { FoldInput } from "../fold/change-parts.ts";
import type { OpenBatch } from "../fold/commit-batch.ts";
import { FOLD_FAULT } from "../fold/fold-fault.ts";
import type { ObjectDeletions } from "../fold/object-deletions.ts";
import type { Projection } from "../fold/projection.ts";
import type { ChangeLog } from "../graph/change-log.ts";
import type { ObjectCache, ObjectEntry } from "../graph/object-cache.ts";
import type { LocalWriter } from "../local-writer.ts";
import type { AclView, RulesRegistry } from "../ports.ts";
import type { Arrivals } from "./arrivals.ts";
import type { IngestVerdict } from "./ingest-verdict.ts";
import { createSetAside, type ParkQuota, STRANGER } from "./set-aside.ts";
import { createUnblocked } from "./unblocked.ts";

interface IngestDeps {
  spaceId: SpaceId;
  store: SpaceStore;
  arrivals: Arrivals;
  batch: Pick<OpenBatch, "unsettle">;
  deletions: Pick<ObjectDeletions, "settle">;
  log: ChangeLog;
  objects: ObjectCache;
  projection: Projection;
  opener: BodyOpener;
  acl: AclView;
  registry: RulesRegistry;
  writer: LocalWriter;
  clock: Clock;
  quota: ParkQuota;
  /** A parked change could not be tried again; it stays where it is. */
  onFailure?: ((error: unknown) => void) | undefined;
}

const KNOWN: IngestVerdict = { kind: "known" };

/** Derived roots that nobody has written to: anybody can make some, and nobody signs them. */
const MAX_IDLE_ROOTS = 4096;

/** What a change does, as far as it can be told here. */
type Content =
  | { body: ChangeBody; rules: DatasetRules }
  | { wait: UnopenedWait; what: Uint8Array }
  /** Nothing, on any device. */
  | { broken: string };

/** Takes in the bytes of other replicas. Runs inside the commit queue, through the same log and fold as local writes. */
export function createIngest(deps: IngestDeps) {
  const { store, arrivals, log, objects, projection, opener, acl, registry } = deps;
  const { changes, parked, unopened } = store;
  const space = digestOfCid(deps.spaceId)!;
  const { quarantine, park, parkBehind, hasRoom, isStranger } = createSetAside({
    store,
    acl,
    quota: deps.quota,
    clock: deps.clock,
  });
  /** Definitions that came in and that waiting changes may be released by. */
  const defined: string[] = [];

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
    const known = parked.quarantineReason(id);
    if (known) return { id, verdict: { kind: "quarantined", reason: known } };
    let change: ReturnType<typeof decodeChange>;
    try {
      change = isChecked ? decodeCheckedChange(bytes, id) : decodeChange(bytes, id);
    } catch (error) {
      if (!(error instanceof ChangeFault)) throw error;
      if (error.reason === "unsupported")
        return { id, verdict: park(id, STRANGER, bytes, "version", new Uint8Array(0)) };
      // Under the hash of the bytes: what is not canonical must not give a bad name to the change that it resembles.
      const name = sha256(bytes);
      const kept = bytes.length > 1 << 20 ? bytes.subarray(0, 0) : bytes;
      return { id: name, verdict: quarantine(name, `${error.reason}: ${error.message}`, kept) };
    }
    if (compareBytes(change.header.space, space) !== 0)
      return { id, verdict: quarantine(id, "it belongs to another space", bytes) };
    if (isDerivedRoot(change)) {
      if (!parked.anyWaitingFor("change", id) && objects.idleDerived() >= MAX_IDLE_ROOTS)
        return { id, verdict: { kind: "refused", reason: "too many roots that nobody wrote to", ofStranger: true } };
      deps.writer.insertDerivedRoot(id, bytes, scope);
      return { id, verdict: { kind: "stored", counts: true } };
    }
    if (!isChecked && !admitPublicKey(change.header.author))
      return { id, verdict: quarantine(id, "the author's key is not admissible", bytes) };
    if (!isChecked && !isSignedByAuthor(change))
      return { id, verdict: quarantine(id, "the signature is not the author's", bytes) };
    return { id, verdict: admitSigned(change, bytes, scope) };
  };

  /** The rest, for a change that its author signed. */
  const admitSigned = (change: Change, bytes: Uint8Array, scope: WriteScope): IngestVerdict => {
    const { header, id } = change;
    const position = acl.at(header.acl);
    if (!position) return park(id, header.author, bytes, "acl", header.acl);
    const { author, writer: writerId, seq } = header;
    const hasRight = acl.counts({ author, writer: writerId, seq, id, aclPos: position.pos });
    /** Who waits: what is missed by somebody without the right is nobody's to miss. */
    const waiter = hasRight ? author : STRANGER;
    let clock = position.clock;
    let notBefore = 0;
    let object: ObjectEntry | undefined;
    const parents: number[] = [];
    for (const parentId of header.parents) {
      const parent = changes.byId(parentId);
      if (!parent) return parkBehind(parentId, id, waiter, bytes);
      parents.push(parent.no);
      object ??= objects.byNo(parent.obj);
      if (!object || parent.obj !== object.no) return quarantine(id, "its parents belong to different objects", bytes);
      clock = Math.max(clock, parent.lamport);
      notBefore = Math.max(notBefore, parent.aclPos);
    }
    if (object && compareBytes(object.id, header.object!) !== 0)
      return quarantine(id, "its parents belong to another object", bytes);
    if (header.prev) {
      const prev = changes.byId(header.prev);
      if (!prev) return parkBehind(header.prev, id, waiter, bytes);
      const prevWriter = changes.writerByNo(prev.writer);
      if (
        !prevWriter ||
        compareBytes(prevWriter.id, header.writer) !== 0 ||
        compareBytes(prevWriter.author, header.author) !== 0 ||
        prev.seq !== header.seq - 1
      ) {
        return quarantine(id, "its writer's chain is broken", bytes);
      }
      clock = Math.max(clock, prev.lamport);
      notBefore = Math.max(notBefore, prev.aclPos);
    }
    if (header.lamport !== clock + 1)
      return quarantine(id, `its lamport is ${header.lamport}, not ${clock + 1}`, bytes);

    const counts = position.pos >= notBefore && hasRight;
    if (!counts && !hasRoom(bytes) && !parked.voucherFor(id))
      return { kind: "refused", reason: "what does not count has used up its quota", ofStranger: true };
    if (header.kind === "root") {
      const writer = log.findWriter(header.author, header.writer) ?? log.addWriter(header.author, header.writer, scope);
      const created = objects.insert(id, bytes, header.author, header.time);
      scope.onRollback(() => objects.forget(created));
      log.append({ ...placeOf(change, position.pos, counts), bytes, ds: 0 }, created, writer, scope);
      deps.deletions.settle(created); // it may be in the deletion log already
      parked.drop(id);
      noteSettled(change);
      return { kind: "stored", counts };
    }

    const whole = wholeOf(change, bytes);
    const opened = change.sealed ? opener.open(change, object!.idText) : opener.openStored(whole, object!.idText);
    const content = contentOf(opened, id);
    // A stub is in the graph wherever it came, so a body that cannot be read must not keep its change out for ever.
    if (counts && "wait" in content && content.wait !== "body" && !isStub(bytes))
      return park(id, header.author, bytes, content.wait, content.what);

    const isDropped = isNeedless(content, object!, header.author) || (!counts && "wait" in content);
    const writer = log.findWriter(header.author, header.writer) ?? log.addWriter(header.author, header.writer, scope);
    const no = log.append(
      {
        ...placeOf(change, position.pos, counts),
        bytes: isDropped ? stubOf(bytes) : whole,
        ds: "body" in content && !isDropped ? store.datasetNo(content.body.dataset) : 0,
      },
      object!,
      writer,
      scope,
    );
    if ("wait" in content && !isDropped && !(content.wait === "body" && object!.deleted))
      unopened.put(no, object!.no, content.wait, content.what);
    const place = { no, id, lamport: header.lamport, writer: writer.no, counts, timeMs: header.time };
    if ("body" in content && !isDropped)
      fold({ change: place, parents, author: header.author, object: object!, ...content });
    else projection.noteUnopened(place, parents, object!);
    parked.drop(id);
    noteSettled(change);
    return "broken" in content ? withoutEffect(id, counts, content.broken, bytes) : { kind: "stored", counts };
  };

  /** The change with its body, if that came before its stub and waits here. */
  const wholeOf = (change: Change, bytes: Uint8Array): Uint8Array =>
    change.sealed ? bytes : (parked.get(change.id)?.bytes ?? bytes);

  const contentOf = (opened: OpenedBody, id: Uint8Array): Content => {
    if ("stub" in opened) return { wait: "body", what: id };
    if ("missingKey" in opened) return { wait: "key", what: opened.missingKey };
    if ("broken" in opened) return opened;
    const answer = registry.rulesFor(opened.body.dataset, opened.body.definition);
    if ("missing" in answer) return { wait: "definition", what: utf8ToBytes(answer.missing) };
    if ("unknown" in answer) return { wait: "version", what: new Uint8Array(0) };
    return { body: opened.body, rules: answer.rules };
  };

  /** It is in the graph, since stubs are, and does nothing on any device. Debug tells of it. */
  const withoutEffect = (id: Uint8Array, counts: boolean, reason: string, bytes: Uint8Array) => {
    quarantine(id, reason, bytes);
    return { kind: "stored", counts, reason } as const;
  };

  const fold = (input: FoldInput): void => {
    const folded = projection.foldChange(input);
    if (folded.defined) defined.push(...folded.defined);
  };

  /**
   * Nobody ever reads it: of what was deleted long ago, or by somebody who never was a member. A definition others may
   * have written under; what cannot be read yet may be one.
   */
  const isNeedless = (content: Content, object: ObjectEntry, author: Uint8Array): boolean => {
    if ("body" in content && registry.outlives?.(content.body.dataset)) return false;
    return isStranger(author) || (object.purged && !("wait" in content));
  };

  /** The body of a change that is in the graph without it has come, or what that waited for. */
  const complete = (stored: StoredChange, bytes: Uint8Array): IngestVerdict => {
    const object = objects.byNo(stored.obj)!;
    const isTooLarge = sealedPartsOf(bytes)!.sealed.length > LIMITS.sealedChangeBytes;
    const content = isTooLarge
      ? { broken: "too_large: the sealed body is too large" }
      : contentOf(opener.openStored(bytes, object.idText), stored.id);
    const { header } = decodeChange(stored.bytes, stored.id) as Change;
    const isUnpaid = !stored.counts && ("wait" in content || !hasRoom(bytes));
    const isDropped = isNeedless(content, object, header.author) || isUnpaid;
    if (isDropped || !("wait" in content)) unopened.drop(stored.no);
    if (isDropped) {
      if (isStub(stored.bytes)) return KNOWN;
      changes.setBytes(stored.no, stubOf(bytes), CHANGE_STUB, 0);
      return { kind: "stored", counts: stored.counts, late: true };
    }
    const ds = "body" in content ? store.datasetNo(content.body.dataset) : 0;
    const kept = isTooLarge ? stored.bytes : bytes;
    if (kept !== stored.bytes || ds !== 0) changes.setBytes(stored.no, kept, kindOf(kept), ds);
    if ("broken" in content) return { ...withoutEffect(stored.id, stored.counts, content.broken, kept), late: true };
    if ("wait" in content) unopened.put(stored.no, object.no, content.wait, content.what);
    else {
      const parents = header.parents.flatMap((parent) => changes.noOf(parent) ?? []);
      fold({ change: { ...stored }, parents, author: header.author, object, ...content });
      store.history.amended(object.no);
    }
    return { kind: "stored", counts: stored.counts, late: true };
  };

  const noteSettled = ({ id, header }: Change): void => {
    if (acl.settles?.({ author: header.author, writer: header.writer, seq: header.seq, id }))
      deps.batch.unsettle(header.author);
  };

  const placeOf = (change: Change, aclPos: number, counts: boolean) => ({
    id: change.id,
    lamport: change.header.lamport,
    parents: change.header.parents,
    seq: change.header.seq,
    aclPos,
    timeMs: change.header.time,
    counts,
  });

  /** Tells those that waited for a change what became of it. */
  const settle = ({ verdict, id }: { verdict: IngestVerdict; id: Uint8Array }, scope: WriteScope): void => {
    if (verdict.kind === "stored" || verdict.kind === "quarantined") arrivals.note("change", id, scope);
    settleDefinitions(scope);
  };
  const settleDefinitions = (scope: WriteScope): void => {
    for (const name of defined.splice(0)) arrivals.note("definition", utf8ToBytes(name), scope);
  };

  const unblocked = createUnblocked({
    news: arrivals,
    arrivals: store.arrivals,
    parked,
    unopened,
    onFailure: deps.onFailure,
    retry(waiting, scope) {
      // It was found good before it was parked, but for what this program, or an earlier one, could not read.
      const admitted = admit(waiting.bytes, scope, waiting.waitKind !== "version");
      settle(admitted, scope);
      return admitted.verdict;
    },
    openAgain(no, scope) {
      const stored = changes.byNo(no)!;
      complete(stored, stored.bytes);
      settleDefinitions(scope);
    },
    giveUp: (waiting) => void quarantine(waiting.id, FOLD_FAULT, waiting.bytes),
    giveUpOpening(no) {
      unopened.drop(no);
      const { id, bytes } = changes.byNo(no)!;
      quarantine(id, FOLD_FAULT, bytes);
    },
  });

  return {
    /**
     * One change; what waited for it is an arrival. `checked` is the SHA-256 of bytes that were found good: an answer for
     * other bytes than these is worth nothing.
     */
    take(bytes: Uint8Array, scope: WriteScope, checked?: Uint8Array): IngestVerdict {
      const admitted = admit(bytes, scope, checked !== undefined && equalBytes(checked, sha256(bytes)));
      settle(admitted, scope);
      return admitted.verdict;
    },
    /** Something threw while this change was taken in, and would again: what waits for it learns that it is refused. */
    giveUp(bytes: Uint8Array, scope: WriteScope): IngestVerdict {
      defined.length = 0;
      const id = changeIdOf(bytes);
      const verdict = quarantine(id, FOLD_FAULT, bytes);
      settle({ verdict, id }, scope);
      return verdict;
    },
    /** Tries one of the changes that waited for what has come. Answers false when there was none to try. */
    tryUnblocked: unblocked.step,
  };
}
