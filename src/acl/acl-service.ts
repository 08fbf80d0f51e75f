import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { AclConsequences } from "../change/codec/ports.ts";
import type { ChangeEngine } from "../change/space-engine.ts";
import type { Account } from "../crypto/account.ts";
import { refusedAs } from "../protocol/errors.ts";
import { refusal } from "../protocol/refusals.ts";
import type { WriteScope } from "../store/commit/commit-queue.ts";
import type { SpaceStore } from "../store/space-store.ts";
import {
  type AclBuild,
  type AclContext,
  type AclMade,
  type ComposeOptions,
  composeRecord,
  forbiddenBy,
  roleIn,
} from "./compose/compose.ts";
import type { SpaceKeyRing } from "./key-ring.ts";
import type { AclLog, AclMerge } from "./log/acl-log.ts";
import { type AclOffer, readOffer, readOffers } from "./log/offered-records.ts";
import { createPendingBook } from "./pending/pending-book.ts";
import { createPendingService } from "./pending/pending-service.ts";
import { createUnnotified } from "./pending/unnotified.ts";
import type { PendingRecord } from "./record/record.ts";
import type { SpaceHeader } from "./record/space-header.ts";
import { tookEffect } from "./reducer/reducer.ts";
import { createCutOffs } from "./reducer/revocation-cut-off.ts";
import { superseded } from "./reducer/superseded.ts";
import { createTaking } from "./taking.ts";

interface AclServiceDeps {
  spaceId: SpaceId;
  header: SpaceHeader;
  account: Account;
  store: SpaceStore;
  acl: AclLog;
  keys: SpaceKeyRing;
  engine: ChangeEngine;
  clock: Clock;
  /** Called when the ACL has changed and that is durable. It must not throw. */
  changed(): void;
}

/** Builds the record by which the author of a proposal gives effect to it, unless it is superseded. */
export const ownSequence =
  (pending: PendingRecord): AclBuild =>
  ({ state }) => {
    const late =
      tookEffect(state, pending.id) ?? (pending.kind === "acl-proposal" && superseded(state, pending, pending.basis));
    return late ? [] : [{ op: "sequenced", pending: pending.bytes }];
  };

/** Everything that changes a space's ACL. Records, keys, verdicts and waiting changes are updated in one transaction. */
export type AclService = ReturnType<typeof createAclService>;

export function createAclService(deps: AclServiceDeps) {
  const { acl, keys, engine, store, account } = deps;
  const book = createPendingBook({
    header: deps.header,
    accountKey: account.signer.publicKey,
    acl,
    clock: deps.clock,
  });

  const context = (): AclContext => ({
    spaceId: deps.spaceId,
    header: deps.header,
    state: acl.state,
    account,
    keys,
    cutOffs: createCutOffs(store.changes),
    clock: store.changes.highestLamport(),
    timeMs: deps.clock.nowMs(),
  });

  /** Updates what depends on the ACL. */
  const consequencesOf = (merge: AclMerge): AclConsequences | undefined => {
    if (merge.dropped) keys.keep(merge.dropped);
    if (!merge.effects) return undefined;
    book.forgetDeadOfFew();
    const fresh = keys.refresh();
    for (const record of keys.broken()) acl.alarms.raise({ kind: "key", record });
    return { ...merge.effects, keys: fresh };
  };

  const merge = (offer: AclOffer, scope: WriteScope) => {
    const result = acl.merge(offer, scope);
    const consequences = consequencesOf(result);
    return { result, ...(consequences ? { consequences } : {}) };
  };

  /** Runs in one transaction and notifies others once it is durable. */
  const changeAcl = async <T>(
    run: (scope: WriteScope) => { result: T; consequences?: AclConsequences },
  ): Promise<T> => {
    let isChanged = false;
    const result = await engine.changeAcl((scope) => {
      const done = run(scope);
      isChanged = done.consequences !== undefined;
      return done;
    });
    if (isChanged) deps.changed();
    return result;
  };

  const { put: putUnnotified, ...unnotified } = createUnnotified({
    accountKey: account.signer.publicKey,
    acl,
    engine,
    table: store.unnotified,
  });

  /** Takes in one record of this account. */
  const append = (made: AclMade, scope: WriteScope): AclConsequences | undefined => {
    putUnnotified(made);
    const { result, consequences } = merge(readOffer([made.bytes], acl.has), scope);
    if (result.kind !== "extended") throw forbiddenBy(context(), result.refusal!);
    return consequences;
  };

  const takeOffers = createTaking({ acl, keys, changeAcl, merge, consequencesOf, write: engine.background });

  for (const record of keys.broken()) acl.alarms.raise({ kind: "key", record });

  const pending = createPendingService({
    spaceId: deps.spaceId,
    account,
    acl,
    engine,
    clock: deps.clock,
    book,
    context,
    changeAcl,
    append,
  });

  return {
    /** What builders see now. Only for reading; to act, use the functions here. */
    context,

    /** Takes in records of the log that somebody offers, in their order. The first may follow any record that is here. */
    async take(records: readonly Uint8Array[]): Promise<AclMerge> {
      const [merged] = await takeOffers(await readOffers([records], acl.has));
      return merged!;
    },

    /**
     * Does the same for records that anybody may have put one behind the other, so each is judged by itself. All are
     * taken in one transaction with one notification: nobody may mistake an earlier state of a membership that ended and
     * began again for the present one.
     */
    async takeEach(records: readonly Uint8Array[]): Promise<AclMerge[]> {
      const offers = await readOffers(
        records.map((bytes) => [bytes]),
        acl.has,
      );
      return takeOffers(offers);
    },

    /**
     * Acts at once, without asking anybody: an owner's device does this when there is no network to put records in order.
     * Resolves to undefined when nothing had to be done. Throws `acl.forbidden` for everybody else.
     */
    act: (build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> =>
      changeAcl((scope) => {
        const now = context();
        const ops = build(now);
        if (ops.length === 0 && !options?.rotate) return { result: undefined };
        if (roleIn(now) !== "owner")
          throw refusedAs("acl.forbidden", { spaceId: deps.spaceId, role: roleIn(now) }, refusal("act.owners_device"));
        const made = composeRecord(now, ops, options);
        const consequences = append(made, scope);
        return { result: made, ...(consequences ? { consequences } : {}) };
      }),

    /**
     * Builds the record that would follow the head, without taking it in. The caller appends it to the network's log
     * behind what is here and takes it in (`take`) once it stands there; when somebody was faster, the caller builds it
     * again. Returns undefined when nothing has to be done.
     */
    draft(build: AclBuild, options?: ComposeOptions): AclMade | undefined {
      const now = context();
      const ops = build(now);
      return ops.length === 0 && !options?.rotate ? undefined : composeRecord(now, ops, options);
    },

    ...pending,
    ...unnotified,
  };
}
