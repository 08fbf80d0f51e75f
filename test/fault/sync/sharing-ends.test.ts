/** What becomes of streams, contacts and rows when a membership or a space ends: real servers on a LAN. */
import { describe, expect } from "bun:test";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import {
  type Device,
  infoOf,
  joinAndBeSeen,
  startDevice,
  untilSame,
  untilStatus,
} from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

const streamsOf = (device: Device, spaceId: string, objectId: string) => {
  const base = `/v1/spaces/${spaceId}`;
  const { client } = device.server;
  return Promise.all([
    client.stream("GET", `${base}/members/subscribe`),
    client.stream("GET", `${base}/sync-status/objects/${objectId}/subscribe`),
    client.stream("POST", `${base}/objects/query/subscribe`, {}),
    client.stream("POST", `${base}/query/subscribe`, { objectId, dataset: "chat_messages" }),
  ]);
};

describe("a space that is over for an account", () => {
  rule(
    "[SPACE-7] of a space end with closed{sdk_closed} for who was removed, the members' after it told of the removal",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using member = await startDevice({ lan: true });
      const { id } = await createSpace(owner.server.client, "Garden");
      const object = await createObject(owner.server.client, id);
      await joinAndBeSeen(owner, member, id);
      await untilSame([owner, member], id, (rows) => rows.includes(object.id), WAIT_MS);
      const [members, ...others] = await streamsOf(member, id, object.id);
      await owner.server.client.post(`/v1/spaces/${id}/acl/remove`, { identities: [member.accountId] }, 204);
      const closed = await members.untilClosed(WAIT_MS);
      expect(closed.reason).toBe("sdk_closed");
      expect(closed.frames.filter(({ event }) => event === "member").at(-1)?.data).toMatchObject({
        kind: "removed",
        member: { identity: member.accountId, permission: "none", status: "removed" },
      });
      for (const stream of others) expect((await stream.untilClosed(WAIT_MS)).reason).toBe("sdk_closed");
      // The owner's go on.
      await using own = await owner.server.client.stream("GET", `/v1/spaces/${id}/members/subscribe`);
      await own.expect("ready");
      await joinAndBeSeen(owner, member, id);
      // Who comes back is added, as who comes for the first time.
      expect(await own.expect("member")).toMatchObject({
        kind: "added",
        member: { identity: member.accountId, status: "active" },
        previous: null,
      });
    },
    LONG_MS,
  );

  rule(
    "[SPACE-7] [ACL-20] end, and contacts go, with a space that is deleted or left while nobody else is there to hear of it",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using member = await startDevice({ lan: true });
      const contacts = async (device: Device) =>
        (await device.server.client.get<{ identities: unknown[] }>("/v1/identities")).identities;
      const spaces = [];
      for (const name of ["deleted", "left"]) {
        const [first, second] = name === "deleted" ? [owner, member] : [member, owner];
        const { id } = await createSpace(first.server.client, name);
        const object = await createObject(first.server.client, id);
        await joinAndBeSeen(first, second, id);
        await untilSame([owner, member], id, (rows) => rows.includes(object.id), WAIT_MS);
        spaces.push({ id, objectId: object.id });
      }
      const [deleted, left] = spaces;
      await until(async () => JSON.stringify(await contacts(owner)).includes(left!.id), "the contact", WAIT_MS);
      await member.server.kill();

      await using news = await owner.server.client.stream("GET", "/v1/identities/subscribe");
      await news.expect("ready");
      const streams = (await Promise.all(spaces.map(({ id, objectId }) => streamsOf(owner, id, objectId)))).flat();
      await owner.server.client.del(`/v1/spaces/${deleted!.id}`);
      expect(await news.expect("identities")).toEqual({
        updated: [expect.objectContaining({ identity: member.accountId, spaceIds: [left!.id] })],
      });
      await owner.server.client.post(`/v1/spaces/${left!.id}/acl/self-remove`, {}, 204);
      expect(await news.expect("identities")).toEqual({ removed: [member.accountId] });
      for (const stream of streams) expect((await stream.untilClosed(WAIT_MS)).reason).toBe("sdk_closed");
      expect(await contacts(owner)).toEqual([]);
      for (const { id } of spaces)
        expect(await infoOf(owner, id)).toMatchObject({ status: "deleted", ownRole: "none" });
    },
    LONG_MS,
  );

  rule(
    "[SPACE-7] who was away when it was removed or declined, or a guest key revoked, is told whenever it meets a member",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using memberRoot = scratchDir("svc-member");
      await using witness = await startDevice({ lan: true });
      const ids: Record<string, string> = {};
      {
        await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
        {
          await using member = await startDevice({ lan: true, dataDir: memberRoot.path });
          for (const name of ["removed", "stopped", "by a witness"]) {
            const { id } = await createSpace(owner.server.client, name);
            for (const device of [witness, member]) await joinAndBeSeen(owner, device, id);
            ids[name] = id;
          }
          const { client } = owner.server;
          const made = await createSpace(client, "declined");
          ids["declined"] = made.id;
          const asking = await client.post<{ inviteToken: string }>(`/v1/spaces/${made.id}/invites`, {}, 201);
          await member.server.client.post("/v1/spaces/join", { inviteToken: asking.inviteToken }, 202);
          const asked = async () =>
            (await client.get<{ requests: unknown[] }>(`/v1/spaces/${made.id}/members/requests`)).requests.length === 1;
          await until(asked, "the request", WAIT_MS);
          ids["for guests"] = (await createSpace(client, "for guests")).id;
          const guestKey = `/v1/spaces/${ids["for guests"]}/guest-key`;
          const guest = await client.post<{ inviteToken: string }>(guestKey, {}, 201);
          await member.server.client.post("/v1/spaces/join", { inviteToken: guest.inviteToken }, 202);
          await untilStatus(member, ids["for guests"], "active");
          const remove = { identities: [member.accountId] };
          await member.server.stop();
          await owner.server.client.post(`/v1/spaces/${ids["removed"]}/acl/remove`, remove, 204);
          await client.post(`/v1/spaces/${ids["stopped"]}/acl/stop-sharing`, {}, 204);
          await client.post(`/v1/spaces/${made.id}/acl/decline`, { identity: member.accountId }, 204);
          await client.del(`/v1/spaces/${made.id}/invites`);
          await client.del(guestKey);
          await owner.server.client.post(`/v1/spaces/${ids["by a witness"]}/acl/remove`, remove, 204);
          const seen = async () => {
            const path = `/v1/spaces/${ids["by a witness"]}/members/${member.accountId}`;
            return (await witness.server.client.get<{ status: string }>(path)).status === "removed";
          };
          await until(seen, "the witness to know", WAIT_MS);
        }
      }
      // The owner starts anew, so nothing is left of what it showed for a moment.
      await using member = await startDevice({ lan: true, dataDir: memberRoot.path });
      await untilStatus(member, ids["by a witness"]!, "deleted");
      expect(await infoOf(member, ids["stopped"]!)).toMatchObject({ status: "active" });
      await using owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      for (const name of ["removed", "stopped", "declined"]) await untilStatus(member, ids[name]!, "deleted");
      await untilStatus(member, ids["for guests"]!, "guest_revoked");
      for (const name of ["removed", "stopped"]) {
        const status = `/v1/spaces/${ids[name]}/sync-status`;
        const left = async () => {
          const { localPeers } = await owner.server.client.get<{ localPeers: number }>(status);
          return localPeers === (name === "removed" ? 1 : 0);
        };
        await until(left, "the owner to count its members alone", WAIT_MS);
      }
    },
    LONG_MS,
  );

  rule(
    "[SPACE-7] whoever leaves is heard of, also when the row of the space is written to at that very moment",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using member = await startDevice({ lan: true });
      const ids: string[] = [];
      for (let n = 0; n < 4; n++) {
        const { id } = await createSpace(owner.server.client);
        await joinAndBeSeen(owner, member, id);
        ids.push(id);
        const settings = (key: number) =>
          member.server.client.request("PATCH", `/v1/spaces/${id}/settings`, { body: { set: { [`k${key}`]: key } } });
        const before = Array.from({ length: 25 }, (_, key) => settings(key));
        const left = member.server.client.post(`/v1/spaces/${id}/acl/self-remove`, {}, 204);
        const after = Array.from({ length: 25 }, (_, key) => settings(25 + key));
        await Promise.all([...before, left, ...after]);
        expect(await infoOf(member, id)).toMatchObject({ status: "deleted" });
      }
      for (const id of ids) {
        const path = `/v1/spaces/${id}/members/${member.accountId}`;
        const gone = async () => (await owner.server.client.get<{ status: string }>(path)).status === "removed";
        await until(gone, "the owner to hear of it", WAIT_MS);
      }
    },
    LONG_MS,
  );

  rule(
    "[SPACE-1] an active row names its index object from the first: also while the content is still to come",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using added = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Direct");
      const accounts = [{ identity: added.accountId, permission: "reader" }];
      await owner.server.client.post(`/v1/spaces/${space.id}/acl/add`, { accounts }, 204);
      const pending = () => added.server.client.get<SpaceInfo[]>("/v1/spaces?status=invite_pending");
      await until(async () => (await pending()).length === 1, "the invitation", WAIT_MS);
      expect((await pending())[0]).not.toHaveProperty("spaceIndexObjectId");
      const reply = await added.server.client.request("POST", `/v1/spaces/${space.id}/invite/accept`);
      expect(reply.json).toMatchObject({ status: "active", spaceIndexObjectId: space.spaceIndexObjectId! });
    },
    LONG_MS,
  );
});
