import { describe, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { countDatabaseWork } from "../../../test/support/database-work.ts";
import { boundsOf } from "../../../test/support/hostile/attack-bounds.ts";
import { loopTurns } from "../../../test/support/loop-turns.ts";
import { scratchDir } from "../../../test/support/scratch.ts";
import { add, createDevices, type Device, type Devices } from "../../../test/support/worlds/acl-devices.ts";
import {
  type AclWorld,
  aclLogOf,
  createAccount,
  createAclWorld,
  fillLog,
  stateText,
} from "../../../test/support/worlds/acl-world.ts";
import { addAccounts, removeAccounts } from "../compose/actions.ts";
import { encodeAclRecord } from "../record/record.ts";

const RECORDS = 1200;

async function withOwner(run: (devices: Devices, one: Device, world: AclWorld, dir: string) => Promise<void>) {
  using dir = scratchDir("svc-acl");
  await using devices = createDevices(dir.path);
  await run(devices, devices.open("one", devices.owner), createAclWorld(devices), dir.path);
}

const storedRows = ({ space }: Device): number =>
  space.store.db.query<{ n: number }, []>("SELECT count(*) AS n FROM acl_records").get()!.n;
const stands = ({ space }: Device): number => space.store.aclRecords().length;

/** Resolves once some of the incoming records are stored while none is part of the log. */
async function untilAhead(device: Device): Promise<void> {
  while (storedRows(device) < 300) await loopTurns();
  expect(stands(device)).toBe(1);
}

describe("a long log", () => {
  for (const way of ["take", "takeEach"] as const)
    test(`[ACL-9] is taken (${way}) in turns of bounded work, and is seen as a whole or not at all`, async () => {
      using work = countDatabaseWork();
      await withOwner(async (_devices, one, world) => {
        fillLog(world, RECORDS);
        const seen = new Set<number>();
        const lengths: number[] = [];
        one.space.events.on("aclChanged", () => void lengths.push(one.space.acl.records().length));
        let isOver = false;
        const watch = (): void => {
          seen.add(one.space.acl.records().length);
          if (!isOver) setImmediate(watch);
        };
        watch();
        work.restart();
        await one.space.aclService[way](aclLogOf(world));
        const { most, all } = work.read();
        isOver = true;
        expect(most).toBeLessThan(boundsOf("a member with the right to write").turnWork);
        expect(all).toBeLessThan(3 * RECORDS);
        expect(lengths).toEqual([RECORDS + 1]);
        expect([...seen].filter((length) => length !== 1 && length !== RECORDS + 1)).toEqual([]);
        expect(seen.has(1)).toBe(true);
        expect(stateText(one.space.acl.state)).toBe(stateText(world.state));
        await one.reopen();
        expect(stateText(one.space.acl.state)).toBe(stateText(world.state));
        expect(one.space.acl.isSnapshotDue()).toBe(false);
        expect(one.aclLog()).toEqual(aclLogOf(world));
      });
    });

  test("[ACL-9] of which a crash left a part behind the end is as if none of it had come, and comes again", () =>
    withOwner(async (devices, one, world, dir) => {
      fillLog(world, RECORDS);
      const taking = one.space.aclService.take(aclLogOf(world));
      await untilAhead(one);
      one.space.store.db.query("VACUUM INTO ?").run(join(dir, "crashed"));
      expect((await taking).kind).toBe("extended");
      for (const name of ["fetches", "acts"]) {
        const late = devices.open(name, devices.owner);
        await late.reopen(() => copyFileSync(join(dir, "crashed"), join(dir, `${name}.db`)));
        expect(storedRows(late)).toBeGreaterThan(stands(late));
        expect([stands(late), late.aclLog().length]).toEqual([1, 1]);
        expect(late.space.store.sync.recordsKeptNowhereElse()).toBe(1);
        if (name === "acts") {
          await add(late, createAccount());
          expect([storedRows(late), late.aclLog().length]).toEqual([2, 2]);
        } else {
          expect((await late.space.aclService.take(aclLogOf(world))).kind).toBe("extended");
          expect(stateText(late.space.acl.state)).toBe(stateText(world.state));
        }
        const text = stateText(late.space.acl.state);
        await late.reopen();
        expect(stateText(late.space.acl.state)).toBe(text);
      }
    }));

  test("[ACL-9] behind which something else is put while it comes in ends as if it had come at once", () =>
    withOwner(async (devices, one, world) => {
      const other = createAccount();
      world.act(world.owner, (context) => addAccounts(context, [{ identity: other.id, permission: "admin" }]));
      fillLog(world, RECORDS);
      const taking = one.space.aclService.take(aclLogOf(world));
      await untilAhead(one);
      await add(one, createAccount());
      const ours = one.aclLog();
      await taking;
      const two = devices.open("two", devices.owner);
      await two.space.aclService.take(ours);
      await two.space.aclService.take(aclLogOf(world));
      expect(stateText(one.space.acl.state)).toBe(stateText(two.space.acl.state));
      await one.reopen();
      expect(stateText(one.space.acl.state)).toBe(stateText(two.space.acl.state));
      expect(storedRows(one)).toBe(one.aclLog().length);
    }));

  test("[ACL-9] between whose records anybody put others is taken without those, each told by its fault", () =>
    withOwner(async (_devices, one, world) => {
      const stranger = createAccount();
      const offered: Uint8Array[] = [];
      for (let i = 0; i < 100; i++) {
        const { head, space } = world.state;
        const draft = { space: space!, prev: head!, time: 1, clock: 0, ops: [{ op: "guestRevoke" } as const] };
        offered.push(encodeAclRecord(draft, stranger.signer).bytes);
        fillLog(world, 1);
        offered.push(world.records.at(-1)!.bytes);
      }
      const merges = await one.space.aclService.takeEach(offered);
      expect(merges.map(({ kind }) => kind)).toEqual(offered.map((_, at) => (at % 2 ? "extended" : "refused")));
      expect(stateText(one.space.acl.state)).toBe(stateText(world.state));
    }));

  test("[ACL-9] that ends with a fault is taken up to it", () =>
    withOwner(async (_devices, one, world) => {
      fillLog(world, 100);
      const good = aclLogOf(world);
      const { head, space } = world.state;
      const draft = { space: space!, prev: head!, time: 1, clock: 0, ops: [{ op: "guestRevoke" } as const] };
      const bad = encodeAclRecord(draft, createAccount().signer).bytes;
      expect(await one.space.aclService.take([...good, bad])).toMatchObject({ kind: "refused", taken: 100 });
      expect(one.aclLog()).toEqual(good);
    }));

  test("[ACL-14] with many epochs gives the keys of all of them, and says which of them lie", () =>
    withOwner(async (devices, _one, world) => {
      const reader = createAccount();
      world.act(world.owner, (context) => addAccounts(context, [{ identity: reader.id, permission: "reader" }]));
      for (let i = 0; i < 40; i++) {
        const guest = createAccount();
        world.act(world.owner, (context) => addAccounts(context, [{ identity: guest.id, permission: "reader" }]));
        world.act(world.owner, (context) => removeAccounts(context, [guest.id]));
      }
      const device = devices.open("reader", reader);
      await device.space.aclService.take(aclLogOf(world));
      const { keys, acl } = device.space;
      expect(acl.state.epochs).toHaveLength(41);
      for (const { epoch } of acl.state.epochs) expect(keys.byId(epoch.keyId)).toBeDefined();
      expect(keys.broken()).toEqual([]);
      expect(keys.transportSecret()).toBeDefined();
    }));

  test("[ACL-9] of an admin who puts a long branch beside the log is judged in turns of bounded work, and kept as far as there is room", async () => {
    using work = countDatabaseWork();
    await withOwner(async (devices, one, world) => {
      const admin = createAccount();
      world.act(world.owner, (context) => addAccounts(context, [{ identity: admin.id, permission: "admin" }]));
      expect((await one.space.aclService.take(aclLogOf(world))).kind).toBe("extended");
      await add(one, createAccount());
      const before = stateText(one.space.acl.state);
      const { keyId } = world.state.epochs[0]!.epoch;
      for (let i = 0; i < RECORDS; i++) {
        const metadata = { keyId, box: new Uint8Array(40).fill(i) };
        expect(world.forge(admin.signer, [{ op: "profile", metadata }])).toBeUndefined();
      }
      for (let round = 0; round < 2; round++) {
        work.restart();
        expect((await one.space.aclService.take(aclLogOf(world))).kind).toBe("lost");
        expect(work.read().most).toBeLessThan(boundsOf("a member with the right to write").turnWork);
        expect(stateText(one.space.acl.state)).toBe(before);
        expect(one.space.acl.pending.list()).toHaveLength(256);
      }
      const two = devices.open("two", devices.owner);
      await two.space.aclService.take(aclLogOf(world));
      await two.space.aclService.take(one.aclLog());
      expect(stateText(two.space.acl.state)).toBe(before);
    });
  });
});
