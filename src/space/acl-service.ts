import type { Clock } from "../base/clock.ts";
import type { SpaceId } from "../base/ids.ts";
import type { ChangeEngine } from "../change/change-engine.ts";
import type { AclConsequences } from "../change/ports.ts";
import { fail } from "../protocol/errors.ts";
import type { WriteScope } from "../store/commit-queue.ts";
import type { SpaceStore } from "../store/space-store.ts";
import type { Account } from "./account.ts";
import {
  type AclContext,
  type AclMade,
  type ComposeOptions,
  composeProposal,
  composeRecord,
  roleIn,
} from "./acl-compose.ts";
import { createPins } from "./acl-cuts.ts";
import type { AclLog, AclMerge } from "./acl-log.ts";
import type { AclOp } from "./acl-op.ts";
import { type AclUnit, decodeAclUnit } from "./acl-record.ts";
import { tryAclOps, unitKnown } from "./acl-reducer.ts";
import { sequenceProposal } from "./acl-sequence.ts";
import { permissionOf } from "./acl-state.ts";
import type { SpaceKeyRing } from "./key-ring.ts";
import type { SpaceHeader } from "./space-header.ts";

/** Builds ops for the state of the moment; see acl-actions.ts. */
export type AclBuild = (context: AclContext) => readonly AclOp[];

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
    const fresh = keys.refresh();
    for (const record of keys.broken()) acl.alarms.raise({ kind: "key", record });
    return { ...merge.move, keys: fresh };
  };

  const merge = (chain: readonly Uint8Array[], scope: WriteScope) => {
    const result = acl.merge(chain, scope);
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

  /** Signs and takes in one record of this account. */
  const append = (made: AclMade, scope: WriteScope): AclConsequences | undefined => {
    const { result, consequences } = merge([made.bytes], scope);
    if (result.kind !== "extended")
      throw fail("acl.forbidden", { spaceId: deps.spaceId, role: roleIn(context()) }, result.reason);
    return consequences;
  };

  /** Whether changes of members wait for this record or stand where it stood. */
  const isNamed = (recordId: Uint8Array): boolean =>
    acl.wasDropped(recordId) ||
    store.parked.waitingFor("acl", recordId).some(({ author }) => permissionOf(acl.state, author) !== "none");

  /** Why the owner could not give effect to a unit now. */
  const unitFault = (unit: AclUnit): string | undefined => {
    const { state } = acl;
    if (!state.owner) return "the space has no owner";
    const clock = Math.max(state.clocks.at(-1)!, unit.kind === "acl" ? unit.clock : 0);
    const ops: AclOp[] = [{ op: "sequenced", unit: unit.bytes }];
    const tried = tryAclOps(state, deps.header, { space: state.space!, author: state.owner, clock, ops });
    return "fault" in tried ? tried.fault : undefined;
  };

  /** False when there is no room even after those were dropped that can no longer take effect. */
  const keepUnit = (unit: AclUnit): boolean => {
    if (acl.units.put(unit)) return true;
    for (const held of acl.units.list()) if (unitFault(held)) acl.units.drop(held.id);
    return acl.units.put(unit);
  };

  for (const record of keys.broken()) acl.alarms.raise({ kind: "key", record });

  return {
    /** What builders see now. For reading; to act, use the functions here. */
    context,

    /** Takes in records of the chain that somebody offers, in their order, from anything that is here on. */
    take: (chain: readonly Uint8Array[]): Promise<AclMerge> => move((scope) => merge(chain, scope)),

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
          throw fail(
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
        if (!keepUnit(decodeAclUnit(made.bytes)!)) throw fail("acl.forbidden", { spaceId: deps.spaceId }, FULL);
        return { result: made };
      }),

    /** Keeps a proposal of somebody else, if it could take effect now. */
    takeUnit: (bytes: Uint8Array): Promise<UnitVerdict> =>
      engine.moveAcl((): { result: UnitVerdict } => {
        const unit = decodeAclUnit(bytes);
        if (!unit) return { result: { kind: "refused", reason: "it is neither a record nor a proposal" } };
        if (acl.units.has(unit.id) || unitKnown(acl.state, unit.id)) return { result: { kind: "known" } };
        const reason = unitFault(unit) ?? (keepUnit(unit) ? undefined : FULL);
        return { result: reason ? { kind: "refused", reason } : { kind: "kept" } };
      }),

    /** What waits for the owner's devices, to be handed on. */
    units: (): Uint8Array[] => acl.units.list().map(({ bytes }) => bytes),

    /**
     * On an owner's device: gives effect to what waits, one record each, and forgets what never can. Answers the records
     * made. On other devices nothing happens.
     */
    async sequence(): Promise<Uint8Array[]> {
      const made: Uint8Array[] = [];
      for (let progress = true; progress; ) {
        progress = false;
        for (const unit of acl.units.list()) {
          if (permissionOf(acl.state, account.signer.publicKey) !== "owner") return made;
          const record = await move((scope) => {
            const answer = sequenceProposal(context(), unit, isNamed);
            if ("wait" in answer) return { result: undefined };
            if ("drop" in answer) {
              acl.units.drop(unit.id);
              return { result: undefined };
            }
            const consequences = append(answer.made, scope);
            return { result: answer.made.bytes, ...(consequences ? { consequences } : {}) };
          });
          if (!record) continue;
          made.push(record);
          progress = true;
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
