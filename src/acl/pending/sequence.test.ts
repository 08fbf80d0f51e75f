/** How the owner's device gives members' records a position in the log. */
import { describe, expect, test } from "bun:test";
import {
  type AclWorld,
  addMember,
  createAccount,
  createAclWorld,
  expectRefused,
} from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import { refusal } from "../../protocol/refusals.ts";
import { createdSpaceGenesis } from "../../space/space.ts";
import { joinByInvite, mintInvite } from "../compose/actions.ts";
import type { AclOp } from "../record/op.ts";
import {
  type AclRecord,
  decodeAclRecord,
  decodePending,
  encodeAclProposal,
  encodeAclRecord,
  type PendingRecord,
} from "../record/record.ts";
import { decodeSpaceHeader } from "../record/space-header.ts";
import { tryAclOps } from "../reducer/reducer.ts";
import { createSequencer, heldRecords } from "./sequence.ts";

const clock = { nowMs: () => 1_800_000_000_000 };
const key = (account: Account) => account.signer.publicKey;
const fresh = () => createSigner(randomBytes(32)).publicKey;

describe("what the owner sequences", () => {
  const invite = (): AclOp => ({ op: "invite", key: fresh(), mode: "request" });
  /** So many records of the owner's that follow the log's head, each the one before. */
  const branchOf = (world: AclWorld, count: number): AclRecord[] => {
    const base = { space: world.state.space!, time: 1, ops: [invite()] };
    const branch: AclRecord[] = [];
    for (let clock = 1; clock <= count; clock++) {
      const prev = branch.at(-1)?.id ?? world.state.head!;
      branch.push(decodeAclRecord(encodeAclRecord({ ...base, prev, clock }, world.owner.signer).bytes)!);
    }
    return branch;
  };

  test("[ACL-15] a proposal takes effect once, by its author's rights, known by its own id", () => {
    const world = createAclWorld();
    const [admin, writer] = [createAccount(), createAccount()];
    addMember(world, admin, "admin");
    addMember(world, writer);
    const proposal = world.propose(admin, [invite()]);
    const op: AclOp = { op: "sequenced", pending: proposal.bytes };
    expect(world.forge(world.owner.signer, [op])).toBeUndefined();
    expect([...world.state.invites.values()].map(({ id, author }) => [bytesToHex(id), bytesToHex(author)])).toEqual([
      [bytesToHex(proposal.id), bytesToHex(key(admin))],
    ]);
    expectRefused(world, "acl.took_effect", [op]);
    const byWriter: AclOp = { op: "sequenced", pending: world.propose(writer, [invite()]).bytes };
    expectRefused(world, "acl.managers_only", [byWriter]);
  });

  test("[ACL-15] the answer to a request, or its withdrawal, waits while the request is in a branch that lost, and takes effect behind it", () => {
    for (const answerOf of [
      (request: Uint8Array): AclOp => ({ op: "requestAccept", request, permission: "reader" }),
      (request: Uint8Array): AclOp => ({ op: "requestDecline", request }),
    ]) {
      const world = createAclWorld();
      const { header } = decodeSpaceHeader(world.genesis.header)!;
      const seed = randomBytes(32);
      world.act(world.owner, (context) => mintInvite(context, seed, { mode: "request" }));
      const asker = createAccount();
      const request = world.propose(asker, joinByInvite(world.contextOf(asker), seed, undefined));
      const base = { space: world.state.space!, time: 1, clock: 5 };
      const recordOf = (prev: Uint8Array, ops: AclOp[]) =>
        decodeAclRecord(encodeAclRecord({ ...base, prev, ops }, world.owner.signer).bytes)!;
      const taken = recordOf(world.state.head!, [{ op: "sequenced", pending: request.bytes }]);
      const answer = recordOf(taken.id, [answerOf(request.id)]);
      expect(world.forge(world.owner.signer, [invite()])).toBeUndefined();
      const cancel: AclOp = { op: "requestCancel", request: request.id };
      const withdrawal = decodePending(world.propose(asker, [cancel]).bytes)!;
      const planOf = (pending: PendingRecord, ...held: PendingRecord[]) =>
        createSequencer({
          state: world.state,
          held: heldRecords(held),
          isNamed: () => false,
          faultOf(ops, minClock) {
            const { space, owner, clocks } = world.state;
            const clock = Math.max(clocks.at(-1)!, minClock);
            const tried = tryAclOps(world.state, header, { space: space!, author: owner!, clock, ops });
            return "fault" in tried ? tried.fault : undefined;
          },
        })(pending);
      const behind = { wait: refusal("acl.behind_request") };
      expect(planOf(answer, taken, answer)).toEqual(behind);
      expect(planOf(withdrawal, taken, withdrawal)).toEqual(behind);
      expect(planOf(withdrawal, withdrawal)).toEqual({ drop: refusal("acl.request_not_pending") });
      expect(world.forge(world.owner.signer, [{ op: "sequenced", pending: request.bytes }])).toBeUndefined();
      expect(planOf(answer, taken, answer)).toHaveProperty("compose");
      expect(planOf(withdrawal, taken, withdrawal)).toHaveProperty("compose");
    }
  });

  test("[ACL-15] the author of a proposal gives effect to it itself, once, and to nobody else's", () => {
    const world = createAclWorld();
    const [admin, other] = [createAccount(), createAccount()];
    addMember(world, admin, "admin");
    addMember(world, other, "admin");
    const proposal = world.propose(admin, [invite()]);
    const op: AclOp = { op: "sequenced", pending: proposal.bytes };
    expect(world.forge(other.signer, [op])).toBe("acl.owner_only");
    expect(world.forge(admin.signer, [op])).toBeUndefined();
    expect([...world.state.invites.values()].map(({ id }) => bytesToHex(id))).toEqual([bytesToHex(proposal.id)]);
    expect(world.forge(admin.signer, [op])).toBe("acl.took_effect");
    expectRefused(world, "acl.took_effect", [op]);
    const record = world.records.at(-1)!;
    expect(world.forge(admin.signer, [{ op: "sequenced", pending: record.bytes }])).toBe("acl.owner_only");
  });

  test("[ACL-15] nothing else than a pending of this space, on a head that is known, is sequenced", () => {
    const world = createAclWorld();
    const elsewhere = createAclWorld({ owner: world.owner, genesis: createdSpaceGenesis(world.owner, clock) });
    const sequence = (pending: Uint8Array): AclOp[] => [{ op: "sequenced", pending }];
    const foreign = elsewhere.propose(world.owner, [invite()]);
    expectRefused(world, "acl.sequenced_of_another_space", sequence(foreign.bytes));
    expectRefused(world, "acl.sequenced_malformed", sequence(randomBytes(80)));
    const base = { space: world.state.space!, time: 1 };
    const unheard = encodeAclProposal({ ...base, basis: randomBytes(32), ops: [invite()] }, world.owner.signer);
    expectRefused(world, "acl.basis_unknown", sequence(unheard.bytes));
    const nested = world.propose(world.owner, sequence(world.propose(world.owner, [invite()]).bytes));
    expectRefused(world, "acl.sequenced_nested", sequence(nested.bytes));
    expectRefused(world, "acl.took_effect", sequence(world.records[0]!.bytes));
  });

  test("[ACL-11] a record of a lost branch stands after what it followed, before what came there", () => {
    const world = createAclWorld();
    const base = { space: world.state.space!, prev: world.state.head!, time: 1 };
    const lost = encodeAclRecord({ ...base, clock: 7, ops: [invite()] }, world.owner.signer);
    const next = encodeAclRecord(
      { ...base, prev: lost.id, clock: 9, ops: [{ op: "requestDecline", request: randomBytes(32) }] },
      world.owner.signer,
    );
    world.act(world.owner, () => [invite()]);
    const alias = (id: Uint8Array, prev: Uint8Array, at: number): AclOp => ({ op: "alias", id, prev, clock: at });
    const faultOf = (ops: AclOp[]) => world.forge(world.owner.signer, ops, { clock: 9 });
    expect(faultOf([alias(next.id, lost.id, 9)])).toBe("acl.prev_unplaced");
    expect(faultOf([alias(lost.id, base.prev, 10)])).toBe("acl.clock_misfit");
    expect(faultOf([{ op: "sequenced", pending: lost.bytes }, alias(next.id, lost.id, 9)])).toBeUndefined();
    const [first, second] = [lost, next].map(({ id }) => world.state.positions.get(bytesToHex(id))!);
    expect([first!.clock, second!.clock]).toEqual([7, 9]);
    for (const { pos } of [first!, second!]) {
      expect(pos).toBeGreaterThan(0);
      expect(pos).toBeLessThan(1);
    }
    expect(world.state.invites.size).toBe(2);
    expectRefused(world, "acl.took_effect", [alias(lost.id, base.prev, 7)]);
  });

  test("[ACL-11] of a long branch each record is tried by itself, however many stand before it", () => {
    const world = createAclWorld();
    const branch = branchOf(world, 500);
    let tried = 0;
    const plan = createSequencer({
      state: world.state,
      held: heldRecords(branch),
      isNamed: () => false,
      faultOf(ops) {
        tried += ops.length;
        return undefined;
      },
    });
    const last = branch.map(plan).at(-1)!;
    expect(tried).toBeLessThan(3 * branch.length);
    const { ops, positioned } = (last as { compose(): { ops: AclOp[]; positioned: unknown[] } }).compose();
    expect([ops.length, positioned.length]).toEqual([500, 500]);
    // It can be the owner's next record: it gives each of those before it a position.
    expect(world.forge(world.owner.signer, ops.slice(-1), { clock: 500 })).toBe("acl.prev_unplaced");
    expect(world.forge(world.owner.signer, ops, { clock: 500 })).toBeUndefined();
    expect(branch.every(({ id }) => world.state.positions.has(bytesToHex(id)))).toBe(true);
  });

  test("[ACL-11] a branch that is longer than a record holds gets its positions by several", () => {
    const world = createAclWorld();
    const branch = branchOf(world, 2100);
    const last = branch.at(-1)!;
    for (let left = 5; left > 0 && !world.state.positions.has(bytesToHex(last.id)); left--) {
      const port = { state: world.state, held: heldRecords(branch), isNamed: () => false, faultOf: () => undefined };
      const plan = createSequencer(port)(last) as { compose(): { ops: AclOp[]; minClock: number; parts: unknown[] } };
      const { ops, minClock, parts } = plan.compose();
      expect(world.forge(world.owner.signer, ops, { clock: minClock })).toBeUndefined();
      expect(parts).toEqual(world.state.positions.has(bytesToHex(last.id)) ? [] : [last]);
    }
    expect(branch.every(({ id }) => world.state.positions.has(bytesToHex(id)))).toBe(true);
  });

  test("[ACL-11] a branch whose clocks go back has no position, nor has what follows it", () => {
    const world = createAclWorld();
    const base = { space: world.state.space!, time: 1, ops: [invite()] };
    const record = (prev: Uint8Array, clock: number) =>
      decodeAclRecord(encodeAclRecord({ ...base, prev, clock }, world.owner.signer).bytes)!;
    const first = record(world.state.head!, 9);
    const second = record(first.id, 8);
    const third = record(second.id, 10);
    const held = heldRecords([first, second, third]);
    const plan = createSequencer({ state: world.state, held, isNamed: () => true, faultOf: () => undefined });
    expect([first, second, third].map((one) => Object.keys(plan(one)))).toEqual([["compose"], ["drop"], ["drop"]]);
  });
});
