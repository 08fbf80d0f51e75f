import { expect, test } from "bun:test";
import { type AclWorld, createAccount, createAclWorld } from "../../../test/support/worlds/acl-world.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { createSigner } from "../../crypto/sign.ts";
import {
  addAccounts,
  declineRequest,
  joinByInvite,
  leaveSpace,
  mintGuestKey,
  mintInvite,
  removeAccounts,
  revokeGuestKey,
  revokeInvites,
} from "../compose/actions.ts";
import { recordsFor } from "./audience.ts";

/** The owner lets in somebody new: what came after the ends that the test is about. */
const goOn = (world: AclWorld): void =>
  void world.act(world.owner, (c) => addAccounts(c, [{ identity: createAccount().id, permission: "reader" }]));

test("[ACL-6] the ACL log is told whole to those who read, up to its end to who left or held a token that ended, and to nobody else", () => {
  const world = createAclWorld();
  const { owner } = world;
  const shown = ({ publicKey }: { publicKey: Uint8Array }): number => recordsFor(world.state, [publicKey]);
  const [removed, left, declined, stays] = [createAccount(), createAccount(), createAccount(), createAccount()];
  const [asking, open, guest] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const length = () => world.records.length;
  const endOf = (act: () => unknown): number => {
    act();
    const end = length();
    goOn(world);
    return end;
  };

  for (const { id } of [removed, left, stays])
    world.act(owner, (c) => addAccounts(c, [{ identity: id, permission: "writer" }]));
  world.act(owner, (c) => mintInvite(c, asking, { mode: "request" }));
  world.act(declined, (c) => joinByInvite(c, asking, undefined));
  expect(shown(declined.signer)).toBe(0);
  const ends = new Map<Account, number>([
    [removed, endOf(() => world.act(owner, (c) => removeAccounts(c, [removed.id])))],
    [left, endOf(() => world.act(left, leaveSpace))],
  ]);
  world.act(owner, (c) => declineRequest(c, declined.id));
  expect(shown(declined.signer)).toBe(0);
  for (const [account, end] of ends) expect(shown(account.signer)).toBe(end);

  world.act(owner, (c) => mintInvite(c, open, { mode: "open", permission: "reader" }));
  world.act(owner, (c) => mintGuestKey(c, guest));
  const tokens = [open, guest].map(createSigner);
  for (const signer of [stays.signer, owner.signer, ...tokens]) expect(shown(signer)).toBe(length());
  expect(shown(createSigner(asking))).toBe(0);
  const ofInvite = endOf(() => world.act(owner, revokeInvites));
  const ofGuest = endOf(() => world.act(owner, revokeGuestKey));
  expect(tokens.map(shown)).toEqual([ofInvite, ofGuest]);
  for (const [account, end] of ends) expect(shown(account.signer)).toBe(end);
  expect(shown(createAccount().signer)).toBe(0);
  expect(recordsFor(world.state, [])).toBe(0);
  expect(shown(stays.signer)).toBe(length());
  expect(recordsFor(world.state, [left.signer.publicKey, createSigner(open).publicKey])).toBe(ofInvite);
});
