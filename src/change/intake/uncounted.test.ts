/** What does not count is kept, and takes no more than its bytes until it comes to count. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { createForger, paidBytes } from "../../../test/support/hostile/forged-change.ts";
import { objectOf } from "../../../test/support/hostile/forger-world.ts";
import { add, remove, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";

setDefaultTimeout(60_000);

test("[CHANGE-6] a change that does not count is neither folded nor noted in any row; it takes effect when it comes to count, and not when it ceases to", () =>
  withDevices(async (devices) => {
    const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
    await one.write("a", "1");
    const other = createAccount();
    await add(one, other);
    const records = Array.from({ length: 2_000 }, (_, i) => ({
      id: `r${i}`,
      upsert: true,
      ops: [{ type: "$set", path: "v", value: "x" }],
    }));
    const { bytes } = createForger(one.space, objectOf(one), other.signer).write(
      paidBytes(JSON.stringify({ dataset: "items", records }), 300 * records.length),
    );
    await remove(one, other);
    for (const each of one.changes()) await two.ingest(each.bytes);
    await two.space.aclService.take(one.chain());
    const { db } = two.space.engine.store;
    const count = (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n;
    const before = [count("rows"), count("touches")];
    expect(await two.ingest(bytes)).toEqual({ kind: "stored", counts: false });
    expect([count("rows"), count("touches")]).toEqual(before);

    const { acl } = two.space;
    const { counts } = acl;
    acl.counts = () => true;
    await two.space.engine.recheckVerdicts();
    expect(Object.keys(await two.values())).toHaveLength(2_001);
    acl.counts = counts;
    await two.space.engine.recheckVerdicts();
    expect(await two.values()).toEqual({ a: "1" });
    await two.space.engine.rebuildProjection();
    expect(await two.values()).toEqual({ a: "1" });
  }));
