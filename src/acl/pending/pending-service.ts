import { bytesToHex } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import type { AclConsequences } from "../../change/codec/ports.ts";
import type { ChangeEngine } from "../../change/space-engine.ts";
import type { Account } from "../../crypto/account.ts";
import { type Refusal, refusal } from "../../protocol/refusals.ts";
import type { WriteScope } from "../../store/commit/commit-queue.ts";
import {
  type AclBuild,
  type AclContext,
  type AclMade,
  composeProposal,
  composeRecord,
  forbiddenBy,
} from "../compose/compose.ts";
import type { AclLog } from "../log/acl-log.ts";
import { readPending } from "../log/offered-records.ts";
import { type HeldPending, MAX_PENDING } from "../log/pending.ts";
import { isJoinRequest } from "../record/join-request.ts";
import type { AclOp } from "../record/op.ts";
import { canManage } from "../record/permission.ts";
import { decodePending, type PendingRecord } from "../record/record.ts";
import { tookEffect } from "../reducer/reducer.ts";
import { permissionOf } from "../reducer/state.ts";
import type { PendingBook } from "./pending-book.ts";
import { keysOfBranch } from "./sequence.ts";

/** How long a device lets another device of the owner propose its own record again. */
const OTHERS_TURN_MS = 10 * 60_000;

/** What became of a proposal that somebody passed on. */
export type PendingVerdict = { kind: "kept" | "known" } | { kind: "refused"; refusal: Refusal };

interface PendingServiceDeps {
  spaceId: string;
  account: Account;
  acl: AclLog;
  engine: ChangeEngine;
  clock: Clock;
  book: PendingBook;
  context(): AclContext;
  /** Runs in one transaction and notifies the listeners once it is durable. */
  changeAcl<T>(run: (scope: WriteScope) => { result: T; consequences?: AclConsequences }): Promise<T>;
  /** Takes in one record of this account. */
  append(made: AclMade, scope: WriteScope): AclConsequences | undefined;
}

const FULL = refusal("acl.pending_full");

/** What waits behind another record of its author. */
const BEHIND_OWN: ReadonlySet<string> = new Set(["acl.behind_withdrawal", "acl.behind_request"]);

const isFarewell = ({ op }: AclOp): boolean => op === "selfRemove" || op === "requestCancel";

/** Records that wait until the owner's devices give them their position (ACL-15): how they are proposed, passed on and sequenced. */
export function createPendingService(deps: PendingServiceDeps) {
  const { acl, engine, account, book, context, changeAcl, append } = deps;

  /** Sequences one pending record. */
  const sequenceOne = (
    pending: PendingRecord,
    scope: WriteScope,
  ): { result: { progress: boolean; made?: Uint8Array }; consequences?: AclConsequences } => {
    const plan = book.sequencer()(pending);
    if ("wait" in plan) return { result: { progress: false } };
    acl.pending.drop(pending.id);
    if ("drop" in plan) return { result: { progress: true } };
    const { ops, minClock, positioned, parts } = plan.compose();
    // The plan used a short stand-in for the branch; with a hostile branch the whole record may be invalid.
    if (ops.length > 0 && book.faultOf(ops, minClock)) return { result: { progress: true } };
    for (const part of parts) acl.pending.put(part, deps.clock.nowMs(), true);
    const now = context();
    const sideKeys = keysOfBranch(now, positioned);
    if (ops.length + sideKeys.length === 0) return { result: { progress: true } };
    const made = composeRecord(now, ops, { sideKeys, rotate: sideKeys.length > 0, minClock });
    const consequences = append(made, scope);
    return { result: { progress: true, made: made.bytes }, ...(consequences ? { consequences } : {}) };
  };

  /** A record that another device of the owner made on a lost branch is first left to that device. */
  const isOurTurn = ({ pending, receivedMs }: HeldPending): boolean => {
    const isOfOther = pending.kind === "acl" && book.isOwn(pending) && !acl.stoodHere(pending.id);
    return !isOfOther || deps.clock.nowMs() >= receivedMs + OTHERS_TURN_MS;
  };

  /** Tells the log and what waits from any others. */
  const stateOf = (held: readonly HeldPending[]): string =>
    [acl.head().id, ...held.map(({ pending }) => pending.id)].map(bytesToHex).join(" ");

  /**
   * Forgets records that wait in vain: the log made them impossible, or the changes that named them found their position.
   */
  const forgetDead = async (): Promise<void> => {
    const forget = await book.findDead();
    if (forget) await engine.changeAcl(() => ({ result: forget() }));
  };

  return {
    /**
     * Asks the owner's devices: the proposal is kept here until they have decided, and passed on. Resolves to undefined
     * in the cases of `draft`.
     */
    propose: (build: AclBuild): Promise<AclMade | undefined> =>
      engine.changeAcl(() => {
        const now = context();
        const ops = build(now);
        if (ops.length === 0) return { result: undefined };
        const made = composeProposal(now, ops);
        if (book.keep([decodePending(made.bytes)!]).length > 0) throw forbiddenBy(now, FULL);
        return { result: made };
      }),

    /**
     * Keeps records that others pass on for the owner's devices: proposals that could take effect now, requests behind a
     * withdrawal that waits and withdrawals behind their request, and records of lost branches that could, or that members' changes name, with the records
     * before them. Resolves to one verdict for each.
     */
    async takePending(many: readonly Uint8Array[]): Promise<PendingVerdict[]> {
      const offered = await readPending(many.slice(0, MAX_PENDING)); // no device keeps more
      return engine.changeAcl(() => {
        const fresh = offered.flatMap((pending) =>
          pending && !tookEffect(acl.state, pending.id) && !acl.pending.has(pending.id) ? [pending] : [],
        );
        const alive = book.living(fresh);
        const planOf = book.sequencer(alive);
        const plans = new Map(fresh.map((pending) => [pending, planOf(pending)]));
        const isWorthKeeping = (pending: PendingRecord): boolean => {
          const plan = plans.get(pending) ?? planOf(pending);
          if ("wait" in plan && BEHIND_OWN.has(plan.wait.code)) return true;
          return "compose" in plan || alive.isFollowed(pending.id);
        };
        const full = book.keep(
          alive.all().filter((pending) => !acl.pending.has(pending.id) && isWorthKeeping(pending)),
        );
        const result = offered.map((pending): PendingVerdict => {
          if (!pending) return { kind: "refused", refusal: refusal("acl.pending_malformed") };
          const plan = plans.get(pending);
          if (!plan) return { kind: "known" };
          if (acl.pending.has(pending.id)) return { kind: "kept" };
          if (full.includes(pending)) return { kind: "refused", refusal: FULL };
          return { kind: "refused", refusal: "drop" in plan ? plan.drop : "wait" in plan ? plan.wait : FULL };
        });
        return { result };
      });
    },

    /** Forgets this account's own proposals to leave or to take back a request: it has joined again meanwhile. */
    withdrawLeave: (): Promise<void> =>
      engine.changeAcl(() => {
        for (const { pending } of acl.pending.list())
          if (pending.kind === "acl-proposal" && book.isOwn(pending) && pending.ops.every(isFarewell))
            acl.pending.drop(pending.id);
        return { result: undefined };
      }),

    /** Whether `sequence` may find something to do. */
    hasWork: (): boolean => acl.pending.list().length > 0 || book.namedAgain().length > 0,

    forgetDead,

    /** The pending records, to be passed on. */
    pending: (): Uint8Array[] => acl.pending.list().map(({ pending }) => pending.bytes),

    /**
     * This account's own proposals that it can now give effect to itself, and the requests to join that it may put into
     * the log, oldest first. Called when its records can be put in order; each gets a record of its own (`ownSequence`).
     * Forgets those that can never take effect any more.
     */
    ownProposals: (): Promise<PendingRecord[]> =>
      engine.changeAcl(() => {
        const manages = canManage(permissionOf(acl.state, account.signer.publicKey));
        const own = acl.pending
          .list()
          .filter(
            ({ pending }) =>
              pending.kind === "acl-proposal" && (book.isOwn(pending) || (manages && isJoinRequest(pending))),
          );
        const planOf = book.sequencer(undefined, book.ownFaultOf);
        const result = own.flatMap(({ pending }) => {
          const plan = planOf(pending);
          if ("drop" in plan) acl.pending.drop(pending.id);
          return "compose" in plan ? [pending] : [];
        });
        return { result };
      }),

    /**
     * On an owner's device: gives effect to the pending records, one record each, and forgets those that can never take
     * effect. Resolves to the records made; on other devices to none. A record that another device of the owner made on a
     * lost branch is first left to that device, so that the two do not fork the log again over it. Call it after a
     * session with a peer, and in every round.
     */
    async sequence(): Promise<Uint8Array[]> {
      const made: Uint8Array[] = [];
      if (permissionOf(acl.state, account.signer.publicKey) !== "owner") return made;
      if (book.namedAgain().length > 0) await changeAcl(() => ({ result: book.keep(book.namedAgain()) }));
      const begun = new Set<string>();
      for (let progress = true; progress; ) {
        progress = false;
        await forgetDead(); // otherwise each record of a long branch would be judged again for every record that is forgotten
        const held = acl.pending.list();
        // One that was dropped waits again where another that may take effect follows it.
        const asItIs = stateOf(held);
        if (begun.has(asItIs)) return made;
        begun.add(asItIs);
        for (let at = 0; ; at++) {
          at = await book.nextDue(held, at, isOurTurn);
          const pending = held[at]?.pending;
          if (!pending) break;
          if (permissionOf(acl.state, account.signer.publicKey) !== "owner") return made;
          const done = await changeAcl((scope) => sequenceOne(pending, scope));
          if (done.made) made.push(done.made);
          progress ||= done.progress;
        }
      }
      return made;
    },
  };
}
