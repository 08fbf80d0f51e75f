/**
 * What an owner's devices, or an owner and an admin, did apart from each other on a LAN alone, and what somebody decides
 * once they have met: that holds, though parts of what was done apart may still wait on some device.
 */
import { describe, expect } from "bun:test";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import {
  type Device,
  proposalsAt,
  spacesOf,
  startDevice,
  statusOf,
  untilHere,
  untilSame,
} from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";
import { knownAccount } from "../../support/worlds/known-account.ts";
import {
  addMembers,
  removeMembers,
  rosterHas,
  rosterOf,
  strangers,
  untilOneRoster,
} from "../../support/worlds/rosters.ts";
import { openSpaceUnder } from "../../support/worlds/test-space.ts";

const LONG_MS = 150_000;
const WAIT_MS = 45_000;

/** Accepts having been added as an admin. */
async function untilAdmin(device: Device, spaceId: string): Promise<void> {
  const invited = async () => {
    const reply = await device.server.client.request("GET", `/v1/spaces/${spaceId}`);
    return (reply.json as SpaceInfo | undefined)?.status === "invite_pending";
  };
  await until(invited, "the admin's invitation", WAIT_MS);
  await device.server.client.request("POST", `/v1/spaces/${spaceId}/invite/accept`);
  await until(async () => (await spacesOf(device)).some(({ ownRole }) => ownRole === "admin"), "its role", WAIT_MS);
}

describe("what was done apart", () => {
  rule(
    "[ACL-15] what an owner's device had been asked for when it was killed takes effect when it runs again, with nobody there",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using adminRoot = scratchDir("svc-admin");
      const accounts = [await knownAccount(), await knownAccount()] as const;
      const [{ mnemonic }, { mnemonic: theirs }] = accounts;
      const [added] = strangers(1) as [string];
      let id = "";
      {
        await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path, mnemonic });
        await using admin = await startDevice({ lan: true, dataDir: adminRoot.path, mnemonic: theirs });
        ({ id } = await createSpace(owner.server.client, "Board"));
        await addMembers(owner, id, [admin.accountId], "admin");
        await untilAdmin(admin, id);
      }
      {
        await using admin = await startDevice({ dataDir: adminRoot.path });
        await addMembers(admin, id, [added]);
      }
      // As far as it comes before a crash: kept, and not looked at.
      const asking = openSpaceUnder(adminRoot.path, accounts[1], id);
      const asked = asking.aclService.pending();
      await asking.close();
      const holding = openSpaceUnder(ownerRoot.path, accounts[0], id);
      expect(await holding.aclService.takePending(asked)).toEqual([{ kind: "kept" }]);
      await holding.close();

      await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      await untilOneRoster([owner], id, rosterHas(`"${added}","reader","active"`));
    },
    LONG_MS,
  );

  rule(
    "[ACL-15] what an admin asked for in vain waits no more: it undoes nothing, and the space is in step again",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using adminRoot = scratchDir("svc-admin");
      const [added, promoted] = strangers(2) as [string, string];
      let id = "";
      {
        await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
        await using admin = await startDevice({ lan: true, dataDir: adminRoot.path });
        ({ id } = await createSpace(owner.server.client, "Board"));
        await addMembers(owner, id, [admin.accountId], "admin");
        await untilAdmin(admin, id);
        await addMembers(owner, id, [promoted]);
        await untilOneRoster([owner, admin], id, rosterHas(promoted));
      }
      const grant = (device: Device, permission: string) =>
        device.server.client.post(
          `/v1/spaces/${id}/acl/permissions`,
          { changes: [{ identity: promoted, permission }] },
          204,
        );
      for (const dataDir of [ownerRoot.path, adminRoot.path]) {
        await using apart = await startDevice({ dataDir });
        await addMembers(apart, id, [added], "writer");
        await grant(apart, "writer");
        expect(await proposalsAt(apart, id)).toBe(dataDir === adminRoot.path ? 2 : 0);
      }
      await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      await using admin = await startDevice({ lan: true, dataDir: adminRoot.path });
      const both = [owner, admin];
      await untilOneRoster(both, id, rosterHas(`"${added}","writer"`, `"${promoted}","writer"`));
      await until(async () => (await proposalsAt(admin, id)) === 0, "nothing to wait any more", WAIT_MS);
      await removeMembers(owner, id, [added]);
      await grant(owner, "reader");
      const holds = rosterHas(`"${added}","none","removed"`, `"${promoted}","reader"`);
      await untilOneRoster(both, id, holds);
      for (let round = 0; round < 3; round++) {
        for (const { server } of both) await server.client.post(`/v1/spaces/${id}/sync`, {}, 204);
        for (const device of both) expect(holds(await rosterOf(device, id))).toBe(true);
      }
      for (const device of both)
        await until(async () => (await statusOf(device, id)).state === "synced", "to be in step", WAIT_MS);
    },
    LONG_MS,
  );

  rule(
    "[ACL-11] who was removed or given less stays so, whatever the owner's devices had done apart and both had to do again",
    async () => {
      using firstRoot = scratchDir("svc-first");
      using secondRoot = scratchDir("svc-second");
      const [added, promoted] = strangers(2) as [string, string];
      let id = "";
      {
        await using first = await startDevice({ lan: true, dataDir: firstRoot.path });
        await using second = await startDevice({ lan: true, dataDir: secondRoot.path, mnemonic: first.mnemonic });
        ({ id } = await createSpace(first.server.client, "Board"));
        await addMembers(first, id, [promoted]);
        await untilHere(second, id);
        await untilOneRoster([first, second], id, rosterHas(promoted));
      }
      const permissions = (device: Device, identity: string, permission: string) =>
        device.server.client.post(`/v1/spaces/${id}/acl/permissions`, { changes: [{ identity, permission }] }, 204);
      for (const dataDir of [firstRoot.path, secondRoot.path]) {
        await using apart = await startDevice({ dataDir });
        await addMembers(apart, id, [added], "writer");
        await permissions(apart, promoted, "admin");
      }
      await using first = await startDevice({ lan: true, dataDir: firstRoot.path });
      await using second = await startDevice({ lan: true, dataDir: secondRoot.path });
      const both = [first, second];
      await untilOneRoster(both, id, rosterHas(`"${added}","writer"`, `"${promoted}","admin"`));
      // By the device whose branch won and by the other: one of them holds what has to be done no more.
      await removeMembers(second, id, [added]);
      await permissions(first, promoted, "reader");
      const holds = rosterHas(`"${added}","none","removed"`, `"${promoted}","reader"`);
      await untilOneRoster(both, id, holds);
      for (let round = 0; round < 4; round++) {
        for (const { server } of both) await server.client.post(`/v1/spaces/${id}/sync`, {}, 204);
        for (const device of both) expect(holds(await rosterOf(device, id))).toBe(true);
      }
      await addMembers(first, id, [added], "reader");
      await untilOneRoster(both, id, rosterHas(`"${added}","reader","active"`));
    },
    LONG_MS,
  );

  rule(
    "[ACL-11] of two that were made apart, the one that lost does not come back once the other was revoked",
    async () => {
      using firstRoot = scratchDir("svc-first");
      using secondRoot = scratchDir("svc-second");
      const roots = [firstRoot.path, secondRoot.path];
      let id = "";
      {
        await using first = await startDevice({ lan: true, dataDir: firstRoot.path });
        await using second = await startDevice({ lan: true, dataDir: secondRoot.path, mnemonic: first.mnemonic });
        ({ id } = await createSpace(first.server.client, "Public"));
        await untilHere(second, id);
        await untilSame([first, second], id, () => true, WAIT_MS);
      }
      const base = `/v1/spaces/${id}`;
      const keyAt = async (device: Device) =>
        (await device.server.client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201)).inviteToken;
      const tokens = [];
      for (const dataDir of roots) {
        await using apart = await startDevice({ dataDir });
        tokens.push(await keyAt(apart));
      }
      expect(tokens[0]).not.toBe(tokens[1]);
      await using first = await startDevice({ lan: true, dataDir: firstRoot.path });
      await using second = await startDevice({ lan: true, dataDir: secondRoot.path });
      const both = [first, second];
      await untilOneRoster(both, id, (roster) => roster.split('"guest"').length === 2);
      await second.server.client.del(`${base}/guest-key`);
      await untilOneRoster(both, id, (roster) => !roster.includes('"guest"'));
      for (let round = 0; round < 4; round++) {
        for (const device of both) await device.server.client.post(`${base}/sync`, {}, 204);
        for (const device of both) expect(await rosterOf(device, id)).not.toContain('"guest"');
      }
      expect(tokens).not.toContain(await keyAt(first));
    },
    LONG_MS,
  );
});
