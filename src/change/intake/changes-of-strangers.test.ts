/** Changes by who has no right to write: they fill nobody's disk, and hold up nobody. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createForger, setOf } from "../../../test/support/hostile/forged-change.ts";
import { objectOf, withRecords } from "../../../test/support/hostile/forger-world.ts";
import { add, type Device, remove, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { vectorOf } from "../../space/replica/own-vector.ts";
import { decodeChange, encodeDerivedRoot } from "../codec/change-codec.ts";
import { stubOf } from "../codec/change-stub.ts";
import { DEFAULT_PARK_QUOTA } from "./set-aside.ts";

setDefaultTimeout(60_000);

describe("who has no right", () => {
  const SMALL = { ...DEFAULT_PARK_QUOTA, bytesUncounted: 200_000, bytesOfStrangers: 100_000 };
  const stored = ({ space }: Device) =>
    space.store.db.query<{ bytes: number }, []>("SELECT sum(length(bytes)) AS bytes FROM changes").get()!.bytes;
  const waiting = ({ space }: Device) => space.store.parked.waitingCount(5) + space.store.pendingBodies.waitingCount(5);

  for (const who of ["a stranger", "a removed member"] as const)
    test(`[CHANGE-6] ${who} fills nobody's disk, whether by stubs and then bodies or by changes of his own`, () =>
      withDevices(async (devices) => {
        const [one, two] = [
          devices.open("one", devices.owner, { quota: SMALL }),
          devices.open("two", devices.owner, { quota: SMALL }),
        ];
        await one.write("a", "1");
        const other = createAccount();
        if (who === "a removed member") {
          await add(one, other);
          await remove(one, other);
        }
        for (const { bytes } of one.changes()) await two.ingest(bytes);
        await two.space.aclService.take(one.aclLog());
        const before = stored(two);
        const junk: Uint8Array[] = [];
        for (let writer = 0; writer < 20; writer++) {
          const forge = createForger(one.space, objectOf(one), other.signer);
          for (let i = 0; i < 20; i++) {
            const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(3_000))).toString("hex");
            junk.push(forge.write(withRecords(setOf(`j${i}`, "v", `"${noise}"`))).bytes);
          }
        }
        const verdicts = await two.space.engine.ingest([...junk.map(stubOf), ...junk]);
        expect(
          verdicts.filter(({ kind }) => kind === "refused").every((one) => "ofStranger" in one && one.ofStranger),
        ).toBe(true);
        expect(verdicts.some(({ kind }) => kind === "refused")).toBe(true);
        expect(stored(two) - before).toBeLessThan(SMALL.bytesUncounted);
        expect(waiting(two)).toBe(0);
        // Nobody compares what they wrote, and nobody has to keep it.
        expect(vectorOf(two.space).digest).toEqual(vectorOf(one.space).digest);
        expect(await two.values()).toEqual({ a: "1" });
        await one.write("b", "2");
        for (const { bytes } of one.changes()) expect((await two.ingest(bytes)).kind).not.toBe("refused");
        expect(await two.values()).toEqual({ a: "1", b: "2" });
      }));

  test("[CHANGE-6] what is beyond the quota is taken when somebody with the right has built upon it", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      const two = devices.open("two", devices.owner, { quota: { ...SMALL, bytesUncounted: 0 } });
      await one.write("a", "1");
      for (const { bytes } of one.changes()) await two.ingest(bytes);
      const forge = createForger(one.space, objectOf(one), createAccount().signer);
      const junk = [1, 2, 3].map((i) => forge.write(withRecords(setOf(`j${i}`, "v", '"x"'))).bytes);
      for (const bytes of junk) expect(await one.ingest(bytes)).toMatchObject({ kind: "stored", counts: false });
      for (const bytes of junk) expect((await two.ingest(bytes)).kind).not.toBe("stored");
      await one.write("b", "2");
      const built = one.changes().at(-1)!.bytes;
      expect((await two.ingest(built)).kind).toBe("parked");
      for (const bytes of junk.toReversed()) await two.ingest(bytes);
      expect(await two.values()).toEqual({ a: "1", b: "2" });
      expect(waiting(two)).toBe(0);
    }));

  test("[CHANGE-6] a change under a key that nobody has is not waited for when its author has no right, nor for ever else", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      await one.write("a", "1");
      const strange = createForger(one.space, objectOf(one), createAccount().signer);
      const keyId = new Uint8Array(16).fill(9);
      expect(await one.ingest(strange.write(withRecords(""), { keyId }).bytes)).toEqual({
        kind: "stored",
        counts: false,
      });
      expect(waiting(one)).toBe(0);
      const own = createForger(one.space, objectOf(one), devices.owner.signer);
      const { bytes } = own.write(withRecords(""), { keyId });
      expect(await one.ingest(bytes)).toMatchObject({ kind: "parked", waitKind: "key" });
      expect(await one.ingest(stubOf(bytes))).toMatchObject({ kind: "stored" });
      await one.ingest(bytes);
      expect(waiting(one)).toBe(1);
      const { parked, pendingBodies } = one.space.store;
      for (let round = 0; round < 5; round++)
        await one.space.engine.write(() => {
          parked.age(5);
          pendingBodies.age(5);
        });
      expect(waiting(one)).toBe(0);
      expect(pendingBodies.inVain(5, 10)).toHaveLength(1);
    }));

  test("[CHANGE-3] derived roots that nobody writes to are taken up to a number", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      await one.write("a", "1");
      const { space } = decodeChange(one.changes()[0]!.bytes).header;
      const roots = Array.from({ length: 4_300 }, (_, i) =>
        encodeDerivedRoot({ space, type: "t", derivation: `${i}` }),
      );
      const verdicts = await one.space.engine.ingest(roots.map(({ bytes }) => bytes));
      expect(verdicts.filter(({ kind }) => kind === "stored").length).toBeLessThanOrEqual(4_096);
      expect(verdicts.at(-1)).toMatchObject({ kind: "refused", ofStranger: true });
      await one.write("b", "2");
      expect(await one.values()).toEqual({ a: "1", b: "2" });
    }));
});
