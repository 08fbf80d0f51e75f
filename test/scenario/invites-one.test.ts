/** Invites and one-to-one rows, as far as one server shows them. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { scratchDir } from "../support/scratch.ts";
import type { SpaceInfo } from "../support/server/client.ts";
import { createSpace } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { startServer } from "../support/server/server.ts";
import { type Invite, type Member, useSharingServer } from "../support/server/sharing-server.ts";

const here = useSharingServer();
const { shared, context } = here;

describe("invites", () => {
  rule("[ACL-16] one at a time: minting replaces, the list shows token and role, revoking ends it", async () => {
    const made = await createSpace(shared.client, "invites");
    const base = `/v1/spaces/${made.id}`;
    const first = await shared.client.post<{ spaceId: string; inviteToken: string }>(`${base}/invites`, undefined, 201);
    expect(first.spaceId).toBe(made.id);
    const asking = (await shared.client.get<{ invites: Invite[] }>(`${base}/invites`)).invites;
    expect(asking).toEqual([{ recordId: asking[0]!.recordId, permission: "none", inviteToken: first.inviteToken }]);
    const open = await shared.client.post<{ inviteToken: string }>(
      `${base}/invites`,
      { mode: "open", permission: "reader" },
      201,
    );
    const [listed, ...others] = (await shared.client.get<{ invites: Invite[] }>(`${base}/invites`)).invites;
    expect(others).toEqual([]);
    expect(listed).toMatchObject({ permission: "reader", inviteToken: open.inviteToken });
    expect(await shared.client.get<Invite>(`${base}/invites/${listed!.recordId}`)).toEqual(listed!);
    await shared.client.fails("GET", `${base}/invites/${asking[0]!.recordId}`, undefined, 404, "invite.not_found");
    await shared.client.del(`${base}/invites/${listed!.recordId}`);
    await shared.client.fails("DELETE", `${base}/invites/${listed!.recordId}`, undefined, 404, "invite.not_found");
    await shared.client.post(`${base}/invites`, {}, 201);
    await shared.client.del(`${base}/invites`);
    await shared.client.del(`${base}/invites`);
    expect(await shared.client.get<{ invites: Invite[] }>(`${base}/invites`)).toEqual({ invites: [] });
  });

  rule("[ACL-16] tokens are shown again after a restart", async () => {
    using dir = scratchDir("svc-tokens");
    await using server = await startServer({ dataDir: dir.path });
    const made = await createSpace(server.client, "kept");
    const { inviteToken } = await server.client.post<{ inviteToken: string }>(`/v1/spaces/${made.id}/invites`, {}, 201);
    const guest = await server.client.post<{ inviteToken: string }>(`/v1/spaces/${made.id}/guest-key`, {}, 201);
    await server.stop();
    await using again = await startServer({ dataDir: dir.path });
    const { invites } = await again.client.get<{ invites: Invite[] }>(`/v1/spaces/${made.id}/invites`);
    expect(invites[0]!.inviteToken).toBe(inviteToken);
    const same = await again.client.post<{ inviteToken: string }>(`/v1/spaces/${made.id}/guest-key`, {}, 201);
    expect(same.inviteToken).toBe(guest.inviteToken);
  });

  rule("[ACL-16] the same token each time, another after it was revoked; revoking rotates the key", async () => {
    const made = await createSpace(shared.client, "guests");
    const base = `/v1/spaces/${made.id}`;
    await shared.client.fails("DELETE", `${base}/guest-key`, undefined, 404, "guest_key.not_found");
    const first = await shared.client.post<{ spaceId: string; inviteToken: string }>(`${base}/guest-key`, {}, 201);
    expect(await shared.client.post<unknown>(`${base}/guest-key`, {}, 201)).toEqual(first);
    const { members } = await shared.client.get<{ members: Member[] }>(`${base}/members`);
    expect(members.map(({ permission }) => permission)).toEqual(["owner", "guest"]);
    expect((await shared.client.get<{ identities: unknown[] }>("/v1/identities")).identities).not.toContainEqual(
      expect.objectContaining({ identity: members[1]!.identity }),
    );
    await shared.client.del(`${base}/guest-key`);
    await shared.client.fails("DELETE", `${base}/guest-key`, undefined, 404, "guest_key.not_found");
    const second = await shared.client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201);
    expect(second.inviteToken).not.toBe(first.inviteToken);
  });

  runScenarios(context, [
    {
      title: "[API-1] an open invite says which role it gives",
      method: "POST",
      path: "{S}/invites",
      body: { mode: "open" },
      status: 400,
      code: "request.missing_field",
      details: { field: "permission" },
    },
    {
      title: "[ACL-2] admin is no role for an open invite",
      method: "POST",
      path: "{S}/invites",
      body: { mode: "open", permission: "admin" },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[API-1] a role without open is request.invalid_field",
      method: "POST",
      path: "{S}/invites",
      body: { permission: "reader" },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[API-1] an unknown mode is request.invalid_field",
      method: "POST",
      path: "{S}/invites",
      body: { mode: "secret" },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[API-1] a token is needed",
      method: "POST",
      path: "/v1/spaces/join",
      body: {},
      status: 400,
      code: "request.missing_field",
      details: { field: "inviteToken" },
    },
    {
      title: "[ACL-16] what is no token is invite.invalid",
      method: "POST",
      path: "/v1/spaces/join",
      body: { inviteToken: "3yQ" },
      status: 400,
      code: "invite.invalid",
    },
    {
      title: "[SPACE-5] accept of a space one is in is space.not_invite_pending",
      method: "POST",
      path: "{S}/invite/accept",
      status: 409,
      code: "space.not_invite_pending",
    },
    {
      title: "[SPACE-5] decline of a space one is in is space.not_invite_pending",
      method: "POST",
      path: "{S}/invite/decline",
      status: 409,
      code: "space.not_invite_pending",
    },
    {
      title: "[API-11] accept of an unknown space is space.not_found",
      method: "POST",
      path: "{NONE}/invite/accept",
      status: 404,
      code: "space.not_found",
    },
  ]);

  rule("[ACL-17] a space one is in answers 202 with its row, by any of its tokens", async () => {
    const made = await createSpace(shared.client, "own");
    const { inviteToken } = await shared.client.post<{ inviteToken: string }>(`/v1/spaces/${made.id}/invites`, {}, 201);
    const row = await shared.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202);
    expect(row).toMatchObject({ id: made.id, status: "active", ownRole: "owner" });
  });

  rule(
    "[ACL-17] [SPACE-2] [API-11] with nobody in reach the row says joining, refuses reads, and is gone after cancel-join",
    async () => {
      const made = await createSpace(shared.client, "far away");
      const { inviteToken } = await shared.client.post<{ inviteToken: string }>(
        `/v1/spaces/${made.id}/invites`,
        {},
        201,
      );
      await using server = await startServer();
      const joining = await server.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202);
      expect(joining).toMatchObject({ id: made.id, status: "joining", ownRole: "none" });
      expect(joining).not.toHaveProperty("spaceIndexObjectId");
      const error = await server.client.fails(
        "GET",
        `/v1/spaces/${made.id}/members`,
        undefined,
        409,
        "space.not_accepted",
      );
      expect(error.details).toMatchObject({ spaceId: made.id, status: "joining" });
      expect(await server.client.get<SpaceInfo[]>("/v1/spaces?status=joining")).toHaveLength(1);
      await server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await server.client.post(`/v1/spaces/${made.id}/acl/cancel-join`, {}, 204);
      expect(await server.client.get<SpaceInfo>(`/v1/spaces/${made.id}`)).toMatchObject({ status: "deleted" });
      await server.client.fails("POST", `/v1/spaces/${made.id}/acl/cancel-join`, {}, 409, "space.deleted");
      expect(await server.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202)).toMatchObject({
        status: "joining",
      });
      await server.client.del(`/v1/spaces/${made.id}`);
      expect(await server.client.get<SpaceInfo[]>("/v1/spaces?status=joining")).toEqual([]);
    },
  );
});

describe("one-to-one", () => {
  rule("[SPACE-4] initiating makes the space at once; again is the same; a deleted one is begun anew", async () => {
    const made = await shared.client.post<SpaceInfo>("/v1/spaces/one-to-one", { otherIdentity: here.otherId }, 201);
    expect(made).toMatchObject({
      spaceType: "svc.onetoone",
      author: here.otherId,
      ownRole: "writer",
      status: "active",
    });
    expect(made.spaceIndexObjectId).toBeString();
    const again = await shared.client.post<SpaceInfo>("/v1/spaces/one-to-one", { otherIdentity: here.otherId }, 201);
    expect(again.id).toBe(made.id);
    const base = `/v1/spaces/${made.id}`;
    const { members } = await shared.client.get<{ members: Member[] }>(`${base}/members`);
    expect(members.map(({ permission, status }) => `${permission} ${status}`)).toEqual([
      "writer active",
      "writer active",
    ]);
    expect(members.map(({ identity }) => identity).sort()).toEqual([here.accountId, here.otherId].sort());
    await shared.client.fails("POST", `${base}/invites`, {}, 403, "acl.forbidden");
    await shared.client.fails("POST", `${base}/acl/self-remove`, {}, 403, "acl.forbidden");
    await shared.client.post(`${base}/objects`, {}, 201);
    await shared.client.fails("POST", `${base}/one-to-one/decline`, {}, 409, "space.not_invite_pending");
    await shared.client.del(base);
    expect(await shared.client.get<SpaceInfo>(base)).toMatchObject({ status: "deleted" });
    await shared.client.fails("POST", `${base}/one-to-one/accept`, {}, 409, "space.deleted");
    const revived = await shared.client.post<SpaceInfo>("/v1/spaces/one-to-one", { otherIdentity: here.otherId }, 201);
    expect(revived).toMatchObject({ id: made.id, status: "active" });
  });

  rule("[SPACE-4] an incoming request waits on this device: declined, accepted after all", async () => {
    const body = { peerIdentity: here.thirdId, displayHint: { name: "Third" } };
    await shared.client.post("/v1/spaces/one-to-one/register-incoming", body, 204);
    await shared.client.post("/v1/spaces/one-to-one/register-incoming", { peerIdentity: here.thirdId }, 204);
    const [pending, ...more] = await shared.client.get<SpaceInfo[]>("/v1/spaces?status=one_to_one_pending");
    expect(more).toEqual([]);
    expect(pending).toMatchObject({ author: here.thirdId, name: "Third", ownRole: "none", spaceType: "svc.onetoone" });
    const base = `/v1/spaces/${pending!.id}`;
    const error = await shared.client.fails("GET", `${base}/members`, undefined, 409, "space.not_accepted");
    expect(error.details).toMatchObject({ status: "one_to_one_pending" });
    await shared.client.fails("POST", `${base}/invite/accept`, {}, 409, "space.not_invite_pending");
    await shared.client.patch(`${base}/settings`, { set: { notifyMode: "none" } });
    expect(await shared.client.get<SpaceInfo>(base)).toMatchObject({
      status: "one_to_one_pending",
      settings: { notifyMode: "none" },
    });
    await shared.client.post(`${base}/one-to-one/decline`, {}, 204);
    await shared.client.post(`${base}/one-to-one/decline`, {}, 204);
    expect(await shared.client.get<SpaceInfo>(base)).toMatchObject({ status: "one_to_one_declined", name: "Third" });
    await shared.client.post("/v1/spaces/one-to-one/register-incoming", body, 204);
    expect(await shared.client.get<SpaceInfo>(base)).toMatchObject({ status: "one_to_one_declined" });
    const accepted = await shared.client.post<SpaceInfo>(`${base}/one-to-one/accept`, {}, 200);
    expect(accepted).toMatchObject({ status: "active", ownRole: "writer", settings: { notifyMode: "none" } });
    expect(await shared.client.get<SpaceInfo[]>("/v1/spaces?status=one_to_one_pending")).toEqual([]);
    await shared.client.post(`${base}/one-to-one/accept`, {}, 200);
  });

  rule("[SPACE-4] both accounts compute the same space", async () => {
    await using server = await startServer();
    const peer = (await server.client.get<{ id: string }>("/v1/account")).id;
    const mine = await shared.client.post<SpaceInfo>("/v1/spaces/one-to-one", { otherIdentity: peer }, 201);
    const there = await server.client.post<SpaceInfo>("/v1/spaces/one-to-one", { otherIdentity: here.accountId }, 201);
    expect(there).toMatchObject({ id: mine.id, spaceIndexObjectId: mine.spaceIndexObjectId! });
  });

  runScenarios(context, [
    {
      title: "[SPACE-4] somebody is needed",
      method: "POST",
      path: "/v1/spaces/one-to-one",
      body: {},
      status: 400,
      code: "request.missing_field",
      details: { field: "otherIdentity" },
    },
    {
      title: "[SPACE-4] not with oneself",
      method: "POST",
      path: "/v1/spaces/one-to-one",
      body: { otherIdentity: "{accountId}" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "otherIdentity", reason: "self" },
    },
    {
      title: "[SPACE-4] with an account",
      method: "POST",
      path: "/v1/spaces/one-to-one",
      body: { otherIdentity: "somebody" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "otherIdentity" },
    },
    {
      title: "[SPACE-4] nothing comes in from oneself",
      method: "POST",
      path: "/v1/spaces/one-to-one/register-incoming",
      body: { peerIdentity: "{accountId}" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "peerIdentity", reason: "self" },
    },
    {
      title: "[SPACE-4] accept of a shared space is space.not_invite_pending",
      method: "POST",
      path: "{S}/one-to-one/accept",
      status: 409,
      code: "space.not_invite_pending",
    },
    {
      title: "[SPACE-4] accept of an unknown space is space.not_found",
      method: "POST",
      path: "{NONE}/one-to-one/accept",
      status: 404,
      code: "space.not_found",
    },
  ]);
});
