/** What an account that does not manage a space can add to its ACL log, which every member keeps permanently. */
import { describe, expect, test } from "bun:test";
import { addMember, createAccount, createAclWorld } from "../../../test/support/worlds/acl-world.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import { composeRecord } from "../compose/compose.ts";
import type { AclOp } from "../record/op.ts";
import { joinProofBytes } from "../record/record.ts";
import { pendingRequestOf } from "./state.ts";

const key = (account: Account) => account.signer.publicKey;

describe("strangers", () => {
  test("[ACL-5] who has no rights fills the log up to a bound, and the owner's next record makes room again", () => {
    const world = createAclWorld();
    const secret = randomBytes(32);
    world.act(world.owner, () => [{ op: "invite", key: createSigner(secret).publicKey, mode: "request" }]);
    const stranger = createAccount();
    const ask = (): string | undefined => {
      const proof = createSigner(secret).sign(
        "invite",
        joinProofBytes(world.state.space!, createSigner(secret).publicKey, key(stranger)),
      );
      return world.forge(stranger.signer, [{ op: "requestJoin", invite: createSigner(secret).publicKey, proof }]);
    };
    const takeBack = () =>
      world.forge(stranger.signer, [
        { op: "requestCancel", request: pendingRequestOf(world.state, key(stranger))!.id },
      ]);
    for (let made = 0; made < 1024; made += 2) {
      expect(ask()).toBeUndefined();
      expect(takeBack()).toBeUndefined();
    }
    expect(ask()).toBe("acl.strangers_full");
    expect(world.state.strangersRecords).toBe(1024);
    addMember(world, createAccount());
    expect(ask()).toBeUndefined();
  });
});

describe("members who do not manage the space", () => {
  for (const role of ["reader", "writer"] as const)
    test(`[ACL-10] a ${role} adds to the log up to a bound, can leave all the same, and has room again after the owner's next record`, () => {
      const world = createAclWorld();
      const [member, other] = [createAccount(), createAccount()];
      for (const account of [member, other]) addMember(world, account, role);
      const profile = (): AclOp => ({
        op: "profile",
        metadata: { keyId: world.state.epochs[0]!.epoch.keyId, box: randomBytes(40) },
      });
      const say = (times: number, signer = member.signer) =>
        world.forge(
          signer,
          Array.from({ length: times }, () => profile()),
        );
      expect(say(128)).toBe("acl.member_full");
      expect(say(100)).toBeUndefined();
      for (let made = 101; made < 127; made += 2) expect(say(1)).toBeUndefined();
      expect(say(1)).toBe("acl.member_full");
      const context = world.contextOf(member);
      const own = world.propose(member, [profile()]);
      expect(() => composeRecord(context, [{ op: "sequenced", pending: own.bytes }])).toThrow(
        "until the owner or an admin",
      );
      expect(say(1, other.signer)).toBeUndefined();
      addMember(world, createAccount());
      expect(say(1)).toBeUndefined();
      for (let made = 2; made < 128; made += 2) expect(say(1)).toBeUndefined();
      expect(say(1)).toBe("acl.member_full");
      expect(world.forge(member.signer, [{ op: "selfRemove" }])).toBeUndefined();
    });

  test("[ACL-10] what the owner gives effect to for a member counts against nobody", () => {
    const world = createAclWorld();
    const member = createAccount();
    addMember(world, member);
    for (let i = 0; i < 150; i++) {
      const metadata = { keyId: world.state.epochs[0]!.epoch.keyId, box: randomBytes(40) };
      const proposal = world.propose(member, [{ op: "profile", metadata }]);
      expect(world.forge(world.owner.signer, [{ op: "sequenced", pending: proposal.bytes }])).toBeUndefined();
    }
  });
});
