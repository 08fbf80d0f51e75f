import { bytesToHex, equalBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { AclConsequences } from "../change/ports.ts";
import type { ChangeEngine } from "../change/space-engine.ts";
import type { Account } from "../crypto/account.ts";
import { svcError } from "../protocol/errors.ts";
import type { WriteScope } from "../store/commit-queue.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { AclLog, AclMerge } from "./acl-log.ts";
import {
  type AclContext,
  type AclMade,
  type ComposeOptions,
  composeProposal,
  composeRecord,
  roleIn,
} from "./compose.ts";
import type { SpaceKeyRing } from "./key-ring.ts";
import { type AclOffer, readAclChain, readAclChains, readAclUnits } from "./offered-records.ts";
import type { AclOp } from "./op.ts";
import { decodeAclUnit, type PendingRecord } from "./record.ts";
import { tryAclOps, unitKnown } from "./reducer.ts";
import { createPins } from "./revocation-cut-off.ts";
import { isFollowed, keysOfBranch, type SequencePort, sequenceProposal } from "./sequence.ts";
import type { SpaceHeader } from "./space-header.ts";
import { permissionOf } from "./state.ts";
import { superseded } from "./superseded.ts";

/** Builds ops for the state of the moment; see acl-actions.ts. */
export type AclBuild = (context: AclContext) => readonly AclOp[];

/** How long a device waits for another one to propose its own record again. */
const OTHERS_TURN_MS = 10 * 60_000;

/** What became of a proposal that somebody handed on. */
export type UnitVerdict = { kind: "kept" | "known" } | { kind: "refused"; reason: string };

interface AclServiceDeps {
  spaceId: SpaceId;
  header: SpaceHeader;
  account: Account;
  store: SpaceStore;
  acl: AclLog;
  keys: SpaceKeyRing;
  engine: ChangeEngine;
  clock: Clock;
}

/** Builds the record by which the author of a proposal gives effect to it, unless it was decided otherwise meanwhile. */
export const ownSequence =
  (unit: PendingRecord): AclBuild =>
  ({ state }) => {
    const late = unitKnown(state, unit.id) ?? (unit.kind === "acl-proposal" && superseded(state, unit, unit.basis));
    return late ? [] : [{ op: "sequenced", unit: unit.bytes }];
  };

const FULL = "too much waits for the space's owner already; try again once an owner's device was online";

/** Everything that moves a space's ACL. Records, keys, verdicts and waiting changes move in one transaction. */
export type AclService = ReturnType<typeof createAclService>;

export function createAclService(deps: AclServiceDeps) {
  const { acl, keys, engine, store, account } = deps;
  const listeners = new Set<() => void>();

  const context = (): AclContext => ({
    spaceId: deps.spaceId,
    header: deps.header,
    state: acl.state,
    account,
    keys,
    pins: createPins(store.changes),
    clock: highestLamport(),
    timeMs: deps.clock.nowMs(),
  });

  const highestLamport = (): number =>
    store.changes
      .writers()
      .reduce((most, writer) => Math.max(most, store.changes.newestOfWriter(writer.no)?.lamport ?? 0), 0);

  /** Brings what depends on the ACL in step with it. */
  const settle = (merge: AclMerge): AclConsequences | undefined => {
    if (merge.dropped) keys.keep(merge.dropped);
    if (!merge.move) return undefined;
    forgetDeadProposals();
    const fresh = keys.refresh();
    for (const record of keys.broken()) acl.alarms.raise({ kind: "key", record });
    return { ...merge.move, keys: fresh };
  };

  const merge = (offer: AclOffer, scope: WriteScope) => {
    const result = acl.merge(offer, scope);
    const consequences = settle(result);
    return { result, ...(consequences ? { consequences } : {}) };
  };

  /** Runs in one transaction and tells the listeners once it is durable. */
  const move = async <T>(run: (scope: WriteScope) => { result: T; consequences?: AclConsequences }): Promise<T> => {
    let moved = false;
    const result = await engine.moveAcl((scope) => {
      const done = run(scope);
      moved = done.consequences !== undefined;
      return done;
    });
    if (moved) for (const listener of listeners) listener();
    return result;
  };

  /** Takes in one record of this account. */
  const append = (made: AclMade, scope: WriteScope): AclConsequences | undefined => {
    const { result, consequences } = merge(readAclChain([made.bytes], acl.has), scope);
    if (result.kind !== "extended")
      throw svcError("acl.forbidden", { spaceId: deps.spaceId, role: roleIn(context()) }, result.reason);
    return consequences;
  };

  /** Whether changes of members wait for this record or stand where it stood. */
  const isNamed = (recordId: Uint8Array): boolean =>
    acl.dropped(recordId)?.named === true ||
    store.parked.waitingFor("acl", recordId).some(({ author }) => permissionOf(acl.state, author) !== "none");

  const isOwn = (unit: PendingRecord): boolean => equalBytes(unit.author, account.signer.publicKey);

  /** What sequencing would see with these units beside those that wait here. */
  const sequencePort = (more: readonly PendingRecord[] = []): SequencePort => {
    const { state } = acl;
    return {
      state,
      held: [...acl.units.list().map(({ unit }) => unit), ...more],
      isNamed,
      faultOf(ops, minClock) {
        if (!state.owner) return "the space has no owner";
        const clock = Math.max(state.clocks.at(-1)!, minClock);
        const tried = tryAclOps(state, deps.header, { space: state.space!, author: state.owner, clock, ops });
        return "fault" in tried ? tried.fault : undefined;
      },
    };
  };

  /** Why this account's next record could not consist of these ops. */
  const ownFaultOf = (ops: readonly AclOp[]): string | undefined => {
    const { state } = acl;
    const record = { space: state.space!, author: account.signer.publicKey, clock: state.clocks.at(-1)!, ops };
    const tried = tryAclOps(state, deps.header, record);
    return "fault" in tried ? tried.fault : undefined;
  };

  /** Keeps units; when there is no room, those go first that can no longer take effect. Answers what had no room. */
  const keepUnits = (units: readonly PendingRecord[]): PendingRecord[] => {
    const nowMs = deps.clock.nowMs();
    const full = units.filter((unit) => !acl.units.put(unit, nowMs));
    if (full.length === 0) return [];
    const port = sequencePort();
    for (const unit of port.held) if ("drop" in sequenceProposal(port, unit)) acl.units.drop(unit.id);
    return full.filter((unit) => !acl.units.put(unit, nowMs));
  };

  /**
   * Records of lost branches that were forgotten, but that changes which came since name, with those they follow: they
   * wait again. Answers them.
   */
  const namedAgain = (): PendingRecord[] => {
    const again = new Map<string, PendingRecord>();
    for (const lost of acl.units.lost()) {
      const isAwaited = store.parked.waitingFor("acl", lost.id).length > 0;
      let record = isAwaited && isNamed(lost.id) ? lost : undefined;
      for (
        ;
        record && !unitKnown(acl.state, record.id);
        record = record.prev ? acl.units.lostRecord(record.prev) : undefined
      )
        if (!acl.units.has(record.id)) again.set(bytesToHex(record.id), record);
    }
    return [...again.values()];
  };

  /** What the chain has made impossible waits for nobody, and nothing waits for it. */
  const forgetDeadProposals = (): void => {
    const waiting = acl.units.list().filter(({ unit }) => unit.kind === "acl-proposal");
    if (waiting.length === 0) return;
    const port = sequencePort();
    for (const { unit } of waiting) if ("drop" in sequenceProposal(port, unit)) acl.units.drop(unit.id);
  };

  /** Carries out what sequencing one unit takes. */
  const sequenceOne = (
    unit: PendingRecord,
    scope: WriteScope,
  ): { result: { progress: boolean; made?: Uint8Array }; consequences?: AclConsequences } => {
    const plan = sequenceProposal(sequencePort(), unit);
    if ("wait" in plan) return { result: { progress: false } };
    acl.units.drop(unit.id);
    if ("drop" in plan) return { result: { progress: true } };
    for (const part of plan.parts) acl.units.put(part, deps.clock.nowMs(), true);
    const now = context();
    const sideKeys = keysOfBranch(now, plan.placed);
    if (plan.ops.length + sideKeys.length === 0) return { result: { progress: true } };
    const options = { sideKeys, rotate: sideKeys.length > 0, minClock: plan.minClock };
    const made = composeRecord(now, plan.ops, options);
    const consequences = append(made, scope);
    return { result: { progress: true, made: made.bytes }, ...(consequences ? { consequences } : {}) };
  };

  for (const record of keys.broken()) acl.alarms.raise({ kind: "key", record });

  return {
    /** What builders see now. For reading; to act, use the functions here. */
    context,

    /** Takes in records of the chain that somebody offers, in their order, from anything that is here on. */
    async take(chain: readonly Uint8Array[]): Promise<AclMerge> {
      const [offer] = await readAclChains([chain], acl.has);
      return move((scope) => merge(offer!, scope));
    },

    /**
     * The same for records that anybody may have put one behind the other: each is judged by itself. In one transaction,
     * and told once: nobody is to take an earlier state of a membership that ended, and began anew, for the present one.
     */
    async takeEach(records: readonly Uint8Array[]): Promise<AclMerge[]> {
      const offers = await readAclChains(
        records.map((bytes) => [bytes]),
        acl.has,
      );
      return move((scope) => {
        const merges = offers.map((offer) => merge(offer, scope));
        const consequences = merges.flatMap((one) => one.consequences ?? []);
        return {
          result: merges.map(({ result }) => result),
          ...(consequences.length > 0 ? { consequences: joinConsequences(consequences) } : {}),
        };
      });
    },

    /**
     * Acts at once, without asking anybody: what an owner's device does when there is no network to put records in
     * order. Undefined when nothing had to be done. Throws `acl.forbidden` for everybody else.
     */
    act: (build: AclBuild, options?: ComposeOptions): Promise<AclMade | undefined> =>
      move((scope) => {
        const now = context();
        const ops = build(now);
        if (ops.length === 0 && !options?.rotate) return { result: undefined };
        if (roleIn(now) !== "owner")
          throw svcError(
            "acl.forbidden",
            { spaceId: deps.spaceId, role: roleIn(now) },
            "Without a network only the owner's devices extend the ACL; propose it to them",
          );
        const made = composeRecord(now, ops, options);
        const consequences = append(made, scope);
        return { result: made, ...(consequences ? { consequences } : {}) };
      }),

    /**
     * The record that would follow the head, not taken in: to be appended to the network's log behind what is here, and
     * taken (`take`) once it stands there; built anew when somebody was faster. Undefined when nothing has to be done.
     */
    draft(build: AclBuild, options?: ComposeOptions): AclMade | undefined {
      const now = context();
      const ops = build(now);
      return ops.length === 0 && !options?.rotate ? undefined : composeRecord(now, ops, options);
    },

    /** Asks the owner's devices: kept here until they have answered, and handed on. Undefined as for `draft`. */
    propose: (build: AclBuild): Promise<AclMade | undefined> =>
      engine.moveAcl(() => {
        const now = context();
        const ops = build(now);
        if (ops.length === 0) return { result: undefined };
        const made = composeProposal(now, ops);
        if (keepUnits([decodeAclUnit(made.bytes)!]).length > 0)
          throw svcError("acl.forbidden", { spaceId: deps.spaceId }, FULL);
        return { result: made };
      }),

    /**
     * Keeps what others hand on for the owner's devices: proposals that could take effect now, and records of lost
     * branches that could, or that members' changes name, with those before them. Answers one verdict each.
     */
    async takeUnits(many: readonly Uint8Array[]): Promise<UnitVerdict[]> {
      const units = await readAclUnits(many);
      return engine.moveAcl(() => {
        const fresh = units.filter((unit) => unit && !unitKnown(acl.state, unit.id) && !acl.units.has(unit.id));
        const port = sequencePort(fresh as PendingRecord[]);
        const plans = new Map((fresh as PendingRecord[]).map((unit) => [unit, sequenceProposal(port, unit)]));
        const full = keepUnits(
          [...plans].flatMap(([unit, plan]) => ("ops" in plan || isFollowed(port, unit) ? [unit] : [])),
        );
        const result = units.map((unit): UnitVerdict => {
          if (!unit) return { kind: "refused", reason: "it is neither a record nor a proposal" };
          const plan = plans.get(unit);
          if (!plan) return { kind: "known" };
          if (acl.units.has(unit.id)) return { kind: "kept" };
          if (full.includes(unit)) return { kind: "refused", reason: FULL };
          return { kind: "refused", reason: "drop" in plan ? plan.drop : "wait" in plan ? plan.wait : FULL };
        });
        return { result };
      });
    },

    /** Whether `sequence` may find something to do. */
    hasWork: (): boolean => acl.units.list().length > 0 || namedAgain().length > 0,

    /** What waits for the owner's devices, to be handed on. */
    units: (): Uint8Array[] => acl.units.list().map(({ unit }) => unit.bytes),

    /**
     * What this account proposed and could give effect to itself, oldest first, now that its records can be put in order:
     * each by a record of its own (`ownSequence`). What never can any more is forgotten.
     */
    ownProposals: (): Promise<PendingRecord[]> =>
      engine.moveAcl(() => {
        const own = acl.units.list().filter(({ unit }) => unit.kind === "acl-proposal" && isOwn(unit));
        const port = { ...sequencePort(), faultOf: ownFaultOf };
        const result = own.flatMap(({ unit }) => {
          const plan = sequenceProposal(port, unit);
          if ("drop" in plan) acl.units.drop(unit.id);
          return "ops" in plan ? [unit] : [];
        });
        return { result };
      }),

    /**
     * On an owner's device: gives effect to what waits, one record each, and forgets what never can. Answers the records
     * made. On other devices nothing happens. What another of the owner's devices had done on a branch that lost is first
     * left to that device, so that two do not fork the chain again over it. Call it after a meeting, and every round.
     */
    async sequence(): Promise<Uint8Array[]> {
      const made: Uint8Array[] = [];
      if (permissionOf(acl.state, account.signer.publicKey) !== "owner") return made;
      if (namedAgain().length > 0) await move(() => ({ result: keepUnits(namedAgain()) }));
      for (let progress = true; progress; ) {
        progress = false;
        for (const { unit, receivedMs } of acl.units.list()) {
          const ofOthers = unit.kind === "acl" && isOwn(unit) && !acl.dropped(unit.id);
          if (ofOthers && deps.clock.nowMs() < receivedMs + OTHERS_TURN_MS) continue;
          if (permissionOf(acl.state, account.signer.publicKey) !== "owner") return made;
          const done = await move((scope) => sequenceOne(unit, scope));
          if (done.made) made.push(done.made);
          progress ||= done.progress;
        }
      }
      return made;
    },

    /** Called after the ACL has moved. Answers how to stop. */
    onMoved(listener: () => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function joinConsequences(many: readonly AclConsequences[]): AclConsequences {
  const from = many.flatMap(({ repositionFrom }) => repositionFrom ?? []);
  return {
    named: many.flatMap(({ named }) => named),
    cut: many.flatMap(({ cut }) => cut),
    keys: many.some(({ keys }) => keys),
    ...(from.length > 0 ? { repositionFrom: Math.min(...from) } : {}),
  };
}
