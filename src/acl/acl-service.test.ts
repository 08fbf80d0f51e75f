import { describe, expect, test } from "bun:test";
import {
  add,
  type Device,
  exchange,
  fetchFrom,
  keyIds,
  openPair,
  remove,
  roleOf,
  withDevices,
} from "../../test/support/worlds/acl-devices.ts";
import { createAccount, stateText } from "../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../base/bytes.ts";
import type { ObjectId } from "../base/ids.ts";
import { randomBytes } from "../base/random.ts";
import { createBodyOpener } from "../change/codec/body-opener.ts";
import { decodeChange, isDerivedRoot } from "../change/codec/change-codec.ts";
import type { Account } from "../crypto/account.ts";
import { cidFromDigest } from "../crypto/cid.ts";
import { refusal } from "../protocol/refusals.ts";
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
} from "./compose/actions.ts";
import type { AclContext } from "./compose/compose.ts";
import { rosterMember } from "./reducer/roster.ts";
import { readKeyHolders } from "./reducer/state.ts";

const bytesToCid = (digest: Uint8Array) => cidFromDigest(digest) as ObjectId;
const signedChanges = (device: Device) =>
  device.changes().flatMap(({ bytes }) => {
    const change = decodeChange(bytes);
    return isDerivedRoot(change) ? [] : [change];
  });

describe("membership", () => {
  test("[ACL-14] who is added reads everything, before and after, and after a restart", () =>
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

  test("[ACL-8] who is let in is told until that succeeded, after a restart too, and then no more", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const notified: string[][] = [];
      const notify = () => owner.space.aclService.notifyAdmitted(async (accounts) => void notified.push(accounts));
      const [added, gone] = [createAccount(), createAccount()];
      await add(owner, added);
      await add(owner, gone);
      await remove(owner, gone);
      const failing = owner.space.aclService.notifyAdmitted(() => Promise.reject(new Error("nobody can be told")));
      expect(failing).rejects.toThrow("nobody can be told");
      await failing.catch(() => {});
      await owner.reopen();
      await notify();
      await notify();
      expect(notified).toEqual([[added.id]]);
    }));

  test("[ACL-8] who is let in by what an owner's device gives a position is told, and nobody is whose record found none", () =>
    withDevices(async (devices) => {
      const { owner, account: admin, member } = await openPair(devices, "admin");
      const notified: string[] = [];
      const notify = () => owner.space.aclService.notifyAdmitted(async (accounts) => void notified.push(...accounts));
      await notify();
      expect(notified.splice(0)).toEqual([admin.id]);
      const [proposed, drafted] = [createAccount(), createAccount()];
      const adding =
        ({ id }: Account) =>
        (context: AclContext) =>
          addAccounts(context, [{ identity: id, permission: "writer" }]);
      await member.space.aclService.propose(adding(proposed));
      await owner.space.aclService.keepUnnotified(owner.space.aclService.draft(adding(drafted))!);
      await exchange([owner, member]);
      await notify();
      expect(notified).toEqual([proposed.id]);
      // The process that appended the record may still learn that it counts; another run cannot.
      await owner.space.aclService.forgetUnnotifiedInVain();
      expect(owner.space.store.unnotified.all()).toHaveLength(1);
      await owner.reopen();
      await owner.space.aclService.forgetUnnotifiedInVain();
      expect(owner.space.store.unnotified.all()).toEqual([]);
    }));

  test("[CHANGE-5] content that came before its key waits, and opens in the same moment as the key comes", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await owner.write("a", "sealed");
      const account = createAccount();
      const member = devices.open("member", account);
      for (const change of owner.changes()) await member.ingest(change.bytes);
      expect(await member.values()).toEqual({});
      await add(owner, account);
      await member.space.aclService.take(owner.aclLog());
      expect(await member.values()).toEqual({ a: "sealed" });
      expect(member.space.store.parked.usage().count).toBe(0);
    }));

  test("[ACL-14] who is removed opens nothing written since, keeps what it had, and what it writes on counts nowhere", () =>
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
      // Before the member learns of its removal it keeps writing, under the old head and the old key.
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
      // A device that joins later agrees, in whatever order the data arrives.
      const late = devices.open("late", devices.owner);
      for (const change of [...member.changes(), ...owner.changes()]) await late.ingest(change.bytes);
      await late.space.aclService.take(owner.aclLog());
      for (const change of [...member.changes(), ...owner.changes()]) await late.ingest(change.bytes);
      expect(await late.rows()).toEqual(await owner.rows());
    }));

  test("[ACL-14] re-adding a removed member keeps its old changes, and does not bring back what was cut", () =>
    withDevices(async (devices) => {
      const { owner, account, member } = await openPair(devices);
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

  test("[ACL-14] a demoted writer reads on and writes no more", () =>
    withDevices(async (devices) => {
      const { owner, account, member } = await openPair(devices);
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

  test("[ACL-3] [ACL-14] who leaves may no longer write at once; an owner's device completes it with a new key", () =>
    withDevices(async (devices) => {
      const { owner, account, member } = await openPair(devices);
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

  test("[ACL-17] an open invite is joined without anybody's help, and removing who came by it ends it", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await owner.write("a", "for guests of honour");
      const inviteSeed = randomBytes(32);
      await owner.space.aclService.act((context) =>
        mintInvite(context, inviteSeed, { mode: "open", permission: "writer" }),
      );
      const account = createAccount();
      const joiner = devices.open("joiner", account);
      await joiner.space.aclService.take(owner.aclLog());
      const joined = joiner.space.aclService.draft((c) => joinByInvite(c, inviteSeed, { name: "Jo" }), { inviteSeed })!;
      await joiner.space.aclService.take([joined.bytes]);
      await exchange([owner, joiner]);
      expect(await joiner.values()).toEqual({ a: "for guests of honour" });
      expect(roleOf(owner, account)).toBe("writer");
      await remove(owner, account);
      expect(owner.space.acl.state.invites.size).toBe(0);
      expect([...readKeyHolders(owner.space.acl.state).keys()]).toEqual([bytesToHex(devices.owner.signer.publicKey)]);
    }));

  test("[ACL-14] stopping to share drops everybody, and does nothing where nobody is", () =>
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

describe("proposals", () => {
  test("[ACL-15] without a network only the owner extends the log; what others ask for its device carries out", () =>
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
      expect(admin.space.aclService.pending()).toEqual([]);

      const joiner = devices.open("joiner", joinerAccount);
      await joiner.space.aclService.take(admin.aclLog());
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

  test("[ACL-17] who joins again takes back that it left, and nothing else that it asked for", () =>
    withDevices(async (devices) => {
      const { owner, account, member } = await openPair(devices, "admin");
      const added = createAccount();
      await member.space.aclService.propose((c) => addAccounts(c, [{ identity: added.id, permission: "reader" }]));
      await member.space.aclService.propose(leaveSpace);
      expect(member.space.aclService.pending()).toHaveLength(2);
      await member.space.aclService.withdrawLeave();
      await exchange([owner, member]);
      expect([roleOf(owner, account), roleOf(owner, added)]).toEqual(["admin", "reader"]);
    }));

  test("[ACL-11] two admins who act at once end with one roster", () =>
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

  test("[ACL-15] what its author may no longer do when the owner's device meets it is forgotten", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const [a, x] = [createAccount(), createAccount()];
      await add(owner, a, "admin");
      const admin = devices.open("a", a);
      await fetchFrom(admin, owner);
      await admin.space.aclService.propose((c) => addAccounts(c, [{ identity: x.id, permission: "writer" }]));
      await owner.space.aclService.act((c) => changePermissions(c, [{ identity: a.id, permission: "writer" }]));
      const [pending] = admin.space.aclService.pending();
      expect(await owner.space.aclService.takePending([pending!, randomBytes(50)])).toEqual([
        { kind: "refused", refusal: refusal("acl.managers_only", { act: "accountAdd" }) },
        { kind: "refused", refusal: refusal("acl.pending_malformed") },
      ]);
      await exchange([owner, admin]);
      expect(roleOf(owner, x)).toBe("none");
    }));

  test(
    "[ACL-15] a record that gave effect to what can have none any more waits with the one behind it, and keeps nobody busy",
    () =>
      withDevices(async (devices) => {
        const [first, second, third] = ["first", "second", "third"].map((name) => devices.open(name, devices.owner));
        const [a, x, y] = [createAccount(), createAccount(), createAccount()];
        await add(first!, a, "admin");
        const admin = devices.open("a", a);
        for (const device of [second!, third!, admin]) await fetchFrom(device, first!);
        await admin.space.aclService.propose((c) => addAccounts(c, [{ identity: x.id, permission: "writer" }]));
        await first!.space.aclService.takePending(admin.space.aclService.pending());
        expect(await first!.space.aclService.sequence()).toHaveLength(1);
        await fetchFrom(second!, first!);
        await add(second!, y);
        await remove(third!, a); // its branch wins
        await fetchFrom(first!, third!);
        await fetchFrom(first!, second!);
        expect([roleOf(first!, a), roleOf(first!, x), roleOf(first!, y)]).toEqual(["none", "none", "none"]);
        expect(await first!.space.aclService.sequence()).toEqual([]); // the other device's turn comes first
        expect(first!.space.aclService.pending()).toHaveLength(2);
        devices.wait(11 * 60_000);
        await first!.space.aclService.sequence();
        expect([roleOf(first!, x), roleOf(first!, y)]).toEqual(["none", "writer"]);
        expect(first!.space.aclService.pending()).toEqual([]);
        await exchange([first!, second!, third!]);
        for (const device of [second!, third!])
          expect(stateText(device.space.acl.state)).toBe(stateText(first!.space.acl.state));
      }),
    20_000,
  );
});

function pendingRow(device: Device, account: Account) {
  return rosterMember(device.space.id, device.space.acl.state, device.space.keys, account.signer.publicKey)!;
}
