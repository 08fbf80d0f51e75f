import { describe, expect, test } from "bun:test";
import { scratchDir } from "../../../test/support/scratch.ts";
import {
  add,
  createDevices,
  type Device,
  type Devices,
  exchange,
  fetchFrom,
  remove,
  roleOf,
  sameHead,
  withDevices,
} from "../../../test/support/worlds/acl-devices.ts";
import { createAccount, stateText } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { addAccounts, changePermissions, transferOwnership } from "../compose/actions.ts";

/** A device of each of these accounts, all in step once the first of them has let some accounts in. */
async function inStep<Name extends string>(
  devices: Devices,
  letIn: readonly Account[],
  accounts: Record<Name, Account>,
  suffix = "",
): Promise<Record<Name, Device>> {
  const opened: Device[] = [];
  const byName = {} as Record<Name, Device>;
  for (const [name, account] of Object.entries<Account>(accounts)) {
    const device = devices.open(`${name}${suffix}`, account);
    if (opened.length === 0) for (const member of letIn) await add(device, member);
    opened.push(device);
    byName[name as Name] = device;
  }
  await exchange(opened);
  return byName;
}

describe("forks between an owner's devices", () => {
  /** Two devices of the owner and one of a member who saw both sides, after each device acted alone. */
  async function forked(
    devices: Devices,
    actOne: (d: Device) => Promise<unknown>,
    actTwo: (d: Device) => Promise<unknown>,
  ) {
    const one = devices.open("one", devices.owner);
    const two = devices.open("two", devices.owner);
    await one.write("start", "0");
    await exchange([one, two]);
    await actOne(one);
    await one.write("one", "1");
    await actTwo(two);
    await two.write("two", "2");
    return { one, two };
  }
  const statesAgree = (all: readonly Device[]) => {
    const [first, ...rest] = all;
    for (const other of rest) {
      expect(sameHead(first!, other)).toBe(true);
      expect(stateText(other.space.acl.state)).toBe(stateText(first!.space.acl.state));
    }
  };

  test("[ACL-11] of several acts of a side that lost each takes effect, though the clock went back between them", async () => {
    using dir = scratchDir("svc-acl");
    let now = 1_800_000_000_000;
    await using devices = createDevices(dir.path, { clock: { nowMs: () => (now -= 7) } });
    const sides = [1, 2].map(() => [createAccount(), createAccount(), createAccount()]);
    const letIn = (accounts: readonly Account[]) => async (d: Device) => {
      for (const account of accounts) await add(d, account);
    };
    const { one, two } = await forked(devices, letIn(sides[0]!), letIn(sides[1]!));
    await exchange([one, two]);
    statesAgree([one, two]);
    for (const account of sides.flat()) expect(roleOf(one, account)).toBe("writer");
  });

  test("[ACL-11] both sides' acts take effect, everything written counts, and all agree", () =>
    withDevices(async (devices) => {
      const [x, y] = [createAccount(), createAccount()];
      const { one, two } = await forked(
        devices,
        (d) => add(d, x),
        (d) => add(d, y),
      );
      const member = devices.open("x", x);
      await fetchFrom(member, one);
      await member.write("x", "by x");
      await exchange([one, two, member]);
      statesAgree([one, two, member]);
      expect([roleOf(one, x), roleOf(one, y)]).toEqual(["writer", "writer"]);
      expect(await one.values()).toEqual({ start: "0", one: "1", two: "2", x: "by x" });
      for (const other of [two, member]) expect(await other.rows()).toEqual(await one.rows());
      for (const device of [one, two, member]) {
        expect(device.space.aclService.pending()).toEqual([]);
        await device.reopen();
        await device.space.engine.rebuildProjection();
        expect(await device.rows()).toEqual(await one.rows());
      }
      const late = devices.open("late", devices.owner);
      await fetchFrom(late, member);
      expect(await late.rows()).toEqual(await one.rows());
    }));

  test("[ACL-11] what takes authority away wins, and what both wrote under their own new keys opens for all who remain", () =>
    withDevices(async (devices) => {
      const [x, y, z] = [createAccount(), createAccount(), createAccount()];
      const { owner } = devices;
      const { one, two, reader } = await inStep(devices, [x, y, z], { one: owner, two: owner, reader: z });
      await remove(one, x);
      await one.write("one", "under one's key");
      await remove(two, y);
      await two.write("two", "under two's key");
      await fetchFrom(reader, one);
      await exchange([one, two, reader]);
      statesAgree([one, two, reader]);
      expect([roleOf(one, x), roleOf(one, y), roleOf(one, z)]).toEqual(["none", "none", "writer"]);
      const both = { one: "under one's key", two: "under two's key" };
      for (const device of [one, two, reader]) {
        expect(await device.values()).toEqual(both);
        await device.reopen();
        await device.space.engine.rebuildProjection();
        expect(await device.values()).toEqual(both);
      }
      // An account removed on either side cannot open what is written now.
      await one.write("three", "for those who remain");
      for (const gone of [x, y]) {
        const device = devices.open(`gone-${gone.id}`, gone);
        await fetchFrom(device, one);
        expect(device.space.keys.current()).toBeUndefined();
        expect(Object.keys(await device.values())).not.toContain("three");
      }
    }));

  test("[ACL-11] what a member wrote under a record that can take effect no more still counts", () =>
    withDevices(async (devices) => {
      const [m, x, y] = [createAccount(), createAccount(), createAccount()];
      const { owner } = devices;
      const { one, two, member } = await inStep(devices, [m, y], { one: owner, two: owner, member: m });
      await add(two, x);
      await fetchFrom(member, two);
      await member.write("m", "under two's record");
      await remove(one, y);
      await add(one, x);
      await exchange([one, two]);
      expect(two.space.aclService.pending()).toEqual([]);
      await exchange([one, two, member]);
      statesAgree([one, two, member]);
      for (const device of [one, two, member]) expect(await device.values()).toEqual({ m: "under two's record" });
    }));

  test("[ACL-11] a record that was forgotten gets its position when changes that name it come after all", () =>
    withDevices(async (devices) => {
      const [m, x, y] = [createAccount(), createAccount(), createAccount()];
      const { owner } = devices;
      const { one, two, member } = await inStep(devices, [m, y], { one: owner, two: owner, member: m });
      await add(one, x); // this one loses, and it adds nothing once both have added x
      await fetchFrom(member, one);
      await member.write("m", "on the branch");
      await remove(two, y);
      await add(two, x);
      await exchange([one, two]);
      expect(one.space.aclService.pending()).toEqual([]);
      // Only the changes come, as a network brings them.
      for (const device of [one, two]) for (const change of member.changes()) await device.ingest(change.bytes);
      expect(await one.values()).toEqual({});
      // Hundreds of changes that wait for records nobody has come first in the order of ids; they must not hide the
      // others.
      for (const { space } of [one, two])
        await space.engine.write(() => {
          for (let i = 0; i < 300; i++) {
            const waitFor = randomBytes(32);
            waitFor[0] = 0;
            const change = { id: randomBytes(32), bytes: randomBytes(8), author: m.signer.publicKey, receivedMs: 0 };
            space.store.parked.put({ ...change, waitKind: "acl", waitFor });
          }
        });
      await exchange([one, two]);
      expect(await one.values()).toEqual({ m: "on the branch" });
      await exchange([one, two, member]);
      statesAgree([one, two, member]);
      for (const device of [two, member]) expect(await device.rows()).toEqual(await one.rows());
    }));

  test("[ACL-11] a record that gave a lost one its position, and lost itself, hands on the keys when it is proposed again", () =>
    withDevices(async (devices) => {
      const { owner } = devices;
      const [m, n, y, z] = [createAccount(), createAccount(), createAccount(), createAccount()];
      const accounts = { one: owner, two: owner, three: owner, ofOne: m, ofTwo: n };
      const { one, two, three, ofOne, ofTwo } = await inStep(devices, [m, n, y, z], accounts);
      // Both do the same with keys of their own, and members write under either. One of the two records can only be given
      // a place.
      await remove(one, y);
      await fetchFrom(ofOne, one);
      await ofOne.write("m", "under one's key");
      await remove(two, y);
      await fetchFrom(ofTwo, two);
      await ofTwo.write("n", "under two's key");
      await fetchFrom(one, two);
      await fetchFrom(two, one);
      await fetchFrom(three, one);
      await exchange([one, two, ofOne, ofTwo]);
      await remove(three, z); // this one beats the record that gave it its position
      await exchange([one, two, three, ofOne, ofTwo]);
      statesAgree([one, two, three, ofOne, ofTwo]);
      const late = devices.open("late", devices.owner);
      await fetchFrom(late, three);
      for (const device of [one, three, late])
        expect(await device.values()).toEqual({ m: "under one's key", n: "under two's key" });
    }));

  test("[ACL-11] what either side cut off counts nowhere, whichever side wins", () =>
    withDevices(async (devices) => {
      for (let i = 0; i < 4; i++) {
        const { owner } = devices;
        const [x, y] = [createAccount(), createAccount()];
        const { one, two, member } = await inStep(devices, [x, y], { one: owner, two: owner, member: x }, `-${i}`);
        await member.write("a", "seen by both");
        // The member writes under a record before the fork.
        await add(one, createAccount());
        for (const device of [one, two]) await fetchFrom(device, member);
        await fetchFrom(two, one);
        await remove(one, x);
        await member.write("b", "seen by two alone");
        await fetchFrom(two, member);
        await remove(two, y);
        expect(await two.values()).toEqual({ a: "seen by both", b: "seen by two alone" });
        await exchange([one, two, member]);
        statesAgree([one, two, member]);
        for (const device of [one, two, member]) expect(await device.values()).toEqual({ a: "seen by both" });
      }
    }));

  test("[ACL-11] a restart between losing a branch and proposing it again loses no key", () =>
    withDevices(async (devices) => {
      const [x, y] = [createAccount(), createAccount()];
      const { one, two } = await inStep(devices, [x, y], { one: devices.owner, two: devices.owner });
      await remove(one, x);
      await one.write("one", "under one's key");
      await remove(two, y);
      await two.write("two", "under two's key");
      const [ofOne, ofTwo] = [one.aclLog(), two.aclLog()];
      const merged = [await one.space.aclService.take(ofTwo), await two.space.aclService.take(ofOne)];
      expect(merged.map(({ kind }) => kind).sort()).toEqual(["lost", "replaced"]);
      for (const device of [one, two]) {
        await device.reopen();
        await device.space.engine.rebuildProjection();
      }
      await exchange([one, two]);
      for (const device of [one, two])
        expect(await device.values()).toEqual({ one: "under one's key", two: "under two's key" });
    }));

  test("[ACL-11] a demotion beats an addition whatever the ids are", () =>
    withDevices(async (devices) => {
      const x = createAccount();
      const setup = devices.open("setup", devices.owner);
      await add(setup, x, "admin");
      for (let i = 0; i < 4; i++) {
        const one = devices.open(`one-${i}`, devices.owner);
        const two = devices.open(`two-${i}`, devices.owner);
        await fetchFrom(one, setup);
        await fetchFrom(two, setup);
        await add(one, createAccount());
        const demoted = await two.space.aclService.act((context) =>
          changePermissions(context, [{ identity: x.id, permission: "writer" }]),
        );
        await fetchFrom(one, two);
        expect(bytesToHex(one.space.acl.records()[2]!.id)).toBe(bytesToHex(demoted!.id));
        await fetchFrom(two, one);
        expect(bytesToHex(two.space.acl.records()[2]!.id)).toBe(bytesToHex(demoted!.id));
      }
    }));

  test("[ACL-11] of two additions the one with the lower id stands first everywhere", () =>
    withDevices(async (devices) => {
      const both = [devices.open("one", devices.owner), devices.open("two", devices.owner)];
      for (const device of both) await add(device, createAccount());
      const made = both.map(({ space }) => bytesToHex(space.acl.head().id)).sort();
      await exchange(both);
      for (const { space } of both) expect(bytesToHex(space.acl.records()[1]!.id)).toBe(made[0]!);
    }));

  test("[ACL-11] [ACL-13] a transfer beats what the old owner did elsewhere, also to take it back", () =>
    withDevices(async (devices) => {
      const [heir, other] = [createAccount(), createAccount()];
      const { one, two } = await inStep(devices, [heir, other], { one: devices.owner, two: devices.owner });
      await one.space.aclService.act((context) => transferOwnership(context, heir.id, "admin"));
      await remove(two, heir);
      await exchange([one, two]);
      statesAgree([one, two]);
      expect(roleOf(two, heir)).toBe("owner");
      // A second transfer does not win either, once the heir has acted.
      const three = devices.open("three", devices.owner);
      await three.space.aclService.take(one.aclLog().slice(0, 3));
      await three.space.aclService.act((context) => transferOwnership(context, other.id, "admin"));
      const device = devices.open("heir", heir);
      await fetchFrom(device, one);
      await add(device, createAccount());
      const head = device.space.acl.head().id;
      expect((await device.space.aclService.take(three.aclLog())).kind).toBe("split");
      expect(device.space.acl.head().id).toEqual(head);
      expect(device.space.acl.alarms.list().map(({ kind }) => kind)).toEqual(["split"]);
    }));
});

describe("with a network", () => {
  test("[ACL-11] of two records on one head the network takes one, and the other is built anew", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, b] = [createAccount(), createAccount()];
      await add(owner, a, "admin");
      await add(owner, b, "admin");
      const [one, two] = [devices.open("a", a), devices.open("b", b)];
      await exchange([owner, one, two]);
      const [x, y] = [createAccount(), createAccount()];
      const addX = (c: Parameters<typeof addAccounts>[0]) => addAccounts(c, [{ identity: x.id, permission: "writer" }]);
      const addY = (c: Parameters<typeof addAccounts>[0]) => addAccounts(c, [{ identity: y.id, permission: "writer" }]);
      const first = one.space.aclService.draft(addX)!;
      const second = two.space.aclService.draft(addY)!;
      await one.space.aclService.take([first.bytes]);
      await two.space.aclService.take([first.bytes]);
      expect((await one.space.aclService.take([second.bytes])).kind).toBe("split");
      const again = two.space.aclService.draft(addY)!;
      for (const device of [one, two]) await device.space.aclService.take([again.bytes]);
      expect([roleOf(one, x), roleOf(one, y)]).toEqual(["writer", "writer"]);
      expect(sameHead(one, two)).toBe(true);
    }));

  test("[ACL-11] an owner's record decides a split between admins' branches, and the other branch is proposed again", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, x, y] = [createAccount(), createAccount(), createAccount()];
      await add(owner, a, "admin");
      const [one, two] = [devices.open("one", a), devices.open("two", a)];
      await exchange([owner, one, two]);
      for (const [device, account] of [
        [one, x],
        [two, y],
      ] as const) {
        const made = device.space.aclService.draft((c) =>
          addAccounts(c, [{ identity: account.id, permission: "writer" }]),
        )!;
        await device.space.aclService.take([made.bytes]);
      }
      await fetchFrom(owner, one);
      expect((await owner.space.aclService.take(two.aclLog())).kind).toBe("split");
      await owner.space.aclService.act((c) => changePermissions(c, [{ identity: a.id, permission: "writer" }]));
      expect((await two.space.aclService.take(owner.aclLog())).kind).toBe("replaced");
      expect(sameHead(owner, two)).toBe(true);
      expect([roleOf(two, x), roleOf(two, y)]).toEqual(["writer", "none"]);
      await exchange([owner, one, two]);
      expect(sameHead(owner, one)).toBe(true);
    }));
});

describe("a branch that comes record by record", () => {
  test("[ACL-11] is judged as a whole, however late the record comes that decides", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, x, y] = [createAccount(), createAccount(), createAccount()];
      await add(owner, a, "admin");
      const other = devices.open("other", devices.owner);
      const admin = devices.open("admin", a);
      for (const device of [other, admin]) await fetchFrom(device, owner);
      // The admin's record is in the network's log; there a removal by the owner follows it.
      const first = admin.space.aclService.draft((c) => addAccounts(c, [{ identity: x.id, permission: "writer" }]))!;
      for (const device of [admin, other]) await device.space.aclService.take([first.bytes]);
      const second = await remove(other, x);
      // Meanwhile a device without the network adds an account.
      await add(owner, y);
      const kinds: string[] = [];
      for (const { bytes } of [first, second!]) kinds.push((await owner.space.aclService.take([bytes])).kind);
      expect(kinds).toEqual(["lost", "replaced"]);
      await exchange([owner, other, admin]);
      for (const device of [other, admin]) expect(sameHead(owner, device)).toBe(true);
      expect([roleOf(owner, x), roleOf(owner, y)]).toEqual(["none", "writer"]);
    }));

  test("[ACL-11] an admin's record that lost to the owner's takes effect again at once", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, x, y] = [createAccount(), createAccount(), createAccount()];
      await add(owner, a, "admin");
      const admin = devices.open("admin", a);
      await fetchFrom(admin, owner);
      const made = admin.space.aclService.draft((c) => addAccounts(c, [{ identity: x.id, permission: "writer" }]))!;
      await admin.space.aclService.take([made.bytes]);
      await admin.write("a", "under the admin's record");
      await add(owner, y);
      await owner.space.aclService.take([made.bytes]);
      expect(roleOf(owner, x)).toBe("none");
      expect(await owner.space.aclService.sequence()).toHaveLength(1);
      expect(roleOf(owner, x)).toBe("writer");
      await exchange([owner, admin]);
      expect(await owner.values()).toEqual({ a: "under the admin's record" });
      expect(await admin.rows()).toEqual(await owner.rows());
    }));
});
