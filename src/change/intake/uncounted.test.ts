/** What does not count is kept, and takes no more than its bytes until it comes to count. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { createForger, paidBytes, setOf } from "../../../test/support/hostile/forged-change.ts";
import { objectOf, withRecords } from "../../../test/support/hostile/forger-world.ts";
import { add, remove, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { type Change, decodeChange } from "../codec/change-codec.ts";

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
    await two.space.aclService.take(one.aclLog());
    const { db } = two.space.store;
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

test("[CHANGE-6] a change that names an older ACL record than what it follows does not count, though its author had the right there", () =>
  withDevices(async (devices) => {
    const one = devices.open("one", devices.owner);
    const member = createAccount();
    await add(one, member);
    await one.write("a", "1");
    const older = decodeChange(one.changes().at(-1)!.bytes) as Change;
    await add(one, createAccount());
    await one.write("b", "2");
    const [, before] = one.space.acl.records().map(({ record }) => record.id);
    const forger = () => createForger(one.space, objectOf(one), member.signer);
    const body = (id: string) => withRecords(setOf(id, "v", '"forged"'));
    const upon = { parents: [older.id], acl: before! };

    // Beside what came later, at the record that it followed: as somebody writes who was away.
    const away = forger().write(body("away"), { ...upon, lamport: older.header.lamport + 1 });
    expect(await one.ingest(away.bytes)).toEqual({ kind: "stored", counts: true });
    const byParents = forger().write(body("p"), { acl: before! });
    expect(await one.ingest(byParents.bytes)).toEqual({ kind: "stored", counts: false });
    const chain = forger();
    expect(await one.ingest(chain.write(body("first")).bytes)).toEqual({ kind: "stored", counts: true });
    const byChain = chain.write(body("second"), upon);
    expect(await one.ingest(byChain.bytes)).toEqual({ kind: "stored", counts: false });
    expect(await one.values()).toEqual({ a: "1", b: "2", away: "forged", first: "forged" });
  }));
