import { expect, test } from "bun:test";
import { withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { cidFromDigest } from "../../crypto/cid.ts";
import { changeIdOf } from "../codec/change-stub.ts";

test("[SYNC-3] what comes in and touches no record is news all the same: others may have to be given it", async () => {
  await withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    const objectId = await one.space.engine.write((tx) => tx.createObject().idText);
    const root = one.changes().find(({ bytes }) => cidFromDigest(changeIdOf(bytes)) === objectId)!;
    const news: string[] = [];
    two.space.events.on("committed", ({ objects }) => void news.push(...objects));
    await two.space.engine.ingest([root.bytes]);
    expect(news).toEqual([objectId]);
  });
});
