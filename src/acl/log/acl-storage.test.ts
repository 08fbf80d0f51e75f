/** What an ACL leaves on the disk, which records of an offered log are refused, and which alarms stay. */

import { describe, expect, test } from "bun:test";
import { loopTurns } from "../../../test/support/loop-turns.ts";
import { add, type Device, fetchFrom, withDevices } from "../../../test/support/worlds/acl-devices.ts";
import { createAccount, stateText } from "../../../test/support/worlds/acl-world.ts";
import { bytesToHex } from "../../base/bytes.ts";
import { randomBytes } from "../../base/random.ts";
import type { Account } from "../../crypto/account.ts";
import { refusal } from "../../protocol/refusals.ts";
import { addAccounts } from "../compose/actions.ts";
import { makeEpoch } from "../record/epoch.ts";
import { encodeAclRecord } from "../record/record.ts";
import { readKeyHolders } from "../reducer/state.ts";
import { readOffer } from "./offered-records.ts";

/** Records behind the log's head, each behind the one before, signed by an account without the right to. */
function forgedRecords({ space }: Device, stranger: Account, length: number): Uint8Array[] {
  const { head, space: id, clocks } = space.acl.state;
  const records: Uint8Array[] = [];
  for (let prev = head!; records.length < length; ) {
    const record = encodeAclRecord(
      {
        space: id!,
        prev,
        time: 0,
        clock: clocks.at(-1)!,
        ops: [{ op: "accountRemove", account: stranger.signer.publicKey, cutOffs: [] }],
      },
      stranger.signer,
    );
    records.push(record.bytes);
    prev = record.id;
  }
  return records;
}

describe("storage", () => {
  test("[CHANGE-10] a write that fails leaves neither record nor state nor keys behind", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const { acl, engine, aclService } = owner.space;
      const before = stateText(acl.state);
      const made = aclService.draft((c) => addAccounts(c, [{ identity: createAccount().id, permission: "writer" }]))!;
      const failing = engine.changeAcl((scope) => {
        expect(acl.merge(readOffer([made.bytes], acl.has), scope).kind).toBe("extended");
        throw new Error("the disk is full");
      });
      await expect(failing).rejects.toThrow("the disk is full");
      await engine.idle();
      expect(stateText(acl.state)).toBe(before);
      expect((await aclService.take([made.bytes])).kind).toBe("extended");
      await owner.reopen();
      expect(owner.space.acl.records()).toHaveLength(2);
    }));

  test("[ACL-13] a log that is shorter than what was seen raises an alarm that stays", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      await add(owner, createAccount());
      await add(owner, createAccount());
      owner.space.store.dropAclRecordsFrom(2);
      await owner.reopen();
      expect(owner.space.acl.alarms.list().map(({ kind }) => kind)).toEqual(["rolled_back"]);
      await owner.reopen();
      expect(owner.space.acl.alarms.list()).toHaveLength(1);
      for (const alarm of owner.space.acl.alarms.list()) owner.space.acl.alarms.end(alarm);
      expect(owner.space.acl.alarms.list()).toEqual([]);
    }));

  test("[ACL-13] an epoch whose key was not given to someone it is sealed to raises an alarm there", () =>
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

  test("[ACL-9] a long forged log is read in slices: everything else goes on, and nothing moves", () =>
    withDevices(async (devices) => {
      const owner = devices.open("owner", devices.owner);
      const { acl, aclService } = owner.space;
      const forged = forgedRecords(owner, createAccount(), 4_000);
      const head = acl.head().id;
      for (const take of [() => aclService.take(forged), async () => (await aclService.takeEach(forged))[0]!]) {
        let ended = false;
        let turns = 0;
        const taking = take().finally(() => {
          ended = true;
        });
        for (; !ended; turns++) await loopTurns();
        expect(await taking).toMatchObject({ kind: "refused", taken: 0 });
        expect(turns).toBeGreaterThan(10);
        expect(acl.head().id).toEqual(head);
      }
      const spoilt = [...forged.slice(0, 2), forged[2]!.with(-2, forged[2]!.at(-2)! ^ 1), ...forged.slice(3)];
      expect(await aclService.take(spoilt)).toMatchObject({
        kind: "refused",
        refusal: refusal("acl.record_malformed"),
      });
      expect(await aclService.take([forged[0]!, forged[2]!])).toMatchObject({
        kind: "refused",
        refusal: refusal("acl.records_apart"),
      });
    }));

  test("[ACL-12] records that do not belong, do not follow or do not verify are refused with a reason", () =>
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
      expect(await take(owner.aclLog()[1]!)).toBe("known");
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
