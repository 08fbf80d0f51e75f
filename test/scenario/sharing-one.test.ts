/** Members, guest keys and ACL, as far as one server shows them. */
import { describe, expect } from "bun:test";
import { rule } from "../support/rule.ts";
import { type SpaceInfo, until } from "../support/server/client.ts";
import { proposalsAt } from "../support/server/devices.ts";
import { ABSENT, createSpace } from "../support/server/fixtures.ts";
import { runScenarios } from "../support/server/scenario.ts";
import { type Invite, type Member, useSharingServer } from "../support/server/sharing-server.ts";

const here = useSharingServer();
const { shared, context } = here;
const S = () => `/v1/spaces/${here.space.id}`;

describe("members", () => {
  rule("[ACL-4] the creator is the owner; me is the same row; no request waits", async () => {
    const { members } = await shared.client.get<{ members: Member[] }>(`${S()}/members`);
    expect(members[0]).toMatchObject({ identity: here.accountId, permission: "owner", status: "active" });
    expect(await shared.client.get<Member>(`${S()}/members/me`)).toMatchObject({ identity: here.accountId });
    expect(await shared.client.get<Member>(`${S()}/members/${here.accountId}`)).toMatchObject({ permission: "owner" });
    expect(await shared.client.get<{ requests: unknown[] }>(`${S()}/members/requests`)).toEqual({ requests: [] });
  });

  rule("[ACL-4] [ACL-20] adding, changing and removing show in the roster, the stream and the directory", async () => {
    const made = await createSpace(shared.client, "roster");
    const base = `/v1/spaces/${made.id}`;
    await using stream = await shared.client.stream("GET", `${base}/members/subscribe`);
    await stream.expect("ready");
    const add = { accounts: [{ identity: here.otherId, permission: "writer", metadata: { name: "Other" } }] };
    await shared.client.post(`${base}/acl/add`, add, 204);
    expect(await stream.expect("member")).toMatchObject({
      kind: "added",
      previous: null,
      member: { identity: here.otherId, permission: "writer", status: "active", name: "Other" },
    });
    expect(await shared.client.get<{ spaceIds: string[] }>(`/v1/identities/${here.otherId}`)).toMatchObject({
      identity: here.otherId,
      name: "Other",
      spaceIds: [made.id],
    });

    await shared.client.post(
      `${base}/acl/permissions`,
      { changes: [{ identity: here.otherId, permission: "reader" }] },
      204,
    );
    expect(await stream.expect("member")).toMatchObject({
      kind: "changed",
      member: { permission: "reader" },
      previous: { permission: "writer" },
    });

    const before = (await shared.client.get<{ push: { encKeyId: string; spaceKey: string } }>(base)).push;
    await shared.client.post(`${base}/acl/remove`, { identities: [here.otherId] }, 204);
    expect(await stream.expect("member")).toMatchObject({
      kind: "removed",
      member: { permission: "none", status: "removed" },
      previous: { permission: "reader" },
    });
    await shared.client.fails("GET", `/v1/identities/${here.otherId}`, undefined, 404, "identity.not_found");
    expect(await shared.client.get<Member>(`${base}/members/${here.otherId}`)).toMatchObject({ status: "removed" });
    const after = (await shared.client.get<{ push: { encKeyId: string; spaceKey: string } }>(base)).push;
    expect(after.encKeyId).not.toBe(before.encKeyId);
    expect(after.spaceKey).not.toBe(before.spaceKey);
    await shared.client.fails("POST", `${base}/acl/remove`, { identities: [here.otherId] }, 404, "identity.not_found");
  });

  rule("[ACL-1] [ACL-2] [SPACE-10] ownership goes to an active member; the old owner keeps its new role", async () => {
    const made = await createSpace(shared.client, "handed over");
    const base = `/v1/spaces/${made.id}`;
    await shared.client.post(`${base}/acl/add`, { accounts: [{ identity: here.otherId, permission: "reader" }] }, 204);
    await shared.client.fails(
      "POST",
      `${base}/acl/ownership`,
      { newOwner: here.thirdId, oldOwnerPerm: "admin" },
      404,
      "identity.not_found",
    );
    await shared.client.post(`${base}/acl/ownership`, { newOwner: here.otherId, oldOwnerPerm: "reader" }, 204);
    expect(await shared.client.get<SpaceInfo>(base)).toMatchObject({ ownRole: "reader", author: here.accountId });
    for (const [path, body] of [
      ["invites", {}],
      ["guest-key", {}],
      ["acl/stop-sharing", {}],
      ["acl/add", { accounts: [{ identity: here.thirdId, permission: "reader" }] }],
      ["acl/remove", { identities: [here.otherId] }],
    ] as const) {
      const error = await shared.client.fails("POST", `${base}/${path}`, body, 403, "acl.forbidden");
      expect(error.details).toMatchObject({ role: "reader" });
    }
    await shared.client.fails("POST", `${base}/objects`, {}, 403, "space.read_only");
    await shared.client.fails("PATCH", base, { name: "mine" }, 403, "space.read_only");
    await shared.client.post(`${base}/acl/self-remove`, {}, 204);
    expect(await shared.client.get<SpaceInfo>(base)).toMatchObject({ status: "deleted" });
    await shared.client.fails("GET", `${base}/members`, undefined, 409, "space.deleted");
  });

  rule("[SPACE-2] [ACL-17] deleting somebody else's space is leaving it: it may be joined again", async () => {
    const made = await createSpace(shared.client, "another's");
    const base = `/v1/spaces/${made.id}`;
    const { inviteToken } = await shared.client.post<{ inviteToken: string }>(`${base}/invites`, {}, 201);
    await shared.client.post(`${base}/acl/add`, { accounts: [{ identity: here.otherId, permission: "reader" }] }, 204);
    await shared.client.post(`${base}/acl/ownership`, { newOwner: here.otherId, oldOwnerPerm: "writer" }, 204);
    await shared.client.del(base);
    expect(await shared.client.get<unknown>(base)).toMatchObject({
      status: "deleted",
      ownRole: "none",
      ended: { how: "left", by: here.accountId },
    });
    const ofRow = { filter: { id: made.id } };
    const { records } = await shared.client.post<{ records: unknown[] }>("/v1/spaces/query", ofRow);
    expect(records).toHaveLength(1);
    expect(records[0]).not.toHaveProperty("final");
    // Nobody has heard of the leaving, so it is a member still, and what was to tell others of it is withdrawn.
    const again = await shared.client.post<SpaceInfo>("/v1/spaces/join", { inviteToken }, 202);
    expect(again).toMatchObject({ id: made.id, status: "active", ownRole: "writer" });
    await until(async () => (await proposalsAt(shared, made.id)) === 0, "the leaving to be withdrawn");
  });

  rule("[ACL-14] stop-sharing drops everybody else and every invite, and does nothing to a private space", async () => {
    const made = await createSpace(shared.client, "private again");
    const base = `/v1/spaces/${made.id}`;
    await shared.client.post(`${base}/acl/stop-sharing`, {}, 204);
    await shared.client.post(`${base}/acl/add`, { accounts: [{ identity: here.otherId, permission: "admin" }] }, 204);
    await shared.client.post(`${base}/invites`, {}, 201);
    await shared.client.post(`${base}/acl/stop-sharing`, {}, 204);
    expect(await shared.client.get<{ invites: Invite[] }>(`${base}/invites`)).toEqual({ invites: [] });
    expect(await shared.client.get<Member>(`${base}/members/${here.otherId}`)).toMatchObject({ status: "removed" });
  });

  runScenarios(context, [
    {
      title: "[ACL-19] an unknown member is identity.not_found",
      method: "GET",
      path: "{S}/members/{otherId}",
      status: 404,
      code: "identity.not_found",
    },
    {
      title: "[ACL-19] what is no account id is identity.not_found",
      method: "GET",
      path: "{S}/members/nobody",
      status: 404,
      code: "identity.not_found",
    },
    {
      title: "[API-11] an unknown space is space.not_found",
      method: "GET",
      path: "{NONE}/members",
      status: 404,
      code: "space.not_found",
    },
    {
      title: "[ACL-19] an unknown request is request.invalid_field",
      method: "POST",
      path: "{S}/acl/accept",
      body: { requestRecordId: ABSENT, permission: "writer" },
      status: 400,
      code: "request.invalid_field",
      details: { field: "requestRecordId" },
    },
    {
      title: "[API-1] accepting as owner is request.schema",
      method: "POST",
      path: "{S}/acl/accept",
      body: { requestRecordId: ABSENT, permission: "owner" },
      status: 400,
      code: "request.schema",
    },
    ...["owner", "none", "guest"].flatMap((permission) =>
      [
        { path: "acl/add", body: { accounts: [{ identity: "{otherId}", permission }] } },
        { path: "acl/permissions", body: { changes: [{ identity: "{otherId}", permission }] } },
        { path: "acl/ownership", body: { newOwner: "{otherId}", oldOwnerPerm: permission } },
      ].map(({ path, body }) => ({
        title: `[ACL-1] ${path} gives nobody the role ${permission}`,
        method: "POST" as const,
        path: `{S}/${path}`,
        body,
        status: 400,
        code: "request.schema",
      })),
    ),
    {
      title: "[API-1] an unknown permission is request.schema",
      method: "POST",
      path: "{S}/acl/permissions",
      body: { changes: [{ identity: "{otherId}", permission: "king" }] },
      status: 400,
      code: "request.schema",
    },
    {
      title: "[ACL-19] [API-19] declining who has not asked is identity.not_found",
      method: "POST",
      path: "{S}/acl/decline",
      body: { identity: "{otherId}" },
      status: 404,
      code: "identity.not_found",
    },
    {
      title: "[ACL-19] [API-19] the permission of no member is identity.not_found",
      method: "POST",
      path: "{S}/acl/permissions",
      body: { changes: [{ identity: "{otherId}", permission: "reader" }] },
      status: 404,
      code: "identity.not_found",
    },
    {
      title: "[ACL-2] the owner is fixed",
      method: "POST",
      path: "{S}/acl/permissions",
      body: { changes: [{ identity: "{accountId}", permission: "reader" }] },
      status: 403,
      code: "acl.forbidden",
    },
    {
      title: "[ACL-2] nobody removes itself",
      method: "POST",
      path: "{S}/acl/remove",
      body: { identities: ["{accountId}"] },
      status: 403,
      code: "acl.forbidden",
    },
    {
      title: "[ACL-2] the owner does not leave",
      method: "POST",
      path: "{S}/acl/self-remove",
      status: 403,
      code: "acl.forbidden",
    },
    {
      title: "[ACL-3] [ACL-19] adding a member again is request.invalid_field",
      method: "POST",
      path: "{S}/acl/add",
      body: { accounts: [{ identity: "{accountId}", permission: "reader" }] },
      status: 400,
      code: "request.invalid_field",
    },
    {
      title: "[API-1] an account named twice is request.invalid_field",
      method: "POST",
      path: "{S}/acl/add",
      body: {
        accounts: [
          { identity: "{otherId}", permission: "reader" },
          { identity: "{otherId}", permission: "writer" },
        ],
      },
      status: 400,
      code: "request.invalid_field",
    },
    ...(
      [
        ["acl/add", { accounts: [{ identity: "junk", permission: "reader" }] }, "accounts[0].identity"],
        ["acl/remove", { identities: ["junk"] }, "identities[0]"],
        ["acl/permissions", { changes: [{ identity: "junk", permission: "reader" }] }, "changes[0].identity"],
        ["acl/ownership", { newOwner: "junk", oldOwnerPerm: "reader" }, "newOwner"],
        ["acl/decline", { identity: "junk" }, "identity"],
        [
          "acl/permissions",
          {
            changes: [
              { identity: "{otherId}", permission: "reader" },
              { identity: "{otherId}", permission: "writer" },
            ],
          },
          "changes[1].identity",
        ],
      ] as const
    ).map(([path, body, field]) => ({
      title: `[API-1] ${path}: a refused account is named by its place, ${field}`,
      method: "POST" as const,
      path: `{S}/${path}`,
      body,
      status: 400,
      code: "request.invalid_field",
      details: { field },
    })),
    {
      title: "[API-1] an unknown key below the top is request.schema and named in the message",
      method: "POST",
      path: "{S}/acl/add",
      body: { accounts: [{ identity: "{otherId}", permission: "reader", role: "x" }] },
      status: 400,
      code: "request.schema",
      details: { path: "accounts[0].role" },
      mustContain: ['"message":"accounts[0].role '],
    },
    {
      title: "[ACL-17] cancel-join of a space one is in is space.not_invite_pending",
      method: "POST",
      path: "{S}/acl/cancel-join",
      status: 409,
      code: "space.not_invite_pending",
    },
    {
      title: "[API-1] unknown keys are refused",
      method: "POST",
      path: "{S}/acl/remove",
      body: { identities: ["{otherId}"], force: true },
      status: 400,
      code: "request.unknown_field",
    },
  ]);
});
