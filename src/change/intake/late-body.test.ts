import { describe, expect, test } from "bun:test";
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
import { OBJECT_RULES } from "../../domain/object/object-rules.ts";
import { LIMITS } from "../../protocol/limits.ts";
import { refusal } from "../../protocol/refusals.ts";
import { vectorOf } from "../../space/replica/own-vector.ts";
import { takeIn } from "../../space/replica/take.ts";
import { type Change, type ChangeHeader, decodeChange, encodeChange, encodeHeader } from "../codec/change-codec.ts";
import { isStub, stubOf } from "../codec/change-stub.ts";
import { DELETIONS_TYPE } from "../fold/deletion-log.ts";
import { DELETED_GRACE_MS } from "../fold/object-deletions.ts";

const ITEMS = { name: "items", idRule: "user" } as const;

async function createObject({ space }: Device, records = ["a", "b", "c"]): Promise<string> {
  const write = (objectId: string | undefined, id: string) =>
    space.engine.write((tx) => {
      const object = objectId === undefined ? tx.createObject() : tx.object(objectId)!;
      const ops = [{ type: "$set" as const, path: "v", value: id }];
      tx.append(object, { dataset: "items", records: [{ id, upsert: true, ops }] }, ITEMS);
      return object.idText as string;
    });
  const objectId = await write(undefined, records[0]!);
  await Promise.all(records.slice(1).map((id) => write(objectId, id)));
  return objectId;
}

/** Changes of an object that are here with their bodies. */
const wholeOf = (device: Device, id: string) => {
  const { no } = device.space.engine.object(id)!;
  return device.changes().filter(({ objectNo, bytes }) => objectNo === no && stubOf(bytes) !== bytes);
};

/** The same as `fetchFrom`, in one go. */
async function takeAll(to: Device, from: Device): Promise<void> {
  await to.space.aclService.take(from.aclLog());
  await to.space.engine.ingest(from.changes().map(({ bytes }) => bytes));
}

/** Changes that the history lists although their bodies are not here. */
const listedStubs = ({ space }: Device) =>
  space.store.db
    .query<{ count: number }, []>(
      `SELECT count(*) AS count FROM history h JOIN changes c ON c.no = h.change
       WHERE h.hidden = 0 AND substr(c.bytes, 1, 3) = x'a36163'`,
    )
    .get()!.count;

/** Ids of the changes that an object's history lists, newest first. */
const listed = ({ space }: Device, id: string) =>
  space.store.history
    .page({ objectNo: space.engine.object(id)!.no }, 0, { lamport: Number.MAX_SAFE_INTEGER }, 1_000)
    .map((change) => Buffer.from(change.id).toString("hex"));

/** A change behind `of` with any bytes for a body, signed by whoever is given. */
function follow(
  of: Change,
  signer: Parameters<typeof encodeChange>[2],
  sealed: Uint8Array,
  over: Partial<ChangeHeader> = {},
) {
  const header = { ...of.header, parents: [of.id], prev: of.id, seq: of.header.seq + 1, ...over };
  return encodeChange(encodeHeader({ ...header, lamport: of.header.lamport + 1 }), sealed, signer).bytes;
}

describe("bodies that come late", () => {
  test("[CHANGE-3] one that is too large is refused, and holds up nothing", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      await one.write("a", "1");
      await exchange([one, two]);
      const last = decodeChange(one.changes().at(-1)!.bytes) as Change;
      const huge = follow(last, devices.owner.signer, new Uint8Array(LIMITS.sealedChangeBytes + 100_000));
      expect((await two.ingest(stubOf(huge))).kind).toBe("stored");
      const [verdict] = await two.space.engine.ingest([huge]);
      expect(verdict).toMatchObject({ kind: "stored", refusal: refusal("change.body_too_large") });
      expect(missingBodies(two)).toBe(0);
      expect(isStub(two.changes().at(-1)!.bytes)).toBe(true);
      // The stub is all that is kept of it: whoever gives that back keeps it. Of a whole change it says nothing.
      const stubs = two
        .changes()
        .slice(-2)
        .map(({ bytes }) => stubOf(bytes));
      expect((await takeIn(two.space, stubs)).kept).toEqual([false, true]);
    }));

  test("[CHANGE-6] of somebody who never was a member no bodies are kept, and nobody misses any", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      await one.write("a", "1");
      const model = decodeChange(one.changes().at(-1)!.bytes) as Change;
      const stranger = createAccount();
      const header: ChangeHeader = { ...model.header, author: stranger.signer.publicKey, writer: new Uint8Array(16) };
      const root = encodeChange(
        encodeHeader({ ...header, kind: "root", object: null, parents: [], lamport: 1, seq: 1, prev: null }),
        undefined,
        stranger.signer,
      ).bytes;
      const junk = [root];
      for (let i = 0; i < 20; i++) {
        const before = decodeChange(junk.at(-1)!) as Change;
        const object = (decodeChange(root) as Change).id;
        junk.push(
          follow(before, stranger.signer, new Uint8Array(1000), { kind: "change", object, keyId: model.header.keyId }),
        );
      }
      for (const bytes of junk) expect(await one.ingest(bytes)).toMatchObject({ kind: "stored", counts: false });
      for (const bytes of junk) expect((await two.ingest(stubOf(bytes))).kind).toBe("stored");
      for (const bytes of junk) await two.ingest(bytes);
      await exchange([one, two]);
      for (const device of [one, two]) {
        expect(device.changes().filter(({ bytes }) => bytes.length > 900)).toHaveLength(0);
        expect(missingBodies(device)).toBe(0);
        expect(await device.values()).toEqual({ a: "1" });
      }
      expect(vectorOf(one.space).digest).toEqual(vectorOf(two.space).digest);
      const taken = await takeIn(
        one.space,
        two.changes().map(({ bytes }) => stubOf(bytes)),
      );
      expect(taken.kept.filter((kept) => !kept)).toHaveLength(1);
    }));

  test("[CHANGE-7] of this device's own change: nobody takes it for another's", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      const id = await createObject(owner);
      await exchange([owner, member]);
      const others = devices.open("other", devices.owner);
      await exchange([owner, member, others]);
      await deleteObject(member, id);
      await fetchFrom(owner, member);
      expect(await purgedAfter(devices, owner, DELETED_GRACE_MS)).toBe(3);
      await remove(others, account);
      await owner.space.aclService.take(others.aclLog());
      expect(missingBodies(owner)).toBe(3);
      const taken = await takeIn(
        owner.space,
        others.changes().map(({ bytes }) => bytes),
      );
      expect(missingBodies(owner)).toBe(0);
      expect(taken.foreignOwn).toBe(false);
    }));

  test("[CHANGE-7] what waits for a key in an object that is deleted meanwhile is missed no more once that has come", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      const other = devices.open("other", devices.owner);
      const id = await createObject(owner);
      await exchange([owner, member, other]);
      await deleteObject(other, id); // under a key that the member has
      await remove(owner, account);
      await owner.space.engine.write((tx) =>
        tx.append(tx.object(id)!, { dataset: "items", records: [{ id: "x", upsert: true, ops: [] }] }, ITEMS),
      );
      await member.space.aclService.take(owner.aclLog());
      const late = owner.changes().at(-1)!.bytes;
      await member.ingest(stubOf(late));
      await member.ingest(late);
      for (const { bytes } of other.changes()) await member.ingest(bytes);
      expect(member.space.engine.object(id)!.deleted).toBe(true);
      expect(member.space.store.pendingBodies.ofKind("key")).toHaveLength(1);
      await purgedAfter(devices, member, DELETED_GRACE_MS);
      expect(wholeOf(member, id)).toHaveLength(1);
      await add(owner, account);
      await fetchFrom(member, owner);
      expect(missingBodies(member)).toBe(0);
      expect(wholeOf(member, id)).toHaveLength(0);
    }));

  for (const [name, records] of [
    ["whole", 3],
    ["in part", 450],
  ] as const)
    test(`[CHANGE-8] an object that is back after it was purged ${name} lists in its history what can be read`, () =>
      withDevices(async (devices) => {
        const owner = devices.open("owner", devices.owner);
        const account = createAccount();
        await add(owner, account);
        const member = devices.open("member", account);
        const witness = devices.open("witness", devices.owner);
        const id = await createObject(
          owner,
          Array.from({ length: records }, (_, i) => `r${i}`),
        );
        for (const device of [member, witness]) await takeAll(device, owner);
        await deleteObject(member, id);
        await takeAll(witness, member);
        await purgedAfter(devices, witness, DELETED_GRACE_MS - 60_000);
        devices.wait(60_000);
        // Written by somebody who has not heard of the deletion.
        await owner.space.engine.write((tx) =>
          tx.append(tx.object(id)!, { dataset: "items", records: [{ id: "late", upsert: true, ops: [] }] }, ITEMS),
        );
        const late = owner.changes().at(-1)!.bytes;
        await remove(owner, account);
        const purging = witness.space.engine.purgeDeleted();
        // The time is noted first; then comes the first slice.
        for (let turn = 0; turn < 2; turn++) await witness.space.engine.background(() => undefined);
        if (name === "whole") {
          await purging;
          await witness.ingest(late);
        }
        await witness.space.aclService.take(owner.aclLog());
        if (name === "in part") expect(await purging).toBeLessThan(records);
        expect(witness.space.engine.object(id)!.deleted).toBe(false);
        expect(missingBodies(witness)).toBeGreaterThan(0);
        expect(missingBodies(witness)).toBeLessThan(records + 2);
        expect(listedStubs(witness)).toBe(0);
        await takeAll(witness, owner);
        expect(missingBodies(witness)).toBe(0);
        expect(listed(witness, id)).toEqual(listed(owner, id));
      }));

  test("[CHANGE-8] the bodies of an object that is back come in any order", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      const id = await createObject(owner, ["r", "r", "r", "r"]);
      await owner.space.engine.write((tx) => {
        const ops = [{ type: "$set" as const, path: "svc.name", value: "name" }];
        for (let i = 0; i < 3; i++)
          tx.append(tx.object(id)!, { dataset: "objects", records: [{ id, upsert: true, ops }] }, OBJECT_RULES);
      });
      const witnesses = ["one", "two", "three"].map((name) => devices.open(name, devices.owner));
      for (const device of [member, ...witnesses]) await takeAll(device, owner);
      await deleteObject(member, id);
      for (const device of witnesses) await takeAll(device, member);
      await remove(owner, account);
      const bodies = wholeOf(owner, id).map(({ bytes }) => bytes);
      for (const [index, device] of witnesses.entries()) {
        expect(await purgedAfter(devices, device, DELETED_GRACE_MS)).toBe(7);
        await device.space.aclService.take(owner.aclLog());
        const order = [...bodies.slice(index), ...bodies.slice(0, index)].toReversed();
        for (const bytes of order) expect((await device.ingest(bytes)).kind).toBe("stored");
        expect(missingBodies(device)).toBe(0);
        const shown = ({ space: { engine } }: Device) =>
          ["items", "objects"].map((dataset) =>
            engine.record(engine.object(id)!, dataset, dataset === "items" ? "r" : id),
          );
        expect(shown(device)).toEqual(shown(owner));
        expect(shown(device)).not.toContain(undefined);
      }
    }));

  test("[CHANGE-8] a stub that is given back is enough once the body was dropped here, and not before", () =>
    withDevices(async (devices) => {
      const one = devices.open("one", devices.owner);
      const id = await createObject(one);
      await deleteObject(one, id);
      const stubs = wholeOf(one, id).map(({ bytes }) => stubOf(bytes));
      expect((await takeIn(one.space, stubs)).kept).toEqual([false, false, false]); // the object may be back
      await purgedAfter(devices, one, DELETED_GRACE_MS);
      expect((await takeIn(one.space, stubs)).kept).toEqual([true, true, true]);
    }));

  test("[CHANGE-8] the log of deletions is not deleted by an entry that names it: whoever has that deletes on", () =>
    withDevices(async (devices) => {
      const [one, two] = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      const id = await createObject(one);
      const log = one.space.engine.derivedId(DELETIONS_TYPE, "");
      await one.space.engine.write((tx) => tx.ensureDerived(DELETIONS_TYPE, ""));
      for (const target of [log, id]) await deleteObject(one, target);
      await two.space.engine.ingest(one.changes().map(({ bytes }) => bytes));
      for (const { name, space } of [one, two])
        expect([name, ...[log, id].map((each) => space.engine.object(each)!.deleted)]).toEqual([name, false, true]);
    }));
});
