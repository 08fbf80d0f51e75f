/** Two accounts on one LAN (loopback), found by multicast alone: from the invite to the removal, real processes. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { type SpaceInfo, until } from "../support/server/client.ts";
import {
  acceptRequest,
  type Device,
  mintInvite,
  rowStatusOf,
  rowsOf,
  setName,
  spacesOf,
  startDevice,
  untilRequest,
  untilSame,
  untilStatus,
} from "../support/server/devices.ts";
import { createObject, createSpace, named } from "../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

/** Asks to join and is accepted. */
async function askAndBeLetIn(owner: Device, joiner: Device, spaceId: string, permission: string): Promise<void> {
  const inviteToken = await mintInvite(owner, spaceId);
  await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
  await acceptRequest(owner, spaceId, await untilRequest(owner, spaceId), permission);
  await untilStatus(joiner, spaceId, "active");
}

describe("two accounts on a LAN", () => {
  rule(
    "[ACL-14] [SPACE-1] [API-11] invite, request, accept, data both ways, removal: the next edit does not come",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using guest = await startDevice({ lan: true });
      await owner.server.client.put("/v1/account/metadata", { name: "Olga" });
      await guest.server.client.put("/v1/account/metadata", { name: "Gustav" });
      const space = await createSpace(owner.server.client, "Garden");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id, named("rose"));

      const inviteToken = await mintInvite(owner, space.id);
      const joining = await guest.server.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202);
      expect(joining).toMatchObject({ id: space.id, status: "joining" });
      const request = await untilRequest(owner, space.id);
      expect(request).toMatchObject({ identity: guest.accountId, name: "Gustav", recordId: request.requestRecordId });
      await guest.server.client.fails("GET", `${base}/members`, undefined, 409, "space.not_accepted");
      await owner.server.client.fails("GET", `/v1/identities/${guest.accountId}`, undefined, 404, "identity.not_found");

      await using stream = await owner.server.client.stream("GET", `${base}/members/subscribe`);
      await stream.expect("ready");
      const body = { requestRecordId: request.requestRecordId, permission: "writer" };
      await owner.server.client.post(`${base}/acl/accept`, body, 204);
      expect(await stream.expect("member")).toMatchObject({
        kind: "changed",
        member: { identity: guest.accountId, status: "active", permission: "writer" },
        previous: { status: "joining", permission: "none" },
      });
      await untilStatus(guest, space.id, "active");
      await untilSame([owner, guest], space.id, (rows) => rows.includes("rose"), WAIT_MS);
      await until(
        async () => (await spacesOf(guest)).some((row) => row.name === "Garden" && row.author === owner.accountId),
        "the name",
        WAIT_MS,
      );
      const { createdAt } = joining; // when it came here, not when it was made
      expect(Date.parse(createdAt.$date)).toBeGreaterThan(Date.parse(space.createdAt.$date));
      expect((await spacesOf(guest))[0]).toMatchObject({ ownRole: "writer", spaceType: "svc.space", createdAt });
      expect(await guest.server.client.get<unknown>(`/v1/identities/${owner.accountId}`)).toMatchObject({
        name: "Olga",
        spaceIds: [space.id],
      });
      expect(await owner.server.client.get<unknown>(`/v1/identities/${guest.accountId}`)).toMatchObject({
        name: "Gustav",
      });

      await setName(guest, space.id, object.id, "from the writer");
      await untilSame([owner, guest], space.id, (rows) => rows.includes("from the writer"), WAIT_MS);

      const change = { changes: [{ identity: guest.accountId, permission: "reader" }] };
      await owner.server.client.post(`${base}/acl/permissions`, change, 204);
      await until(async () => (await spacesOf(guest))[0]?.ownRole === "reader", "the role of a reader", WAIT_MS);
      await guest.server.client.fails("POST", `${base}/objects`, {}, 403, "space.read_only");
      await guest.server.client.fails("POST", `${base}/invites`, {}, 403, "acl.forbidden");
      await setName(owner, space.id, object.id, "for readers");
      await untilSame([owner, guest], space.id, (rows) => rows.includes("for readers"), WAIT_MS);

      await owner.server.client.post(`${base}/acl/remove`, { identities: [guest.accountId] }, 204);
      await setName(owner, space.id, object.id, "after the removal");
      await untilStatus(guest, space.id, "deleted");
      const over = await guest.server.client.fails("POST", `${base}/objects/query`, {}, 409, "space.deleted");
      expect(over.message).toMatch(new RegExp(`^${owner.accountId} removed this account from the space at 20.*Z$`));
      const { ended } = await guest.server.client.get<{ ended: { at: { $date: string } } }>(base);
      expect(ended).toMatchObject({ how: "removed", by: owner.accountId, name: "Olga" });
      expect(Date.now() - Date.parse(ended.at.$date)).toBeWithin(0, WAIT_MS);
      expect(await guest.server.client.get<unknown>("/v1/identities")).toEqual({ identities: [] });

      await askAndBeLetIn(owner, guest, space.id, "writer");
      await untilSame([owner, guest], space.id, (rows) => rows.includes("after the removal"), WAIT_MS);
    },
    LONG_MS,
  );

  rule(
    "[ACL-3] [ACL-17] an open invite lets in at once; leaving takes effect for the leaver and rotates the key",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using other = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Open");
      const base = `/v1/spaces/${space.id}`;
      await createObject(owner.server.client, space.id, named("seen"));
      const inviteToken = await mintInvite(owner, space.id, { mode: "open", permission: "reader" });
      await other.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(other, space.id, "active");
      await untilSame([owner, other], space.id, (rows) => rows.includes("seen"), WAIT_MS);
      expect(await other.server.client.get<unknown>(`${base}/members/me`)).toMatchObject({
        permission: "reader",
        status: "active",
      });
      const keyOf = async () => (await owner.server.client.get<{ push: { encKeyId: string } }>(base)).push.encKeyId;
      const before = await keyOf();
      await other.server.client.post(`${base}/acl/self-remove`, {}, 204);
      expect(await rowStatusOf(other, space.id)).toBe("deleted");
      const left = { how: "left", by: other.accountId };
      expect(await other.server.client.get<unknown>(base)).toMatchObject({ status: "deleted", ended: left });
      await until(
        async () => {
          const path = `${base}/members/${other.accountId}`;
          return (await owner.server.client.get<{ status: string }>(path)).status === "removed";
        },
        "the leaver to be removed",
        WAIT_MS,
      );
      expect(await keyOf()).not.toBe(before);
    },
    LONG_MS,
  );

  rule(
    "[ACL-17] who asked to join and then comes by an open invite is in at once, and its request is gone",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using other = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Opened");
      await other.server.client.post("/v1/spaces/join", { inviteToken: await mintInvite(owner, space.id) }, 202);
      await untilRequest(owner, space.id);
      const inviteToken = await mintInvite(owner, space.id, { mode: "open", permission: "reader" });
      await other.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(other, space.id, "active");
      const base = `/v1/spaces/${space.id}`;
      expect(await owner.server.client.get<unknown>(`${base}/members/requests`)).toEqual({ requests: [] });
      expect(await owner.server.client.get<unknown>(`${base}/members/${other.accountId}`)).toMatchObject({
        permission: "reader",
        status: "active",
      });
    },
    LONG_MS,
  );

  rule(
    "[ACL-3] [SPACE-2] a declined request ends; a cancelled one leaves the roster; a new invite lets one ask again",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using other = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Closed");
      const base = `/v1/spaces/${space.id}`;
      const memberStatus = async () => {
        const path = `${base}/members/${other.accountId}`;
        const reply = await owner.server.client.request("GET", path);
        return (reply.json as { status?: string }).status;
      };
      await other.server.client.post("/v1/spaces/join", { inviteToken: await mintInvite(owner, space.id) }, 202);
      await untilRequest(owner, space.id);
      await owner.server.client.post(`${base}/acl/decline`, { identity: other.accountId }, 204);
      expect(await memberStatus()).toBe("declined");
      await untilStatus(other, space.id, "deleted");

      await other.server.client.post("/v1/spaces/join", { inviteToken: await mintInvite(owner, space.id) }, 202);
      await untilRequest(owner, space.id);
      await other.server.client.post(`${base}/acl/cancel-join`, {}, 204);
      expect(await rowStatusOf(other, space.id)).toBe("deleted");
      await until(async () => (await memberStatus()) === "canceled", "the request to be taken back", WAIT_MS);

      await askAndBeLetIn(owner, other, space.id, "reader");
      expect(await memberStatus()).toBe("active");
    },
    LONG_MS,
  );

  rule(
    "[SPACE-7] [SPACE-4] a space that its owner deletes ends for the members, for ever; a one-to-one space is shared by both",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using other = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Doomed");
      await askAndBeLetIn(owner, other, space.id, "writer");
      await owner.server.client.del(`/v1/spaces/${space.id}`);
      expect(await rowStatusOf(owner, space.id)).toBe("deleted");
      await untilStatus(other, space.id, "deleted");

      const pair = await owner.server.client.post<SpaceInfo>(
        "/v1/spaces/one-to-one",
        { otherIdentity: other.accountId },
        201,
      );
      await other.server.client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity: owner.accountId }, 204);
      await other.server.client.post(`/v1/spaces/${pair.id}/one-to-one/accept`, {}, 200);
      await createObject(owner.server.client, pair.id, named("between us"));
      await untilSame([owner, other], pair.id, (rows) => rows.includes("between us"), WAIT_MS);
      expect(await rowsOf(other, pair.id)).toContain(owner.accountId);

      await using stream = await other.server.client.stream("GET", `/v1/spaces/${pair.id}/members/subscribe`);
      await stream.expect("ready");
      await owner.server.client.put("/v1/account/metadata", { name: "Olga", description: "of the garden" });
      expect(await stream.expect("member")).toMatchObject({
        kind: "changed",
        member: { identity: owner.accountId, name: "Olga", description: "of the garden" },
      });
      const identity = async () => other.server.client.get<unknown>(`/v1/identities/${owner.accountId}`);
      expect(await identity()).toMatchObject({ name: "Olga", description: "of the garden", spaceIds: [pair.id] });
      await owner.server.client.put("/v1/account/metadata", { name: "Olga B." });
      expect(await stream.expect("member")).toMatchObject({ member: { name: "Olga B." } });
      expect(await identity()).toMatchObject({ name: "Olga B.", description: "of the garden" });
    },
    LONG_MS,
  );

  rule(
    "[ACL-14] [SPACE-2] a guest reads by the guest key over the LAN, writes nothing, and gets nothing after it is revoked",
    async () => {
      await using owner = await startDevice({ lan: true });
      await using reader = await startDevice({ lan: true });
      const space = await createSpace(owner.server.client, "Public");
      const base = `/v1/spaces/${space.id}`;
      const object = await createObject(owner.server.client, space.id, named("for all"));
      const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201);
      await reader.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(reader, space.id, "active");
      await untilSame([owner, reader], space.id, (rows) => rows.includes("for all"), WAIT_MS);
      await setName(owner, space.id, object.id, "still for all");
      await untilSame([owner, reader], space.id, (rows) => rows.includes("still for all"), WAIT_MS);
      await reader.server.client.fails("POST", `${base}/objects`, {}, 403, "space.read_only");

      // It drops what it read, and comes again.
      await reader.server.client.del(base);
      expect(await rowStatusOf(reader, space.id)).toBe("deleted");
      await reader.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(reader, space.id, "active");
      await untilSame([owner, reader], space.id, (rows) => rows.includes("still for all"), WAIT_MS);

      // Restarted: the link is another one, and the key is proved on it anew.
      const { dataDir } = reader.server;
      await reader.server.stop();
      await setName(owner, space.id, object.id, "while the guest was away");
      await using again = await startDevice({ lan: true, dataDir });
      await untilSame([owner, again], space.id, (rows) => rows.includes("while the guest was away"), WAIT_MS);

      await owner.server.client.del(`${base}/guest-key`);
      await setName(owner, space.id, object.id, "not for guests");
      await untilStatus(again, space.id, "guest_revoked");
      await createObject(owner.server.client, space.id, named("nor this"));
      await owner.server.client.post(`${base}/sync`, {}, 204);
      const rows = await rowsOf(again, space.id);
      expect(rows).toContain("while the guest was away");
      expect(rows).not.toContain("not for guests");
      expect(rows).not.toContain("nor this");
    },
    LONG_MS,
  );

  rule(
    "[SPACE-5] [SPACE-4] a direct add and a one-to-one space reach an account on the LAN with which nothing is shared",
    async () => {
      await using owner = await startDevice({ lan: true });
      await owner.server.client.put("/v1/account/metadata", { name: "Olga" });
      const space = await createSpace(owner.server.client, "Direct");
      const base = `/v1/spaces/${space.id}`;
      await createObject(owner.server.client, space.id, named("for you"));
      await using stranger = await startDevice({ lan: true });
      await using made = await startDevice({ lan: true });
      const { accountId } = made;
      const { dataDir } = made.server;
      await made.server.stop();

      // Written while the other is away: what waits is handed over when the two meet, also after a restart.
      const accounts = [{ identity: accountId, permission: "writer" }];
      await owner.server.client.post(`${base}/acl/add`, { accounts }, 204);
      await using other = await startDevice({ lan: true, dataDir });
      const knows = async (device: Device, id: string) =>
        (await device.server.client.get<SpaceInfo[]>("/v1/spaces?status=all")).some((row) => row.id === id);
      await until(() => knows(other, space.id), "the row of the space one was added to", WAIT_MS);
      expect(await other.server.client.get<unknown>(base)).toMatchObject({ status: "invite_pending", name: "Direct" });
      const accepted = await other.server.client.request("POST", `${base}/invite/accept`);
      expect([200, 202]).toContain(accepted.status);
      await until(
        async () => (await other.server.client.request("GET", `${base}/members/me`)).status === 200,
        "the space",
        WAIT_MS,
      );
      await untilSame([owner, other], space.id, (rows) => rows.includes("for you"), WAIT_MS);

      const pair = await owner.server.client.post<SpaceInfo>(
        "/v1/spaces/one-to-one",
        { otherIdentity: accountId },
        201,
      );
      await until(() => knows(other, pair.id), "the row of the one-to-one space", WAIT_MS);
      expect(await other.server.client.get<unknown>(`/v1/spaces/${pair.id}`)).toMatchObject({
        status: "one_to_one_pending",
        name: "Olga",
        author: owner.accountId,
      });
      await other.server.client.post(`/v1/spaces/${pair.id}/one-to-one/accept`, {}, 200);
      await createObject(other.server.client, pair.id, named("hello"));
      await untilSame([owner, other], pair.id, (rows) => rows.includes("hello"), WAIT_MS);
      expect(await stranger.server.client.get<unknown>("/v1/spaces?status=all")).toEqual([]);
      const seen = await stranger.server.client.get<{ peers: unknown[] }>("/v1/debug/p2p");
      expect(seen.peers).toEqual([]);
    },
    LONG_MS,
  );
});
