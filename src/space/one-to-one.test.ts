import { expect, test } from "bun:test";
import { scratchDir } from "../../test/support/scratch.ts";
import { createAccount, createAclWorld } from "../../test/support/worlds/acl-world.ts";
import { openSpaceIn, registryOf } from "../../test/support/worlds/test-space.ts";
import { addAccounts, leaveSpace } from "../acl/compose/actions.ts";
import { transportSecretOf } from "../acl/record/space-keys.ts";
import { permissionOf } from "../acl/reducer/state.ts";
import { oneToOneGenesis } from "./one-to-one.ts";

const clock = { nowMs: () => 1_800_000_000_000 };
const registry = () => registryOf();

test("[SPACE-4] both sides compute the same space, down to its bytes", () => {
  const [a, b] = [createAccount(), createAccount()];
  expect(oneToOneGenesis(a, b.signer.publicKey)).toEqual(oneToOneGenesis(b, a.signer.publicKey));
  expect(oneToOneGenesis(a, createAccount().signer.publicKey).spaceId).not.toBe(
    oneToOneGenesis(a, b.signer.publicKey).spaceId,
  );
});

test("[SPACE-4] both are writers, nobody owns it, and both hold its key", () => {
  using dir = scratchDir();
  const [a, b] = [createAccount(), createAccount()];
  const genesis = oneToOneGenesis(a, b.signer.publicKey);
  const spaces = [a, b].map((account, index) => {
    const genesis = oneToOneGenesis(account, [b, a][index]!.signer.publicKey);
    return openSpaceIn(`${dir.path}/${index}.db`, genesis, { account, clock, registry });
  });
  const [ofA, ofB] = spaces;
  expect([ofA!.role(), ofB!.role()]).toEqual(["writer", "writer"]);
  expect(ofA!.acl.state.owner).toBeUndefined();
  expect(ofA!.keys.current()!.key).toEqual(ofB!.keys.current()!.key);
  expect(ofA!.keys.transportSecret()).toEqual(transportSecretOf(genesis.spaceId, ofB!.keys.current()!.key));
  expect(ofA!.keys.broken()).toEqual([]);
});

test("[SPACE-4] no record ever follows the root", () => {
  const [a, b] = [createAccount(), createAccount()];
  const world = createAclWorld({ owner: a, genesis: oneToOneGenesis(a, b.signer.publicKey) });
  expect(permissionOf(world.state, b.signer.publicKey)).toBe("writer");
  for (const account of [a, b]) {
    expect(world.forge(account.signer, [{ op: "selfRemove" }])).toBe("acl.one_to_one_fixed");
    const identity = createAccount().id;
    for (const build of [leaveSpace, (c: never) => addAccounts(c, [{ identity, permission: "reader" }])])
      expect(() => build(world.contextOf(account) as never)).toThrow(
        expect.objectContaining({ code: "acl.forbidden" }),
      );
  }
});

test("[SPACE-4] a root that somebody else made, and a pair one does not belong to, are not opened", () => {
  using dir = scratchDir();
  const [a, b, c] = [createAccount(), createAccount(), createAccount()];
  const real = oneToOneGenesis(a, b.signer.publicKey);
  const forged = { ...real, aclRoot: oneToOneGenesis(a, c.signer.publicKey).aclRoot };
  expect(() => openSpaceIn(`${dir.path}/forged.db`, forged, { account: a, clock, registry })).toThrow();
  expect(() => openSpaceIn(`${dir.path}/real.db`, real, { account: c, clock, registry })).toThrow();
});
