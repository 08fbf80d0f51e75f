import { expect, test } from "bun:test";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import type { SpaceId } from "../../base/ids.ts";
import type { IdentitiesFrame } from "../../protocol/identity.ts";
import { openAccountStore } from "../../store/account-store.ts";
import { createIdentityDirectory } from "./identity-directory.ts";

test("[ACL-20] what the directory says already is not written again, unless a change that waits will make it say something else", async () => {
  const store = openAccountStore(":memory:", {
    onFault: (error) => {
      throw error;
    },
    pending: { kept: 2, shown: 2 },
  });
  let writes = 0;
  let gate = Promise.resolve();
  const changeDirectory: typeof store.changeDirectory = async (work) => {
    writes++;
    await gate;
    return store.changeDirectory(work);
  };
  const [me, other] = [createAccount().id, createAccount().id];
  const directory = createIdentityDirectory({ store: { ...store, changeDirectory }, accountId: me });
  const one = "one" as SpaceId;
  await directory.setMembers(one, [me, other]);
  await directory.setProfile(other, { name: "Otto" });
  expect(writes).toBe(2);
  await directory.setMembers(one, [other, me]);
  await directory.setProfile(other, { name: "Otto" });
  expect(writes).toBe(2);

  const held = Promise.withResolvers<void>();
  gate = held.promise;
  const changes = [directory.setMembers(one, [me]), directory.setMembers(one, [me, other])];
  const renamed = [directory.setProfile(other, { name: "Ottilie" }), directory.setProfile(other, { name: "Otto" })];
  held.resolve();
  await Promise.all([...changes, ...renamed]);
  expect(writes).toBe(6);
  expect(directory.list()).toEqual([{ identity: other, name: "Otto", spaceIds: [one] }]);
  await store.close();
});

test("[ACL-20] an account is listed from the first space that both are in to the last, with what it says of itself once that is read", async () => {
  const store = openAccountStore(":memory:", {
    onFault: (error) => {
      throw error;
    },
    pending: { kept: 2, shown: 2 },
  });
  const [me, other] = [createAccount().id, createAccount().id];
  const directory = createIdentityDirectory({ store, accountId: me });
  const frames: IdentitiesFrame[] = [];
  directory.subscribe((frame) => void frames.push(frame));
  const takeFrames = () => frames.splice(0);
  const [one, two] = ["one" as SpaceId, "two" as SpaceId];

  await directory.setMembers(one, [me, other]);
  expect(takeFrames()).toEqual([{ added: [{ identity: other, spaceIds: [one] }] }]);
  await directory.setProfile(other, { name: "Otto" });
  expect(takeFrames()).toEqual([{ updated: [{ identity: other, name: "Otto", spaceIds: [one] }] }]);
  await directory.setProfile(other, { name: "Otto" });
  expect(takeFrames()).toEqual([]);
  await directory.setMembers(two, [other]);
  await directory.setMembers(one, []);
  expect(takeFrames().map(({ updated }) => updated?.[0]?.spaceIds.toSorted())).toEqual([[one, two], [two]]);
  expect(directory.list()).toEqual([{ identity: other, name: "Otto", spaceIds: [two] }]);
  expect(directory.get(other)).toEqual(directory.list()[0]!);
  expect(() => directory.get(me)).toThrow(expect.objectContaining({ code: "identity.not_found" }));

  await directory.setMembers(two, [me]);
  expect(takeFrames()).toEqual([{ removed: [other] }]);
  expect(directory.list()).toEqual([]);
  expect(() => directory.get(other)).toThrow(expect.objectContaining({ code: "identity.not_found" }));
  await store.close();
});
