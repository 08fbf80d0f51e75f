/** Who joins a space on a LAN alone, by devices that have not heard of what came before: of the invite, or of the leaving. */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import {
  acceptRequest,
  infoOf,
  joinAndBeSeen,
  mintInvite,
  proposalsAt,
  startDevice,
  untilHere,
  untilRequest,
  untilStatus,
} from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";
import { rosterHas, rosterOf, untilOneRoster } from "../../support/worlds/rosters.ts";

const LONG_MS = 150_000;
const WAIT_MS = 45_000;

/** Until a device has handed over every inbox message that it had for others. Nothing that people see says so. */
const untilHandedOver = (dataDir: string): Promise<void> =>
  until(
    () => {
      for (const path of new Bun.Glob("**/sdk/*.db").scanSync({ cwd: dataDir, absolute: true })) {
        if (path.endsWith("/account.db")) continue;
        using db = new Database(path, { readonly: true });
        if (db.query<{ id: Uint8Array }, []>("SELECT id FROM inbox_outgoing").get()) return false;
      }
      return true;
    },
    "inbox messages to be handed over",
    WAIT_MS,
  );

describe("who joins", () => {
  rule(
    "[ACL-17] a request that came to an owner's device before the space did waits there, also over a crash, unless it is taken back",
    async () => {
      using minterRoot = scratchDir("svc-minter");
      using newRoot = scratchDir("svc-new");
      using askerRoot = scratchDir("svc-asker");
      using waverer = scratchDir("svc-waverer");
      let id = "";
      let inviteToken = "";
      let mnemonic = "";
      {
        await using minter = await startDevice({ lan: true, dataDir: minterRoot.path });
        ({ mnemonic } = minter);
        ({ id } = await createSpace(minter.server.client, "Door"));
        inviteToken = await mintInvite(minter, id);
      }
      let fresh = await startDevice({ lan: true, dataDir: newRoot.path, mnemonic });
      try {
        await using asker = await startDevice({ lan: true, dataDir: askerRoot.path });
        {
          await using wavering = await startDevice({ lan: true, dataDir: waverer.path });
          for (const [device, root] of [
            [asker, askerRoot],
            [wavering, waverer],
          ] as const) {
            await device.server.client.post("/v1/spaces/join", { inviteToken }, 202);
            await untilHandedOver(root.path);
          }
          await wavering.server.client.post(`/v1/spaces/${id}/acl/cancel-join`, {}, 204);
          await untilHandedOver(waverer.path);
        }
        await fresh.server.kill();
        await fresh[Symbol.asyncDispose]();
        fresh = await startDevice({ lan: true, dataDir: newRoot.path });

        await using minter = await startDevice({ lan: true, dataDir: minterRoot.path });
        const request = await untilRequest(minter, id);
        expect(request.identity).toBe(asker.accountId);
        await acceptRequest(minter, id, request);
        await untilStatus(asker, id, "active");
        await untilHere(fresh, id);
        await untilOneRoster([minter, fresh], id, rosterHas(asker.accountId));
        const { requests } = await minter.server.client.get<{ requests: unknown[] }>(
          `/v1/spaces/${id}/members/requests`,
        );
        expect(requests).toEqual([]);
      } finally {
        await fresh[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );

  rule(
    "[ACL-17] who left and joins again by a device that has not heard of the leaving is in once one that has is there, and stays",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using behindRoot = scratchDir("svc-behind");
      await using member = await startDevice({ lan: true });
      let id = "";
      let inviteToken = "";
      {
        await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
        ({ id } = await createSpace(owner.server.client, "Door"));
        inviteToken = await mintInvite(owner, id, { mode: "open", permission: "writer" });
        await member.server.client.post("/v1/spaces/join", { inviteToken }, 202);
        await untilStatus(member, id, "active");
        {
          await using behind = await startDevice({ lan: true, dataDir: behindRoot.path, mnemonic: owner.mnemonic });
          await untilHere(behind, id);
          await untilOneRoster([owner, behind], id, rosterHas(`"${member.accountId}","writer","active"`));
        }
        await member.server.client.post(`/v1/spaces/${id}/acl/self-remove`, {}, 204);
        await untilOneRoster([owner], id, rosterHas(`"${member.accountId}","none","removed"`));
      }
      await using behind = await startDevice({ lan: true, dataDir: behindRoot.path });
      await member.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      expect((await infoOf(member, id)).status).toBe("joining");
      await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      const isBack = rosterHas(`"${member.accountId}","writer","active"`);
      await untilStatus(member, id, "active");
      await untilOneRoster([owner, behind, member], id, isBack);
      for (const device of [owner, behind, member]) await device.server.client.post(`/v1/spaces/${id}/sync`, {}, 204);
      for (const device of [owner, behind, member]) expect(isBack(await rosterOf(device, id))).toBe(true);
    },
    LONG_MS,
  );

  rule(
    "[ACL-17] a leaving that was taken back by joining again, and comes by somebody who had heard of it, ends nothing",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using witnessRoot = scratchDir("svc-witness");
      await using member = await startDevice({ lan: true });
      const join = { inviteToken: "" };
      let id = "";
      {
        await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
        await using witness = await startDevice({ lan: true, dataDir: witnessRoot.path });
        ({ id } = await createSpace(owner.server.client, "Door"));
        await joinAndBeSeen(owner, witness, id);
        join.inviteToken = await mintInvite(owner, id, { mode: "open", permission: "writer" });
        await member.server.client.post("/v1/spaces/join", join, 202);
        await untilStatus(member, id, "active");
        await untilOneRoster([owner, witness, member], id, rosterHas(`"${member.accountId}","writer","active"`));
        await owner.server.stop();
        await member.server.client.post(`/v1/spaces/${id}/acl/self-remove`, {}, 204);
        await until(async () => (await proposalsAt(witness, id)) === 1, "the witness to hear of the leaving", WAIT_MS);
      }
      await member.server.client.post("/v1/spaces/join", join, 202);
      await untilStatus(member, id, "active");

      await using witness = await startDevice({ lan: true, dataDir: witnessRoot.path });
      await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      await until(
        async () => (await proposalsAt(witness, id)) === 0,
        "what the witness heard to reach the owner",
        WAIT_MS,
      );
      for (const device of [owner, witness, member]) {
        await untilStatus(device, id, "active");
        await untilHere(device, id);
      }
      await untilOneRoster([owner, witness, member], id, rosterHas(`"${member.accountId}","writer","active"`));
    },
    LONG_MS,
  );
});
