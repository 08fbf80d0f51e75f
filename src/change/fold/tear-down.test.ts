import { expect, test } from "bun:test";
import { add, remove, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { ITEMS } from "../../../test/support/worlds/test-space.ts";

const OBJECTS = 60;

test("[CHANGE-8] an object that is back before its rows are torn down keeps them, also where that has begun with others", async () => {
  await withDevices(async (devices) => {
    const [first, two] = [devices.open("first", devices.owner), devices.open("two", devices.owner)];
    const account = createAccount();
    await add(first, account);
    const member = devices.open("member", account);
    for (const device of [two, member]) await device.space.aclService.take(first.aclLog());
    const set = { id: "a", upsert: true, ops: [{ type: "$set" as const, path: "v", value: "kept" }] };
    const ids: string[] = [];
    for (let n = 0; n < OBJECTS; n++)
      await first.space.engine.write((tx) => {
        const object = tx.createObject();
        tx.append(object, { dataset: ITEMS.name, records: [set] }, ITEMS);
        ids.push(object.idText);
      });
    const written = first.changes().map(({ bytes }) => bytes);
    for (const { space } of [two, member]) await space.engine.ingest(written);
    for (const id of ids) await member.space.engine.write((tx) => tx.deleteObject(tx.object(id)!));
    await two.space.engine.ingest(member.changes().map(({ bytes }) => bytes));
    const { engine } = two.space;
    expect(ids.every((id) => engine.object(id)!.deleted)).toBe(true);
    // The device that moves the rights has not heard of the deletions: they do not count, and the objects are back.
    await remove(first, account);
    const tearing = engine.tearDownDeleted();
    await two.space.aclService.take(first.aclLog());
    await tearing;
    const kept = ids.map((id) => engine.record(engine.object(id)!, ITEMS.name, "a")?.["v"]);
    expect(kept).toEqual(ids.map(() => "kept"));
  });
});
