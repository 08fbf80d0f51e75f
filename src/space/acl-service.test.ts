import { describe, expect, test } from "bun:test";
import {
  createDevices,
  type Device,
  type Devices,
  exchange,
  fetchFrom,
  sameHead,
} from "../../test/support/acl-devices.ts";
import { createAccount, stateText } from "../../test/support/acl-world.ts";
import { scratchDir } from "../../test/support/scratch.ts";
import { bytesToHex } from "../base/bytes.ts";
import type { ObjectId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { createBodyOpener } from "../change/body-opener.ts";
import { type Change, decodeChange, encodeChange, encodeHeader, isDerivedRoot } from "../change/change-codec.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import type { Account } from "./account.ts";
import {
  acceptRequest,
  addAccounts,
  changePermissions,
  completeRemovals,
  joinByInvite,
  leaveSpace,
  mintInvite,
  removeAccounts,
  stopSharing,
  transferOwnership,
} from "./acl-actions.ts";
import { makeEpoch } from "./acl-epoch.ts";
import { encodeAclRecord } from "./acl-record.ts";
import type { GrantablePermission } from "./acl-rights.ts";
import { rosterMember } from "./acl-roster.ts";
import { permissionOf, readKeyHolders } from "./acl-state.ts";

async function withDevices(run: (devices: Devices) => Promise<void>): Promise<void> {
  using dir = scratchDir("svc-acl");
  await using devices = createDevices(dir.path);
  await run(devices);
}

const add = (device: Device, account: Account, permission: GrantablePermission = "writer") =>
  device.space.aclService.act((context) => addAccounts(context, [{ identity: account.id, permission }]));
const remove = (device: Device, account: Account) =>
  device.space.aclService.act((context) => removeAccounts(context, [account.id]));
const roleOf = (device: Device, account: Account) => permissionOf(device.space.acl.state, account.signer.publicKey);
const keyIds = (device: Device) => device.space.acl.state.epochs.map(({ epoch }) => bytesToHex(epoch.keyId));

const bytesToCid = (digest: Uint8Array) => cidFromDigest(digest) as ObjectId;
const signedChanges = (device: Device) =>
  device.changes().flatMap(({ bytes }) => {
    const change = decodeChange(bytes);
    return isDerivedRoot(change) ? [] : [change];
  });

describe("membership", () => {
  test("[acl] who is added reads everything, before and after, and after a restart", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await owner.write("a", "before");
      const account = createAccount();
      await add(owner, account);
      await owner.write("b", "after");
      const member = devices.open("member", account);
      await fetchFrom(member, owner);
      expect(await member.values()).toEqual({ a: "before", b: "after" });
      await member.reopen();
      expect(await member.rows()).toEqual(await owner.rows());
      await member.write("c", "mine");
      await fetchFrom(owner, member);
      expect(await owner.values()).toEqual({ a: "before", b: "after", c: "mine" });
    }));

  test("[acl] content that came before its key waits, and opens in the same moment as the key comes", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await owner.write("a", "sealed");
      const account = createAccount();
      const member = devices.open("member", account);
      for (const change of owner.changes()) await member.ingest(change.bytes);
      expect(await member.values()).toEqual({});
      await add(owner, account);
      await member.space.aclService.take(owner.chain());
      expect(await member.values()).toEqual({ a: "sealed" });
      expect(member.space.engine.store.parked.usage().count).toBe(0);
    }));

  test("[acl] who is removed opens nothing written since, keeps what it had, and what it writes on counts nowhere", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      await owner.write("a", "shared");
      await fetchFrom(member, owner);
      await member.write("b", "in time");
      await fetchFrom(owner, member);
      await member.write("c", "unseen");
      await remove(owner, account);
      await owner.write("d", "secret");
      // Before it learns of its removal it writes on, under the old head and the old key.
      await member.write("e", "too late");
      await exchange([owner, member]);
      expect(await owner.values()).toEqual({ a: "shared", b: "in time", d: "secret" });
      expect(await member.values()).toEqual({ a: "shared", b: "in time" });
      expect(member.space.role()).toBe("none");
      expect(member.space.keys.current()).toBeUndefined();
      const held = keyIds(owner).flatMap((id) => member.space.keys.byId(Buffer.from(id, "hex")) ?? []);
      expect(held).toHaveLength(1);
      const since = signedChanges(owner).filter(({ header }) => bytesToHex(header.keyId) === keyIds(owner)[1]);
      expect(since).toHaveLength(1);
      for (const change of since) {
        const object = bytesToCid(change.header.object!);
        expect(member.space.engine.opener.open(change, object)).toHaveProperty("missingKey");
        for (const key of held) {
          const opener = createBodyOpener(member.space.id, { current: () => undefined, byId: () => key });
          expect(opener.open(change, object)).toHaveProperty("broken");
        }
      }
      // Whoever comes anew, and whatever comes first, agrees.
      const late = devices.open("late", devices.owner);
      for (const change of [...member.changes(), ...owner.changes()]) await late.ingest(change.bytes);
      await late.space.aclService.take(owner.chain());
      for (const change of [...member.changes(), ...owner.changes()]) await late.ingest(change.bytes);
      expect(await late.rows()).toEqual(await owner.rows());
    }));

  test("[acl] re-adding a removed member keeps its old changes, and does not bring back what was cut", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      await fetchFrom(member, owner);
      await member.write("a", "old");
      await fetchFrom(owner, member);
      await remove(owner, account);
      await member.write("b", "cut");
      await fetchFrom(owner, member);
      await add(owner, account);
      await fetchFrom(member, owner);
      await member.write("c", "new");
      await exchange([owner, member]);
      expect(await owner.values()).toEqual({ a: "old", c: "new" });
      const fresh = devices.open("fresh", devices.owner);
      await fetchFrom(fresh, member);
      expect(await fresh.rows()).toEqual(await owner.rows());
      expect(await member.rows()).toEqual(await owner.rows());
    }));

  test("[acl] a demoted writer reads on and writes no more", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      await fetchFrom(member, owner);
      await member.write("a", "in time");
      await fetchFrom(owner, member);
      await owner.space.aclService.act((context) =>
        changePermissions(context, [{ identity: account.id, permission: "reader" }]),
      );
      await member.write("b", "too late");
      await owner.write("c", "for readers");
      await exchange([owner, member]);
      expect(await owner.values()).toEqual({ a: "in time", c: "for readers" });
      expect(await member.rows()).toEqual(await owner.rows());
      expect(keyIds(owner)).toHaveLength(1);
    }));

  test("[acl] who leaves may no longer write at once; an owner's device completes it with a new key", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      await fetchFrom(member, owner);
      const left = member.space.aclService.draft(leaveSpace)!;
      expect((await member.space.aclService.take([left.bytes])).kind).toBe("extended");
      expect(member.space.role()).toBe("none");
      await fetchFrom(owner, member);
      expect(owner.space.acl.state.members.get(bytesToHex(account.signer.publicKey))!.status).toBe("removing");
      await owner.space.aclService.act(completeRemovals);
      expect(owner.space.acl.state.members.get(bytesToHex(account.signer.publicKey))!.status).toBe("removed");
      expect(keyIds(owner)).toHaveLength(2);
      await fetchFrom(member, owner);
      expect(member.space.keys.current()).toBeUndefined();
    }));

  test("[acl] an open invite is joined without anybody's help, and removing who came by it ends it", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await owner.write("a", "for guests of honour");
      const inviteSeed = randomBytes(32);
      await owner.space.aclService.act((context) =>
        mintInvite(context, inviteSeed, { mode: "open", permission: "writer" }),
      );
      const account = createAccount();
      const joiner = devices.open("joiner", account);
      await joiner.space.aclService.take(owner.chain());
      const joined = joiner.space.aclService.draft((c) => joinByInvite(c, inviteSeed, { name: "Jo" }), { inviteSeed })!;
      await joiner.space.aclService.take([joined.bytes]);
      await exchange([owner, joiner]);
      expect(await joiner.values()).toEqual({ a: "for guests of honour" });
      expect(roleOf(owner, account)).toBe("writer");
      await remove(owner, account);
      expect(owner.space.acl.state.invites.size).toBe(0);
      expect([...readKeyHolders(owner.space.acl.state).keys()]).toEqual([bytesToHex(devices.owner.signer.publicKey)]);
    }));

  test("[acl] stopping to share drops everybody, and does nothing where nobody is", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      expect(await owner.space.aclService.act(stopSharing)).toBeUndefined();
      const [writer, reader] = [createAccount(), createAccount()];
      await add(owner, writer);
      await add(owner, reader, "reader");
      await owner.space.aclService.act((context) => mintInvite(context, randomBytes(32), { mode: "request" }));
      await owner.space.aclService.act(stopSharing);
      expect([roleOf(owner, writer), roleOf(owner, reader)]).toEqual(["none", "none"]);
      expect(owner.space.acl.state.invites.size).toBe(0);
      expect(readKeyHolders(owner.space.acl.state).size).toBe(1);
      await owner.write("a", "alone");
      const device = devices.open("writer", writer);
      await fetchFrom(device, owner);
      expect(await device.values()).toEqual({});
    }));
});

describe("nobody writes into the past", () => {
  /** A change of the member's writer in the place of another: same seq and parents, other content. */
  function forgeSibling(member: Device, of: Change): Uint8Array {
    const space = member.space;
    const object = space.engine.objects.byId(of.header.object!)!;
    const epoch = { id: of.header.keyId, key: space.keys.byId(of.header.keyId)! };
    const headerBytes = encodeHeader(of.header);
    const body = {
      dataset: "items",
      records: [{ id: "forged", upsert: true, ops: [{ type: "$set" as const, path: "v", value: "forged" }] }],
    };
    const sealed = space.engine.opener.seal(body, object.idText, epoch, headerBytes);
    return encodeChange(of.header, headerBytes, sealed, member.account.signer).bytes;
  }

  for (const order of ["record first", "changes first", "forgery between"] as const) {
    test(`[acl] a second change in a place that was pinned does not count: ${order}`, () =>
      withDevices(async (devices) => {
        const owner = devices.open("owner", devices.owner);
        const account = createAccount();
        await add(owner, account);
        const member = devices.open("member", account);
        await fetchFrom(member, owner);
        for (const id of ["a", "b", "c"]) await member.write(id, "honest");
        await fetchFrom(owner, member);
        await remove(owner, account);
        const own = owner.changes().filter(({ seq }) => seq > 0);
        const middle = decodeChange(own[1]!.bytes) as Change;
        const forged = forgeSibling(member, middle);
        const late = devices.open("late", devices.owner);
        const all = owner.changes().map(({ bytes }) => bytes);
        const takeChain = () => late.space.aclService.take(owner.chain());
        const steps =
          order === "record first"
            ? [
                takeChain,
                ...all.slice(0, 2).map((b) => () => late.ingest(b)),
                () => late.ingest(forged),
                ...all.slice(2).map((b) => () => late.ingest(b)),
              ]
            : order === "changes first"
              ? [...all.map((b) => () => late.ingest(b)), () => late.ingest(forged), takeChain]
              : [
                  () => late.ingest(forged),
                  ...all.map((b) => () => late.ingest(b)),
                  takeChain,
                  () => late.ingest(forged),
                ];
        for (const step of steps) await step();
        for (const bytes of all) await late.ingest(bytes);
        await late.ingest(forged);
        await owner.ingest(forged);
        expect(await late.values()).toEqual({ a: "honest", b: "honest", c: "honest" });
        expect(await late.rows()).toEqual(await owner.rows());
        expect(owner.changes()).toHaveLength(late.changes().length);
      }));
  }

  test("[acl] both ends of a writer that forked before its removal stay", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const account = createAccount();
      await add(owner, account);
      const member = devices.open("member", account);
      await fetchFrom(member, owner);
      for (const id of ["a", "b"]) await member.write(id, "honest");
      const last = decodeChange(member.changes().at(-1)!.bytes) as Change;
      const sibling = forgeSibling(member, last);
      await fetchFrom(owner, member);
      await owner.ingest(sibling);
      await remove(owner, account);
      expect(await owner.values()).toEqual({ a: "honest", b: "honest", forged: "forged" });
    }));
});

describe("forks between an owner's devices", () => {
  /** Two devices of the owner and one of a member that saw both sides, after each device acted alone. */
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

  test("[acl] both sides' acts take effect, everything written counts, and all agree", () =>
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
        expect(device.space.aclService.units()).toEqual([]);
        await device.reopen();
        await device.space.engine.rebuildProjection();
        expect(await device.rows()).toEqual(await one.rows());
      }
      const late = devices.open("late", devices.owner);
      await fetchFrom(late, member);
      expect(await late.rows()).toEqual(await one.rows());
    }));

  test("[acl] what takes authority away wins, and what both wrote under their own new keys opens for all who remain", () =>
    withDevices(async (devices) => {
      const [x, y, z] = [createAccount(), createAccount(), createAccount()];
      const setup = devices.open("setup", devices.owner);
      for (const account of [x, y, z]) await add(setup, account);
      const one = devices.open("one", devices.owner);
      const two = devices.open("two", devices.owner);
      const reader = devices.open("z", z);
      for (const device of [one, two, reader]) await fetchFrom(device, setup);
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
      // Whoever was removed on either side opens nothing that is written now.
      await one.write("three", "for those who remain");
      for (const gone of [x, y]) {
        const device = devices.open(`gone-${gone.id}`, gone);
        await fetchFrom(device, one);
        expect(device.space.keys.current()).toBeUndefined();
        expect(Object.keys(await device.values())).not.toContain("three");
      }
    }));

  test("[acl] what a member wrote under a record that can take effect no more still counts", () =>
    withDevices(async (devices) => {
      const [m, x, y] = [createAccount(), createAccount(), createAccount()];
      const one = devices.open("one", devices.owner);
      for (const account of [m, y]) await add(one, account);
      const two = devices.open("two", devices.owner);
      const member = devices.open("m", m);
      await exchange([one, two, member]);
      await add(two, x);
      await fetchFrom(member, two);
      await member.write("m", "under two's record");
      await remove(one, y);
      await add(one, x);
      await exchange([one, two]);
      expect(two.space.aclService.units()).toEqual([]);
      await exchange([one, two, member]);
      statesAgree([one, two, member]);
      for (const device of [one, two, member]) expect(await device.values()).toEqual({ m: "under two's record" });
    }));

  test("[acl] what either side cut off counts nowhere, whichever side wins", () =>
    withDevices(async (devices) => {
      for (let i = 0; i < 4; i++) {
        const [x, y] = [createAccount(), createAccount()];
        const one = devices.open(`one-${i}`, devices.owner);
        for (const account of [x, y]) await add(one, account);
        const two = devices.open(`two-${i}`, devices.owner);
        const member = devices.open(`x-${i}`, x);
        await exchange([one, two, member]);
        await member.write("a", "seen by both");
        // The member writes under a record before the one that the branches leave from.
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

  test("[acl] a restart between losing a branch and proposing it again loses no key", () =>
    withDevices(async (devices) => {
      const [x, y] = [createAccount(), createAccount()];
      const one = devices.open("one", devices.owner);
      for (const account of [x, y]) await add(one, account);
      const two = devices.open("two", devices.owner);
      await fetchFrom(two, one);
      await remove(one, x);
      await one.write("one", "under one's key");
      await remove(two, y);
      await two.write("two", "under two's key");
      const [ofOne, ofTwo] = [one.chain(), two.chain()];
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

  test("[acl] a demotion beats an addition whatever the ids are", () =>
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

  test("[acl] a transfer beats what the old owner did elsewhere, also to take it back", () =>
    withDevices(async (devices) => {
      const [heir, other] = [createAccount(), createAccount()];
      const one = devices.open("one", devices.owner);
      await add(one, heir);
      await add(one, other);
      const two = devices.open("two", devices.owner);
      await fetchFrom(two, one);
      await one.space.aclService.act((context) => transferOwnership(context, heir.id, "admin"));
      await remove(two, heir);
      await exchange([one, two]);
      statesAgree([one, two]);
      expect(roleOf(two, heir)).toBe("owner");
      // Nor a second transfer once the heir has acted.
      const three = devices.open("three", devices.owner);
      await three.space.aclService.take(one.chain().slice(0, 3));
      await three.space.aclService.act((context) => transferOwnership(context, other.id, "admin"));
      const device = devices.open("heir", heir);
      await fetchFrom(device, one);
      await add(device, createAccount());
      const head = device.space.acl.head().id;
      expect((await device.space.aclService.take(three.chain())).kind).toBe("split");
      expect(device.space.acl.head().id).toEqual(head);
      expect(device.space.acl.alarms.list().map(({ kind }) => kind)).toEqual(["split"]);
    }));
});

describe("proposals", () => {
  test("[acl] without a network only the owner extends the chain; what others ask for its device carries out", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [adminAccount, joinerAccount] = [createAccount(), createAccount()];
      await add(owner, adminAccount, "admin");
      await owner.write("a", "hello");
      const admin = devices.open("admin", adminAccount);
      await fetchFrom(admin, owner);
      const inviteSeed = randomBytes(32);
      const mint = (context: Parameters<typeof mintInvite>[0]) => mintInvite(context, inviteSeed, { mode: "request" });
      await expect(admin.space.aclService.act(mint)).rejects.toMatchObject({ code: "acl.forbidden" });
      const minted = await admin.space.aclService.propose(mint);
      expect(admin.space.acl.state.invites.size).toBe(0);
      await exchange([owner, admin]);
      expect([...admin.space.acl.state.invites.values()].map(({ id }) => bytesToHex(id))).toEqual([
        bytesToHex(minted!.id),
      ]);
      expect(admin.space.aclService.units()).toEqual([]);

      const joiner = devices.open("joiner", joinerAccount);
      await joiner.space.aclService.take(admin.chain());
      await joiner.space.aclService.propose((context) => joinByInvite(context, inviteSeed, { name: "Jo" }));
      await exchange([owner, admin, joiner]);
      const { requestRecordId } = pendingRow(admin, joinerAccount);
      await admin.space.aclService.propose((context) => acceptRequest(context, requestRecordId!, "writer"));
      await exchange([owner, admin, joiner]);
      expect(joiner.space.role()).toBe("writer");
      expect(await joiner.values()).toEqual({ a: "hello" });
      await joiner.write("b", "from the joiner");
      await exchange([owner, admin, joiner]);
      expect(await owner.values()).toEqual({ a: "hello", b: "from the joiner" });
    }));

  test("[acl] two admins who act at once end with one roster", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, b, x] = [createAccount(), createAccount(), createAccount()];
      await add(owner, a, "admin");
      await add(owner, b, "admin");
      await add(owner, x);
      const [one, two] = [devices.open("a", a), devices.open("b", b)];
      await exchange([owner, one, two]);
      await one.space.aclService.propose((c) => removeAccounts(c, [x.id]));
      await two.space.aclService.propose((c) => changePermissions(c, [{ identity: x.id, permission: "reader" }]));
      await exchange([owner, one, two]);
      expect(roleOf(owner, x)).toBe("none");
      for (const device of [one, two]) expect(stateText(device.space.acl.state)).toBe(stateText(owner.space.acl.state));
      expect(owner.space.acl.alarms.list()).toEqual([]);
    }));

  test("[acl] what its author may no longer do when the owner's device meets it is forgotten", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, x] = [createAccount(), createAccount()];
      await add(owner, a, "admin");
      const admin = devices.open("a", a);
      await fetchFrom(admin, owner);
      await admin.space.aclService.propose((c) => addAccounts(c, [{ identity: x.id, permission: "writer" }]));
      await owner.space.aclService.act((c) => changePermissions(c, [{ identity: a.id, permission: "writer" }]));
      const [unit] = admin.space.aclService.units();
      expect(await owner.space.aclService.takeUnits([unit!, randomBytes(50)])).toEqual([
        { kind: "refused", reason: "only the owner and admins add accounts" },
        { kind: "refused", reason: "it is neither a record nor a proposal" },
      ]);
      await exchange([owner, admin]);
      expect(roleOf(owner, x)).toBe("none");
    }));
});

describe("with a network", () => {
  test("[acl] of two records on one head the network takes one, and the other is built anew", () =>
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

  test("[acl] an owner's record decides a split between admins' branches, and the other branch is proposed again", () =>
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
      expect((await owner.space.aclService.take(two.chain())).kind).toBe("split");
      await owner.space.aclService.act((c) => changePermissions(c, [{ identity: a.id, permission: "writer" }]));
      expect((await two.space.aclService.take(owner.chain())).kind).toBe("replaced");
      expect(sameHead(owner, two)).toBe(true);
      expect([roleOf(two, x), roleOf(two, y)]).toEqual(["writer", "none"]);
      await exchange([owner, one, two]);
      expect(sameHead(owner, one)).toBe(true);
    }));
});

describe("a branch that comes record by record", () => {
  test("[acl] is judged as a whole, however late the record comes that decides", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, x, y] = [createAccount(), createAccount(), createAccount()];
      await add(owner, a, "admin");
      const other = devices.open("other", devices.owner);
      const admin = devices.open("admin", a);
      for (const device of [other, admin]) await fetchFrom(device, owner);
      // The admin's record stands in the network's log, an owner's removal of somebody follows it there.
      const first = admin.space.aclService.draft((c) => addAccounts(c, [{ identity: x.id, permission: "writer" }]))!;
      for (const device of [admin, other]) await device.space.aclService.take([first.bytes]);
      const second = await remove(other, x);
      // Meanwhile a device without the network adds somebody.
      await add(owner, y);
      const kinds: string[] = [];
      for (const { bytes } of [first, second!]) kinds.push((await owner.space.aclService.take([bytes])).kind);
      expect(kinds).toEqual(["lost", "replaced"]);
      await exchange([owner, other, admin]);
      for (const device of [other, admin]) expect(sameHead(owner, device)).toBe(true);
      expect([roleOf(owner, x), roleOf(owner, y)]).toEqual(["none", "writer"]);
    }));

  test("[acl] an admin's record that lost to the owner's takes effect again at once", () =>
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

describe("storage", () => {
  test("[acl] a write that fails leaves neither chain nor state nor keys behind", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const { acl, engine, aclService } = owner.space;
      const before = stateText(acl.state);
      const made = aclService.draft((c) => addAccounts(c, [{ identity: createAccount().id, permission: "writer" }]))!;
      const failing = engine.moveAcl((scope) => {
        expect(acl.merge([made.bytes], scope).kind).toBe("extended");
        throw new Error("the disk is full");
      });
      await expect(failing).rejects.toThrow("the disk is full");
      await engine.idle();
      expect(stateText(acl.state)).toBe(before);
      expect((await aclService.take([made.bytes])).kind).toBe("extended");
      await owner.reopen();
      expect(owner.space.acl.records()).toHaveLength(2);
    }));

  test("[acl] a chain that is shorter than what was seen raises an alarm that stays", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await add(owner, createAccount());
      await add(owner, createAccount());
      owner.space.engine.store.cutAclRecords(2);
      await owner.reopen();
      expect(owner.space.acl.alarms.list().map(({ kind }) => kind)).toEqual(["rolled_back"]);
      await owner.reopen();
      expect(owner.space.acl.alarms.list()).toHaveLength(1);
      owner.space.acl.alarms.clear();
      expect(owner.space.acl.alarms.list()).toEqual([]);
    }));

  test("[acl] an epoch whose key was not given to someone it is sealed to raises an alarm there", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, b] = [createAccount(), createAccount()];
      await add(owner, a, "admin");
      await add(owner, b);
      const victim = devices.open("b", b);
      await fetchFrom(victim, owner);
      const context = owner.space.aclService.context();
      const holders = [...readKeyHolders(context.state).values()];
      const epoch = makeEpoch(context.spaceId, randomBytes(32), holders, [context.keys.current()!]);
      const wrong = makeEpoch(context.spaceId, randomBytes(32), holders, []);
      const at = holders.findIndex((key) => bytesToHex(key) === bytesToHex(b.signer.publicKey));
      epoch.sealed[at] = wrong.sealed[at]!;
      const { bytes } = encodeAclRecord(
        {
          space: context.state.space!,
          prev: context.state.head!,
          time: 1,
          clock: context.state.clocks.at(-1)!,
          ops: [{ op: "readKeyChange", epoch }],
        },
        a.signer,
      );
      expect((await victim.space.aclService.take([bytes])).kind).toBe("extended");
      expect(victim.space.acl.alarms.list()).toEqual([{ kind: "key", record: bytesToHex(epoch.keyId) }]);
      expect((await owner.space.aclService.take([bytes])).kind).toBe("extended");
      expect(owner.space.acl.alarms.list()).toEqual([]);
    }));

  test("[acl] records that do not belong, do not follow or do not verify are refused with a reason", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await add(owner, createAccount());
      const { aclService } = owner.space;
      const context = aclService.context();
      const take = async (bytes: Uint8Array) => (await aclService.take([bytes])).kind;
      const base = { space: context.state.space!, prev: context.state.head!, time: 1, clock: context.state.clocks[1]! };
      const ops = [{ op: "spaceDelete" as const }];
      const signer = devices.owner.signer;
      expect(await take(randomBytes(100))).toBe("refused");
      expect(await take(encodeAclRecord({ ...base, ops, space: randomBytes(32) }, signer).bytes)).toBe("refused");
      expect(await take(encodeAclRecord({ ...base, ops, prev: null }, signer).bytes)).toBe("refused");
      expect(await take(encodeAclRecord({ ...base, ops, prev: randomBytes(32) }, signer).bytes)).toBe("gap");
      expect(await take(encodeAclRecord({ ...base, ops, clock: base.clock + 2 ** 33 }, signer).bytes)).toBe("refused");
      expect(await take(encodeAclRecord({ ...base, ops }, createAccount().signer).bytes)).toBe("refused");
      expect(await take(owner.chain()[1]!)).toBe("known");
      expect(owner.space.acl.records()).toHaveLength(2);
      expect(await take(encodeAclRecord({ ...base, ops }, signer).bytes)).toBe("extended");
      expect(await take(composeAfterEnd(owner))).toBe("refused");
    }));
});

function composeAfterEnd(owner: Device): Uint8Array {
  const { state } = owner.space.acl;
  const record = { space: state.space!, prev: state.head!, time: 1, clock: state.clocks.at(-1)! };
  return encodeAclRecord({ ...record, ops: [{ op: "selfRemove" }] }, owner.account.signer).bytes;
}

function pendingRow(device: Device, account: Account) {
  return rosterMember(device.space.id, device.space.acl.state, device.space.keys, account.signer.publicKey)!;
}
