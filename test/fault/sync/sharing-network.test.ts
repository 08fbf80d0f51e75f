/** Two accounts that meet on a network alone: real processes, a real nats-server. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import {
  acceptRequest,
  type Device,
  joinOpen,
  mintInvite,
  proposalsAt,
  rowStatusOf,
  setName,
  spacesOf,
  startDevice,
  untilRequest,
  untilSame,
  untilStatus,
} from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";

const LONG_MS = 150_000;
const WAIT_MS = 20_000;
const OPEN = { mode: "open", permission: "writer" };

describeWithNats("two accounts on a network", () => {
  rule(
    "[ACL-3] [ACL-16] invite, request, accept, data, removal over the network; a revoked invite is invite.invalid",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client, "Net");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id);
      await setName(owner, space.id, object.id, "first");
      const revoked = await mintInvite(owner, space.id);
      const inviteToken = await mintInvite(owner, space.id);
      await owner.server.client.post(`${base}/sync`, {}, 204);
      await other.server.client.fails("POST", "/v1/spaces/join", { inviteToken: revoked }, 400, "invite.invalid");
      expect(await rowStatusOf(other, space.id)).toBe("deleted");

      await other.server.client.post("/v1/spaces/join", { inviteToken, metadata: { name: "Otto" } }, 202);
      const request = await untilRequest(owner, space.id, WAIT_MS);
      expect(request).toMatchObject({ name: "Otto", identity: other.accountId });
      await acceptRequest(owner, space.id, request, "admin");
      await untilStatus(other, space.id, "active");
      await untilSame([owner, other], space.id, (rows) => rows.includes("first"), WAIT_MS);
      await setName(other, space.id, object.id, "second");
      await untilSame([owner, other], space.id, (rows) => rows.includes("second"), WAIT_MS);

      await other.server.client.post(`${base}/invites`, { mode: "open", permission: "reader" }, 201);
      await until(
        async () => {
          const path = `${base}/invites`;
          const { invites } = await owner.server.client.get<{ invites: { permission: string }[] }>(path);
          return invites.length === 1 && invites[0]!.permission === "reader";
        },
        "the admin's invite at the owner's",
        WAIT_MS,
      );

      await owner.server.client.post(`${base}/acl/remove`, { identities: [other.accountId] }, 204);
      await setName(owner, space.id, object.id, "third");
      await untilStatus(other, space.id, "deleted");
    },
    LONG_MS,
  );

  rule(
    "[SPACE-5] who is added directly sees invite_pending, declines, accepts after all, and reads",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client, "Direct");
      const base = `/v1/spaces/${space.id}`;
      await createObject(owner.server.client, space.id, named("for you"));
      const accounts = [{ identity: other.accountId, permission: "reader" }];
      await owner.server.client.post(`${base}/acl/add`, { accounts }, 204);
      await untilStatus(other, space.id, "invite_pending");
      const [pending] = await other.server.client.get<SpaceInfo[]>("/v1/spaces?status=invite_pending");
      expect(pending).toMatchObject({ id: space.id, name: "Direct", ownRole: "none" });
      await other.server.client.fails("GET", `${base}/members`, undefined, 409, "space.not_accepted");
      await other.server.client.post(`${base}/invite/decline`, {}, 204);
      expect(await rowStatusOf(other, space.id)).toBe("invite_declined");
      const accepted = await other.server.client.request("POST", `${base}/invite/accept`);
      expect([200, 202]).toContain(accepted.status);
      expect(accepted.json).toMatchObject({ status: "active" });
      await until(
        async () => (await other.server.client.request("GET", `${base}/members/me`)).status === 200,
        "the space",
        WAIT_MS,
      );
      await untilSame([owner, other], space.id, (rows) => rows.includes("for you"), WAIT_MS);
      await other.server.client.post(`${base}/invite/accept`, {}, 200);
      expect((await spacesOf(other))[0]).toMatchObject({ ownRole: "reader", status: "active" });
    },
    LONG_MS,
  );

  rule(
    "[ACL-17] an open invite lets its holder in at once, to read and write, with nobody's help",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client, "Open");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id);
      await setName(owner, space.id, object.id, "for whoever comes");
      const inviteToken = await mintInvite(owner, space.id, OPEN);
      await owner.server.client.post(`${base}/sync`, {}, 204);
      await owner.server.stop();
      await other.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(other, space.id, "active");
      await until(
        async () => (await other.server.client.request("GET", `${base}/members/me`)).status === 200,
        "the space",
        WAIT_MS,
      );
      await untilSame([other], space.id, (rows) => rows.includes("for whoever comes"), WAIT_MS);
      await setName(other, space.id, object.id, "by who came");
    },
    LONG_MS,
  );

  rule(
    "[SPACE-2] [SPACE-4] a one-to-one space reaches the other's list; guests read by the guest key until it is revoked",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      await owner.server.client.put("/v1/account/metadata", { name: "Olga" });
      const pair = await owner.server.client.post<SpaceInfo>(
        "/v1/spaces/one-to-one",
        { otherIdentity: other.accountId },
        201,
      );
      await untilStatus(other, pair.id, "one_to_one_pending");
      expect(await other.server.client.get<SpaceInfo>(`/v1/spaces/${pair.id}`)).toMatchObject({
        name: "Olga",
        author: owner.accountId,
      });
      await other.server.client.post(`/v1/spaces/${pair.id}/one-to-one/accept`, {}, 200);
      await createObject(other.server.client, pair.id, named("hello"));
      await untilSame([owner, other], pair.id, (rows) => rows.includes("hello"), WAIT_MS);

      const space = await createSpace(owner.server.client, "Public");
      const base = `/v1/spaces/${space.id}`;
      await createObject(owner.server.client, space.id, named("for all"));
      const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201);
      await owner.server.client.post(`${base}/sync`, {}, 204);
      await other.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(other, space.id, "active");
      await untilSame([owner, other], space.id, (rows) => rows.includes("for all"), WAIT_MS);
      expect(await other.server.client.get<unknown>(`${base}/members/me`)).toMatchObject({ permission: "guest" });
      await other.server.client.fails("POST", `${base}/objects`, {}, 403, "space.read_only");
      await owner.server.client.del(`${base}/guest-key`);
      await untilStatus(other, space.id, "guest_revoked");
      const rows = await other.server.client.post<{ records: unknown[] }>(`${base}/objects/query`, {}, 200);
      expect(JSON.stringify(rows)).toContain("for all");
    },
    LONG_MS,
  );

  rule(
    "[ACL-15] what an admin did while the network was away takes effect when it is back, with no owner's device there",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using admin = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client, "Away");
      const base = `/v1/spaces/${space.id}`;
      await joinOpen(owner, admin, space.id);
      const grant = { changes: [{ identity: admin.accountId, permission: "admin" }] };
      await owner.server.client.post(`${base}/acl/permissions`, grant, 204);
      await until(async () => (await spacesOf(admin))[0]?.ownRole === "admin", "the admin's role", WAIT_MS);
      await owner.server.client.post(`${base}/sync`, {}, 204);

      const { dataDir } = owner.server;
      await owner.server.stop();
      await nats.kill();
      const proposals = () => proposalsAt(admin, space.id);
      await until(
        async () => {
          const path = `${base}/sync-status`;
          return (await admin.server.client.get<{ state: string }>(path)).state === "offline";
        },
        "offline",
        WAIT_MS,
      );
      const inviteToken = await mintInvite(admin, space.id, { mode: "open", permission: "reader" });
      expect(await proposals()).toBe(1);
      await nats.start();
      await until(async () => (await proposals()) === 0, "the proposal to take effect", WAIT_MS);

      await using joiner = await startDevice({ network: nats.url });
      await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(joiner, space.id, "active");
      await using again = await startDevice({ network: nats.url, dataDir });
      await until(
        async () => {
          const member = await again.server.client.request("GET", `${base}/members/${joiner.accountId}`);
          return (member.json as { permission?: string }).permission === "reader";
        },
        "the joiner in the owner's roster",
        WAIT_MS,
      );
    },
    LONG_MS,
  );

  rule(
    "[CHANGE-6] who wrote while it lost the right to is told what was cut, in debug and in its log",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client, "Cut");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id);
      await joinOpen(owner, other, space.id);
      await untilSame([owner, other], space.id, (rows) => rows.includes(object.id), WAIT_MS);
      await setName(other, space.id, object.id, "accepted");
      await untilSame([owner, other], space.id, (rows) => rows.includes("accepted"), WAIT_MS);

      interface Debug {
        cut: { identity: string; self: boolean; count: number; changes: { id: string; objectId: string }[] }[];
      }
      const cutAt = async (device: Device) => (await device.server.client.get<Debug>(`${base}/debug`)).cut;
      expect(await cutAt(other)).toEqual([]);
      await nats.kill();
      for (const name of ["lost 1", "lost 2", "lost 3"]) await setName(other, space.id, object.id, name);
      const offline = async () => (await owner.server.client.get<{ state: string }>(`${base}/sync-status`)).state;
      await until(async () => (await offline()) === "offline", "the owner to be offline", WAIT_MS);
      const demotion = { changes: [{ identity: other.accountId, permission: "reader" }] };
      await owner.server.client.post(`${base}/acl/permissions`, demotion, 204);
      await nats.start();
      await until(async () => (await cutAt(other))[0]?.count === 3, "the cut at the one who was demoted", WAIT_MS);
      await until(async () => (await cutAt(owner))[0]?.count === 3, "the cut at the owner", WAIT_MS);
      const [cut] = await cutAt(other);
      expect(cut).toMatchObject({ identity: other.accountId, self: true });
      expect(cut!.changes.map(({ objectId }) => objectId)).toEqual([object.id, object.id, object.id]);
      expect((await cutAt(owner))[0]).toMatchObject({ identity: other.accountId, self: false, changes: cut!.changes });
      expect(other.server.stderr()).toContain("changes of this account do not count");
      expect(owner.server.stderr()).not.toContain("changes of this account do not count");
      await untilSame([owner, other], space.id, (rows) => rows.includes("accepted") && !rows.includes("lost"), WAIT_MS);
    },
    LONG_MS,
  );
});
