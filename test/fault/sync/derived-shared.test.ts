/** A derived space belongs to its account for ever, but others may be let in: they read and write like everywhere. */
import { describe, expect } from "bun:test";
import { rule } from "../../support/rule.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import {
  acceptRequest,
  type Device,
  mintInvite,
  setName,
  spacesOf,
  startDevice,
  untilRequest,
  untilSame,
} from "../../support/server/devices.ts";
import { createObject } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

describe("a derived space that is shared", () => {
  rule(
    "[SPACE-3] members read and write it, by invite, request and direct add, and on their other devices; it stays its account's",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using owner2 = await startDevice({ lan: true, mnemonic: owner.mnemonic });
      const { client } = owner.server;
      const { id } = await client.post<SpaceInfo>("/v1/spaces/derived/agent", {}, 201);
      const base = `/v1/spaces/${id}`;
      const initialProperties = { svc: { name: "before anybody came" } };
      const object = await createObject(client, id, { initialProperties });
      const infoAt = async ({ server }: Device) =>
        (await server.client.request("GET", base)).json as unknown as SpaceInfo | undefined;
      const untilIn = (device: Device) =>
        until(async () => (await infoAt(device))?.ownRole === "writer", "the role of a writer", WAIT_MS);

      await using invited = await startDevice({ lan: true });
      const open = await mintInvite(owner, id, { mode: "open", permission: "writer" });
      await invited.server.client.post("/v1/spaces/join", { inviteToken: open }, 202);
      await untilIn(invited);

      await using asking = await startDevice({ lan: true });
      await asking.server.client.post("/v1/spaces/join", { inviteToken: await mintInvite(owner, id) }, 202);
      await acceptRequest(owner, id, await untilRequest(owner, id, WAIT_MS));
      await untilIn(asking);

      await using added = await startDevice({ lan: true });
      const accounts = [{ identity: added.accountId, permission: "writer" }];
      await client.post(`${base}/acl/add`, { accounts }, 204);
      await until(async () => (await infoAt(added))?.status === "invite_pending", "the invitation", WAIT_MS);
      await added.server.client.request("POST", `${base}/invite/accept`);
      await untilIn(added);

      await using added2 = await startDevice({ lan: true, mnemonic: added.mnemonic });
      await untilIn(added2);
      const all = [owner, owner2, invited, asking, added, added2];
      await untilSame(all, id, (rows) => rows.includes("before anybody came"), WAIT_MS);
      for (const [index, device] of all.entries()) {
        await setName(device, id, object.id, `from ${index}`);
        await untilSame(all, id, (rows) => rows.includes(`from ${index}`), WAIT_MS);
      }
      const named = async (device: Device) => (await infoAt(device))?.name === "Agent";
      for (const device of all) {
        await until(() => named(device), "the name", WAIT_MS);
        expect(await infoAt(device)).toMatchObject({ author: owner.accountId, status: "active", name: "Agent" });
        expect((await infoAt(device))?.derived === true).toBe(device === owner || device === owner2);
      }

      // Nobody who was removed reads on, and it cannot be given away.
      await client.post(`${base}/acl/remove`, { identities: [invited.accountId] }, 204);
      await setName(owner, id, object.id, "after the removal");
      const gone = async () => (await spacesOf(invited)).length === 0;
      await until(gone, "the removed member's row to be over", WAIT_MS);
      await untilSame(
        [owner, owner2, asking, added, added2],
        id,
        (rows) => rows.includes("after the removal"),
        WAIT_MS,
      );
      const transfer = { newOwner: added.accountId, oldOwnerPerm: "admin" };
      await client.fails("POST", `${base}/acl/ownership`, transfer, 403, "acl.forbidden");
      await client.fails("DELETE", base, undefined, 409, "space.derived_undeletable");
    },
    LONG_MS,
  );
});
