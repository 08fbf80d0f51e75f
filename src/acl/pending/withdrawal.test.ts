/** Requests to join and their withdrawals, as they wait for the log in whatever order they came. */
import { describe, expect, test } from "bun:test";
import { type Device, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import { mintInvite } from "../compose/actions.ts";
import type { RequestToken } from "../record/invite-token.ts";
import { composeRequest, composeWithdrawal } from "../record/join-request.ts";
import { encodeAclProposal } from "../record/record.ts";
import { currentEpoch } from "../reducer/state.ts";

describe("a request behind the withdrawal of the one before", () => {
  /** An owner's device, and somebody who holds an invite to ask by. */
  const withAsking = (
    run: (world: { owner: Device; asked: PendingOf; again: PendingOf; withdrawal: PendingOf }) => Promise<void>,
  ): Promise<void> =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const joiner = createAccount();
      const seed = randomBytes(32);
      await owner.space.aclService.act((c) => mintInvite(c, seed, { mode: "request" }));
      const { acl, id } = owner.space;
      const { epoch } = currentEpoch(acl.state)!;
      const token: RequestToken = {
        kind: "request",
        spaceId: id,
        seed,
        basis: acl.head().id,
        keyId: epoch.keyId,
        metadataKey: epoch.metadataKey,
        receivers: [devices.owner.signer.publicKey],
      };
      const asking = { account: joiner, token };
      const asked = composeRequest({ ...asking, timeMs: 1 }, undefined);
      await run({
        owner,
        asked,
        again: composeRequest({ ...asking, timeMs: 2 }, undefined),
        withdrawal: composeWithdrawal({ ...asking, timeMs: 3 }, asked.id),
      });
    });
  type PendingOf = ReturnType<typeof composeRequest>;

  const take = async (owner: Device, ...many: PendingOf[]): Promise<string[]> => {
    const verdicts = await owner.space.aclService.takePending(many.map(({ bytes }) => bytes));
    return verdicts.map((verdict) => (verdict.kind === "refused" ? verdict.refusal.code : verdict.kind));
  };
  const requests = (owner: Device) => [...owner.space.acl.state.requests.values()].map(({ id }) => bytesToHex(id));

  test("[ACL-17] it waits until the withdrawal has its position, and takes effect then", () =>
    withAsking(async ({ owner, asked, again, withdrawal }) => {
      expect(await take(owner, asked)).toEqual(["kept"]);
      await owner.space.aclService.sequence();
      expect(requests(owner)).toEqual([bytesToHex(asked.id)]);
      expect(await take(owner, withdrawal)).toEqual(["kept"]);
      expect(await take(owner, again)).toEqual(["kept"]);
      await owner.reopen();
      await owner.space.aclService.sequence();
      expect(requests(owner)).toEqual([bytesToHex(again.id)]);
      expect(owner.space.aclService.pending()).toEqual([]);
    }));

  test("[ACL-17] all that came while the log took nothing in has its effect in order, and the request that was taken back none", () =>
    withAsking(async ({ owner, asked, again, withdrawal }) => {
      expect(await take(owner, asked)).toEqual(["kept"]);
      expect(await take(owner, withdrawal)).toEqual(["kept"]);
      expect(await take(owner, again)).toEqual(["kept"]);
      await owner.reopen();
      await owner.space.aclService.sequence();
      // By the clock of who asked: it had asked again before it took back what it had asked first.
      expect(requests(owner)).toEqual([bytesToHex(again.id)]);
      expect(owner.space.aclService.pending()).toEqual([]);
    }));

  test("[ACL-17] what takes back a request that waits is kept, from its author alone", () =>
    withAsking(async ({ owner, asked, withdrawal }) => {
      const thief = createAccount();
      const { state } = owner.space.acl;
      const base = { space: state.space!, basis: state.head!, time: 4 };
      const foreign = encodeAclProposal({ ...base, ops: [{ op: "requestCancel", request: asked.id }] }, thief.signer);
      expect(await take(owner, withdrawal)).toEqual(["acl.request_not_pending"]);
      expect(await take(owner, asked, foreign)).toEqual(["kept", "acl.request_not_pending"]);
      expect(await take(owner, withdrawal)).toEqual(["kept"]);
      await owner.space.aclService.sequence();
      expect(requests(owner)).toEqual([]);
      expect(owner.space.aclService.pending()).toEqual([]);
    }));

  test("[ACL-17] without a withdrawal it is refused, and one of somebody else's does not help it", () =>
    withAsking(async ({ owner, asked, again }) => {
      await take(owner, asked);
      await owner.space.aclService.sequence();
      expect(await take(owner, again)).toEqual(["acl.request_pending"]);
      const thief = createAccount();
      const { state } = owner.space.acl;
      const base = { space: state.space!, basis: state.head!, time: 4 };
      const foreign = encodeAclProposal({ ...base, ops: [{ op: "requestCancel", request: asked.id }] }, thief.signer);
      expect(await take(owner, foreign, again)).toEqual(["acl.request_of_another", "acl.request_pending"]);
    }));
});
