import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  add,
  type Device,
  deleteObject,
  exchange,
  fetchFrom,
  missingBodies,
  purgedAfter,
  remove,
  withDevices,
} from "../../../test/support/worlds/acl-devices.ts";
import { createAccount } from "../../../test/support/worlds/acl-world.ts";
import { randomBytes } from "../../base/random.ts";
import { refusal } from "../../protocol/refusals.ts";
import { type Change, decodeChange, encodeChange, encodeHeader } from "../codec/change-codec.ts";
import { isStub, stubOf } from "../codec/change-stub.ts";
import { DELETED_GRACE_MS } from "./object-deletions.ts";

const ITEMS = { name: "items", idRule: "user" } as const;

/** A created object with three changes of random, so incompressible, content. */
async function createObject({ space }: Device): Promise<string> {
  const write = (objectId: string | undefined, id: string) =>
    space.engine.write((tx) => {
      const object = objectId === undefined ? tx.createObject() : tx.object(objectId)!;
      const value = Buffer.from(randomBytes(300)).toString("base64");
      tx.append(
        object,
        { dataset: "items", records: [{ id, upsert: true, ops: [{ type: "$set", path: "v", value }] }] },
        ITEMS,
      );
      return object.idText as string;
    });
  const id = await write(undefined, "a");
  for (const record of ["b", "c"]) await write(id, record);
  return id;
}

/** Rows of an object by record id, as stored. */
function rowsOf({ space }: Device, id: string): string[] {
  const collectionId = space.engine.collectionIdOf(space.engine.object(id)!, "items");
  return collectionId === undefined ? [] : space.store.rows.docs(collectionId).sort();
}

const changesOf = (device: Device, id: string) => {
  const { no } = device.space.engine.object(id)!;
  return device.changes().filter(({ objectNo, writer }) => objectNo === no && writer !== 0);
};
const stubsOf = (device: Device, id: string) => changesOf(device, id).filter(({ bytes }) => isStub(bytes));
const waitingForKey = ({ space }: Device) =>
  space.store.db.query<{ n: number }, []>("SELECT count(*) AS n FROM pending_bodies WHERE wait_kind = 'key'").get()!.n;

/** Deletes an object, and resolves once it is torn down on every device. */
async function deleted(by: Device, id: string, others: readonly Device[]): Promise<void> {
  await deleteObject(by, id);
  await exchange([by, ...others]);
  for (const device of [by, ...others]) await device.space.engine.tearDownDeleted();
}

describe("the content of deleted objects", () => {
  test("[CHANGE-8] is kept through the time of grace, then overwritten; the graph stays and says the same", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      const id = await createObject(one);
      await one.write("kept", "kept");
      await exchange([one, two]);
      const bodies = changesOf(one, id).flatMap(({ bytes }) => {
        const { sealed } = decodeChange(bytes) as Change;
        return sealed ? [Buffer.from(sealed)] : [];
      });
      expect(bodies).toHaveLength(3);
      await deleted(one, id, [two]);
      expect(await purgedAfter(devices, one, DELETED_GRACE_MS - 60_000)).toBe(0);
      expect(await purgedAfter(devices, one, 60_000)).toBe(3);
      expect(await one.space.engine.purgeDeleted()).toBe(0);
      expect(stubsOf(one, id)).toHaveLength(3);
      expect(changesOf(one, id).map((change) => change.id)).toEqual(changesOf(two, id).map((change) => change.id));
      expect(missingBodies(one)).toBe(0);
      expect(await one.values()).toEqual({ kept: "kept" });
      const path = one.space.store.path;
      await one.reopen();
      const file = readFileSync(path);
      for (const body of bodies) expect(file.includes(body)).toBe(false);
      expect(readFileSync(two.space.store.path).length).toBeGreaterThan(0);
      await one.space.engine.rebuildProjection();
      expect(await one.values()).toEqual({ kept: "kept" });
    }));

  test("[CHANGE-8] when it is stopped, what is left is overwritten the next time", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      const ids = [await createObject(one), await createObject(one)];
      for (const id of ids) await deleteObject(one, id);
      await one.space.engine.tearDownDeleted();
      devices.wait(DELETED_GRACE_MS / 2);
      await one.space.engine.purgeDeleted(() => true);
      const left = (): number[] => ids.map((id) => 3 - stubsOf(one, id).length);
      expect(left()).toEqual([3, 3]);
      let asked = 0;
      for (let days = 0; days < 30 && left()[0] === 3; days++) {
        devices.wait(DELETED_GRACE_MS / 30);
        asked = 0;
        await one.space.engine.purgeDeleted(() => ++asked > 2);
      }
      expect(left()).toEqual([0, 3]);
      expect(await one.space.engine.purgeDeleted()).toBe(3);
      expect(left()).toEqual([0, 0]);
    }));

  test("[CHANGE-8] a clock that is set a month ahead, or wrong at every start, makes nothing old at once", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      const id = await createObject(one);
      devices.wait(-DELETED_GRACE_MS);
      await deleteObject(one, id);
      const purged = () => one.space.engine.purgeDeleted();
      devices.wait(2 * DELETED_GRACE_MS);
      expect(await purged()).toBe(0);
      for (let start = 0; start < 5; start++) {
        await one.reopen();
        devices.wait(start % 2 ? DELETED_GRACE_MS : -DELETED_GRACE_MS);
        expect(await purged()).toBe(0);
      }
      // Seldom looked at, it waits longer.
      devices.wait(DELETED_GRACE_MS);
      expect(await purged()).toBe(0);
      expect(await purgedAfter(devices, one, DELETED_GRACE_MS)).toBe(3);
    }));

  for (const order of ["as they lie", "reversed"] as const) {
    test(`[CHANGE-8] whoever comes later gets stubs, ${order}, and misses nothing`, () =>
      withDevices(async (devices) => {
        const one = devices.open("one", devices.owner);
        const id = await createObject(one);
        await one.write("kept", "kept");
        await deleteObject(one, id);
        await one.write("later", "later");
        await one.space.engine.tearDownDeleted();
        await purgedAfter(devices, one, DELETED_GRACE_MS);
        const late = devices.open("late", devices.owner);
        const bytes = one.changes().map((change) => change.bytes);
        for (const each of order === "reversed" ? bytes.toReversed() : bytes)
          expect(["stored", "parked", "known"]).toContain((await late.ingest(each)).kind);
        expect(late.changes()).toHaveLength(one.changes().length);
        expect(missingBodies(late)).toBe(0);
        expect(late.space.store.parked.usage().count).toBe(0);
        expect(await late.rows()).toEqual(await one.rows());
        expect(late.space.engine.object(id)!.deleted).toBe(true);
      }));
  }

  test("[CHANGE-8] what arrives for a purged object is kept as a stub at once", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      const id = await createObject(one);
      await exchange([one, two]);
      await deleteObject(one, id);
      await one.space.engine.tearDownDeleted();
      await purgedAfter(devices, one, DELETED_GRACE_MS);
      await two.space.engine.write((tx) =>
        tx.append(
          tx.object(id)!,
          { dataset: "items", records: [{ id: "late", upsert: true, ops: [{ type: "$set", path: "v", value: "x" }] }] },
          ITEMS,
        ),
      );
      await fetchFrom(one, two);
      expect(stubsOf(one, id)).toHaveLength(4);
      expect(missingBodies(one)).toBe(0);
    }));

  test("[CHANGE-8] a deletion that loses its right brings the object back: its bodies are missed, asked for and folded", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      const witness = devices.open("witness", devices.owner);
      const id = await createObject(owner);
      await exchange([owner, member, witness]);
      // The owner removes the member before hearing of the deletion: it is cut off, after the witness has purged.
      await deleteObject(member, id);
      await fetchFrom(witness, member);
      expect(witness.space.engine.object(id)!.deleted).toBe(true);
      await witness.space.engine.tearDownDeleted();
      expect(await purgedAfter(devices, witness, DELETED_GRACE_MS)).toBe(3);
      expect(rowsOf(witness, id)).toEqual([]);
      await remove(owner, account);
      await witness.space.aclService.take(owner.aclLog());
      expect(witness.space.engine.object(id)!.deleted).toBe(false);
      expect(missingBodies(witness)).toBe(3);
      expect(rowsOf(witness, id)).toEqual([]);
      await fetchFrom(witness, owner);
      expect(missingBodies(witness)).toBe(0);
      expect(rowsOf(witness, id)).toEqual(rowsOf(owner, id));
      expect(rowsOf(witness, id)).toHaveLength(3);
    }));
});

describe("stubs of what is not deleted", () => {
  test("[CHANGE-7] the body is missed until it comes, over a restart; then the rows are as everywhere", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      for (const [id, text] of [
        ["a", "1"],
        ["b", "2"],
        ["a", "3"],
      ] as const)
        await one.write(id, text);
      const bytes = one.changes().map((change) => change.bytes);
      for (const each of bytes) await two.ingest(stubOf(each));
      expect(await two.values()).toEqual({});
      expect(missingBodies(two)).toBe(3);
      await two.reopen();
      await two.space.engine.rebuildProjection();
      expect(missingBodies(two)).toBe(3);
      expect(two.space.store.pendingBodies.missingBodies(10)).toHaveLength(3);
      // What is written meanwhile sorts behind.
      await two.write("b", "own");
      for (const each of bytes.toReversed()) await two.ingest(each);
      expect(missingBodies(two)).toBe(0);
      await fetchFrom(one, two);
      expect(await two.values()).toEqual({ a: "3", b: "own" });
      expect(await two.rows()).toEqual(await one.rows());
      expect((await two.ingest(bytes[1]!)).kind).toBe("known");
      expect((await two.ingest(stubOf(bytes[1]!))).kind).toBe("known");
    }));

  test("[CHANGE-7] stubs do not part those who have a body that does not open from those who have none", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      await one.write("a", "1");
      await exchange([one, two]);
      const model = decodeChange(one.changes().at(-1)!.bytes) as Change;
      const follow = (of: Change, over: { keyId?: Uint8Array } = {}) => {
        const header = { ...of.header, parents: [of.id], prev: of.id, seq: of.header.seq + 1, ...over };
        const headerBytes = encodeHeader({ ...header, lamport: header.lamport + 1 });
        return { headerBytes, keyId: header.keyId };
      };
      const sealedBy = (sealed: Uint8Array, headerBytes: Uint8Array) =>
        encodeChange(headerBytes, sealed, devices.owner.signer).bytes;
      const broken = sealedBy(randomBytes(100), follow(model).headerBytes);
      const unknownKey = sealedBy(
        randomBytes(100),
        follow(decodeChange(broken) as Change, { keyId: randomBytes(16) }).headerBytes,
      );
      expect(await one.ingest(broken)).toMatchObject({ kind: "stored", refusal: refusal("change.body_key") });
      expect((await one.ingest(unknownKey)).kind).toBe("parked");
      expect((await two.ingest(stubOf(broken))).kind).toBe("stored");
      expect((await two.ingest(stubOf(unknownKey))).kind).toBe("stored");
      expect(missingBodies(two)).toBe(2);

      await exchange([one, two]);
      const ids = (device: Device) =>
        device
          .changes()
          .map(({ id }) => Buffer.from(id).toString("hex"))
          .sort();
      expect(ids(one)).toEqual(ids(two));
      // Both wait for the key, and for nothing else; both still have the body.
      for (const device of [one, two]) {
        expect([device.name, missingBodies(device)]).toEqual([device.name, 1]);
        expect(waitingForKey(device)).toBe(1);
        expect(device.space.store.parked.usage().count).toBe(0);
        expect(isStub(device.changes().at(-1)!.bytes)).toBe(false);
        expect(await device.values()).toEqual({ a: "1" });
        expect(device.space.store.parked.quarantineList(10)).toHaveLength(1);
      }
    }));

  test("[CHANGE-5] a body that waits for its key in the graph is folded when the key comes", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      await remove(owner, account); // a new epoch, whose key the member does not get
      await owner.write("a", "1");
      await member.space.aclService.take(owner.aclLog());
      const all = owner.changes().map(({ bytes }) => bytes);
      for (const bytes of all) await member.ingest(stubOf(bytes));
      for (const bytes of all) await member.ingest(bytes);
      expect(waitingForKey(member)).toBe(1);
      expect(await member.values()).toEqual({});
      await add(owner, account);
      await member.space.aclService.take(owner.aclLog());
      expect(missingBodies(member)).toBe(0);
      expect(await member.rows()).toEqual(await owner.rows());
    }));
});
