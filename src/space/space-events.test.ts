import { expect, test } from "bun:test";
import { withDevices } from "../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../test/support/worlds/acl-world.ts";
import { addAccounts } from "../acl/compose/actions.ts";
import { createSpaceEvents } from "./space-events.ts";

test("a commit or a move of the ACL is heard by all who listen to every space, then by those who listen to this one", async () => {
  await withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    const events = createSpaceEvents();
    const heard: string[] = [];
    const nameOf = (space: unknown): string => (space === one.space ? "one" : "two");
    for (const { space } of [one, two]) events.follow(space);
    one.space.events.on("committed", ({ touched }) => heard.push(`one itself: ${touched.length}`));
    one.space.events.on("aclChanged", () => heard.push("one itself: acl"));
    events.on("committed", (space, { touched }) => heard.push(`${nameOf(space)}: ${touched.length}`));
    events.on("aclChanged", (space) => heard.push(`${nameOf(space)}: acl`));
    await one.write("a", "1");
    await two.write("b", "2");
    expect(heard.splice(0)).toEqual(["one: 1", "one itself: 1", "two: 1"]);
    const added = { identity: createAccount().id, permission: "writer" } as const;
    await one.space.aclService.act((context) => addAccounts(context, [added]));
    expect(heard.filter((what) => what.endsWith("acl"))).toEqual(["one: acl", "one itself: acl"]);
  });
});
