import { expect, test } from "bun:test";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import type { AccountId, SpaceId } from "../../base/ids.ts";
import { silentLog } from "../../base/log.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { openAccountStore } from "../../store/account-store.ts";
import { createSpaceClaims } from "./space-claims.ts";

test("[SPACE-5] a flood of claims that nobody can verify makes neither those before it nor those after it be forgotten, nor any of who is known", async () => {
  const fail = (error: unknown): never => {
    throw error;
  };
  const store = openAccountStore(":memory:", { onFault: fail, pending: { kept: 2, shown: 2 } });
  let nowMs = 0;
  const claims = createSpaceClaims({
    account: createAccount(),
    store,
    clock: { nowMs: () => ++nowMs },
    log: silentLog,
    findAclLog: async () => undefined,
    isKnown: (identity) => identity.startsWith("known"),
    isWanted: () => true,
    isHere: () => false,
    leadsThere: async () => false,
    verified: async () => true,
  });
  const add = (adder: string) =>
    claims.add({
      spaceId: `space of ${adder}` as SpaceId,
      adder: adder as AccountId,
      transportSecret: new Uint8Array(32),
    });
  await add("before");
  for (let no = 0; no < LIMITS.claims; no++) await add(no % 8 === 0 ? `known ${no}` : `throwaway ${no}`);
  await add("after");
  const adders = store.spaceClaims().map(({ adder }) => adder);
  expect(adders).toHaveLength(LIMITS.claims);
  expect(adders).toEqual(expect.arrayContaining(["before", "after"]));
  expect(adders.filter((adder) => adder.startsWith("known"))).toHaveLength(LIMITS.claims / 8);
  await store.close();
});
