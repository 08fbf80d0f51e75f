/**
 * People who act at once, apart, or are cut off in the middle: real servers with accounts of their own, on a network and
 * on a LAN alone, that must end with one roster and the same rows.
 */
import { Database } from "bun:sqlite";
import { describe, expect } from "bun:test";
import { join } from "node:path";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { pace } from "../../support/pace.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import {
  type Device,
  joinOpen,
  mintInvite,
  proposalsAt,
  rowStatusOf,
  rowsOf,
  setName,
  spacesOf,
  startDevice,
  untilSame,
  untilStatus,
} from "../../support/server/devices.ts";
import { createObject, createSpace, named } from "../../support/server/fixtures.ts";
import {
  addMembers,
  removeMembers,
  rosterHas,
  rosterOf,
  strangers,
  untilOneRoster,
} from "../../support/worlds/rosters.ts";

const LONG_MS = 150_000;
const WAIT_MS = 45_000;

/** Joins by an open invite, and is given the role by the owner. */
async function bringIn(owner: Device, joiner: Device, spaceId: string, permission: string): Promise<void> {
  await joinOpen(owner, joiner, spaceId);
  if (permission === "writer") return;
  await until(
    async () => (await rosterOf(owner, spaceId)).includes(joiner.accountId),
    "the member at the owner's",
    WAIT_MS,
  );
  const changes = [{ identity: joiner.accountId, permission }];
  await owner.server.client.post(`/v1/spaces/${spaceId}/acl/permissions`, { changes }, 204);
  await until(
    async () => (await spacesOf(joiner)).some(({ id, ownRole }) => id === spaceId && ownRole === permission),
    `the role ${permission}`,
    WAIT_MS,
  );
}

describeWithNats("people on a network", () => {
  rule(
    "[ACL-11] two admins who act at once on two servers end with one roster; who comes back keeps what it wrote",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using one = await startDevice({ network: nats.url });
      await using two = await startDevice({ network: nats.url });
      const { id } = await createSpace(owner.server.client, "Board");
      const object = await createObject(owner.server.client, id);
      await bringIn(owner, one, id, "admin");
      await bringIn(owner, two, id, "admin");

      const added = strangers(6);
      const [shared] = strangers(1);
      await addMembers(owner, id, [shared!], "writer");
      await untilOneRoster([owner, one, two], id, rosterHas(shared!));
      await Promise.all([
        ...added.slice(0, 3).map((identity) => addMembers(one, id, [identity])),
        ...added.slice(3).map((identity) => addMembers(two, id, [identity], "writer")),
        // Both do the same: whoever is second finds it done.
        ...[one, two].map((admin) =>
          admin.server.client.request("POST", `/v1/spaces/${id}/acl/remove`, { body: { identities: [shared] } }),
        ),
      ]);
      await untilOneRoster(
        [owner, one, two],
        id,
        rosterHas(...added.map((identity) => `${identity}","`), `["${shared}","none","removed"]`),
      );

      await untilSame([owner, one, two], id, (rows) => rows.includes(object.id), WAIT_MS);
      await setName(two, id, object.id, "written before the removal");
      await untilSame([owner, one, two], id, (rows) => rows.includes("written before the removal"));
      await removeMembers(owner, id, [two.accountId]);
      await untilStatus(two, id, "deleted");
      await setName(one, id, object.id, "written meanwhile");
      await bringIn(owner, two, id, "writer");
      const other = await createObject(two.server.client, id, named("written after"));
      await untilSame(
        [owner, one, two],
        id,
        (rows) => rows.includes("written meanwhile") && rows.includes("written after"),
        WAIT_MS,
      );
      // Somebody who reads it all from the start judges it alike.
      await using fresh = await startDevice({ network: nats.url, mnemonic: owner.mnemonic });
      await until(
        async () => (await fresh.server.client.request("GET", `/v1/spaces/${id}/sync-status`)).status === 200,
        "the space at the second device",
        WAIT_MS,
      );
      await untilSame([owner, fresh], id, (rows) => rows.includes("written after"), WAIT_MS);
      for (const objectId of [object.id, other.id]) {
        const history = async (device: Device) =>
          JSON.stringify(
            await device.server.client.get<{ changes: unknown[] }>(`/v1/spaces/${id}/objects/${objectId}/history`),
          );
        await until(async () => (await history(fresh)) === (await history(two)), "one history", WAIT_MS);
        expect(await history(fresh)).toBe(await history(owner));
      }
      await untilOneRoster([owner, one, two, fresh], id, rosterHas(two.accountId));
    },
    LONG_MS,
  );

  rule(
    "[ACL-10] a space that another device of the account ends while this one is leaving it is left, and nothing fails",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using member = await startDevice({ network: nats.url });
      await using other = await startDevice({ network: nats.url, mnemonic: member.mnemonic });
      const { id } = await createSpace(owner.server.client, "Left");
      await joinOpen(owner, member, id);
      const isIn = async () => (await spacesOf(other)).some((row) => row.id === id && row.ownRole !== "none");
      await until(isIn, "the space at the other device", WAIT_MS);
      // What the leaving device notes of it for itself takes until the other one has heard, and said that the space is over.
      using accountDb = new Database(join(member.server.dataDir, member.accountId, "sdk/account.db"), {
        readwrite: true,
      });
      accountDb.exec("BEGIN IMMEDIATE");
      const leaving = member.server.client.request("POST", `/v1/spaces/${id}/acl/self-remove`, { body: {} });
      await untilStatus(other, id, "deleted");
      await untilStatus(member, id, "deleted");
      accountDb.exec("ROLLBACK");
      expect((await leaving).status).toBe(204);
      await untilOneRoster([owner], id, rosterHas(`["${member.accountId}","none","removed"]`));
      await untilStatus(member, id, "deleted");
    },
    LONG_MS,
  );

  rule(
    "[ACL-16] [ACL-17] second devices of both sides see the invite, the request and the membership, and may end it",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using owner2 = await startDevice({ network: nats.url, mnemonic: owner.mnemonic });
      await using joiner = await startDevice({ network: nats.url });
      await using joiner2 = await startDevice({ network: nats.url, mnemonic: joiner.mnemonic });
      const { id } = await createSpace(owner.server.client, "Two of each");
      const base = `/v1/spaces/${id}`;
      const inviteToken = await mintInvite(owner, id);
      const tokensOf = async (device: Device) => {
        const reply = await device.server.client.request("GET", `${base}/invites`);
        return ((reply.json as { invites?: { inviteToken?: string }[] }).invites ?? []).map((one) => one.inviteToken);
      };
      await until(
        async () => (await tokensOf(owner2)).join() === inviteToken,
        "the token at the other device",
        WAIT_MS,
      );

      await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await untilStatus(joiner2, id, "joining");
      let requests: { requestRecordId: string; identity: string }[] = [];
      const requested = async (device: Device) => {
        ({ requests } = await device.server.client.get<{ requests: typeof requests }>(`${base}/members/requests`));
        return requests.some(({ identity }) => identity === joiner.accountId);
      };
      await until(() => requested(owner2), "the request at the owner's other device", WAIT_MS);
      await joiner2.server.client.post(`${base}/acl/cancel-join`, {}, 204);
      for (const device of [owner, owner2])
        await until(async () => !(await requested(device)), "the request to be taken back", WAIT_MS);
      await untilStatus(joiner, id, "deleted");

      await joiner2.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      await until(() => requested(owner2), "the second request", WAIT_MS);
      const body = { requestRecordId: requests[0]!.requestRecordId, permission: "writer" };
      await owner2.server.client.post(`${base}/acl/accept`, body, 204);
      // The row may come from the other device before this one has read the ACL log.
      const mayWrite = async (device: Device) =>
        (await spacesOf(device)).some((row) => row.id === id && row.status === "active" && row.ownRole === "writer");
      for (const device of [joiner, joiner2]) await until(() => mayWrite(device), "the right to write", WAIT_MS);
      await createObject(joiner.server.client, id, named("from the first"));
      await createObject(joiner2.server.client, id, named("from the second"));
      const all = [owner, owner2, joiner, joiner2];
      await untilSame(all, id, (rows) => rows.includes("from the first") && rows.includes("from the second"), WAIT_MS);
      await untilOneRoster(all, id, rosterHas(joiner.accountId));

      await joiner.server.client.post(`${base}/acl/self-remove`, {}, 204);
      await untilStatus(joiner2, id, "deleted");
      await untilOneRoster([owner, owner2], id, rosterHas(`["${joiner.accountId}","none","removed"]`));
    },
    LONG_MS,
  );

  rule(
    "[ACL-3] kill -9 in the middle of a join, of leaving and of a removal: after a restart each comes to its end",
    async () => {
      await using nats = await startNats();
      using dir = scratchDir("svc-data");
      await using owner = await startDevice({ network: nats.url });
      const start = () => startDevice({ network: nats.url, dataDir: dir.path });
      let joiner = await start();
      try {
        const { id } = await createSpace(owner.server.client, "Interrupted");
        const base = `/v1/spaces/${id}`;
        await createObject(owner.server.client, id, named("seen"));
        const inviteToken = await mintInvite(owner, id, { mode: "open", permission: "writer" });
        const restart = async (): Promise<void> => {
          await joiner.server.kill();
          await joiner[Symbol.asyncDispose]();
          joiner = await start();
        };
        // Killed while the answer is on its way: at whatever step that is.
        for (const afterMs of [0, 30, 90]) {
          const asked = joiner.server.client.request("POST", "/v1/spaces/join", { body: { inviteToken } });
          const answered = asked.then(
            () => true,
            () => false,
          );
          await pace(afterMs);
          await restart();
          await answered;
        }
        await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
        await restart();
        await untilStatus(joiner, id, "active");
        await untilSame([owner, joiner], id, (rows) => rows.includes("seen"), WAIT_MS);

        await joiner.server.client.post(`${base}/acl/self-remove`, {}, 204);
        await restart();
        expect(await rowStatusOf(joiner, id)).toBe("deleted");
        await untilOneRoster([owner], id, rosterHas(`["${joiner.accountId}","none","removed"]`));

        await joinOpen(owner, joiner, id);
        await joiner.server.kill();
        await removeMembers(owner, id, [joiner.accountId]);
        await restart();
        await untilStatus(joiner, id, "deleted");
        await joiner.server.client.fails("GET", `${base}/members`, undefined, 409, "space.deleted");
      } finally {
        await joiner[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );

  rule(
    "[ACL-2] [SPACE-2] a guest may manage nothing; after the key was revoked another one lets it in again",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using guest = await startDevice({ network: nats.url });
      const { id } = await createSpace(owner.server.client, "Public");
      const base = `/v1/spaces/${id}`;
      const object = await createObject(owner.server.client, id);
      await setName(owner, id, object.id, "for all");
      const key = async () =>
        (await owner.server.client.post<{ inviteToken: string }>(`${base}/guest-key`, {}, 201)).inviteToken;
      const first = await key();
      await guest.server.client.post("/v1/spaces/join", { inviteToken: first }, 202);
      await untilStatus(guest, id, "active");
      await untilSame([owner, guest], id, (rows) => rows.includes("for all"), WAIT_MS);
      const [identity] = strangers(1);
      for (const [path, body] of [
        ["/invites", {}],
        ["/guest-key", {}],
        ["/acl/add", { accounts: [{ identity, permission: "reader" }] }],
        ["/acl/permissions", { changes: [{ identity: owner.accountId, permission: "reader" }] }],
        ["/acl/remove", { identities: [owner.accountId] }],
        ["/acl/ownership", { newOwner: owner.accountId, oldOwnerPerm: "reader" }],
        ["/acl/stop-sharing", undefined],
        ["/acl/self-remove", undefined],
      ] as const) {
        const error = await guest.server.client.fails("POST", `${base}${path}`, body, 403, "acl.forbidden");
        expect([path, error.details]).toMatchObject([path, { role: "guest" }]);
      }
      await owner.server.client.del(`${base}/guest-key`);
      await untilStatus(guest, id, "guest_revoked");
      await setName(owner, id, object.id, "not for guests");
      // The old key is refused, and what was read by it stays readable.
      await guest.server.client.fails("POST", "/v1/spaces/join", { inviteToken: first }, 400, "invite.invalid");
      expect(await rowStatusOf(guest, id)).toBe("guest_revoked");
      expect(await rowsOf(guest, id)).toContain("for all");
      expect(await rowsOf(guest, id)).not.toContain("not for guests");
      await guest.server.client.post("/v1/spaces/join", { inviteToken: await key() }, 202);
      await untilStatus(guest, id, "active");
      await untilSame([owner, guest], id, (rows) => rows.includes("not for guests"), WAIT_MS);
    },
    LONG_MS,
  );
});

describe("people on a LAN alone", () => {
  rule(
    "[ACL-15] what admins do without a network waits for the owner's device, which puts it in order: one roster",
    async () => {
      using dir = scratchDir("svc-data");
      let owner = await startDevice({ lan: true, dataDir: dir.path });
      try {
        await using one = await startDevice({ lan: true });
        await using two = await startDevice({ lan: true });
        const { id } = await createSpace(owner.server.client, "Apart");
        await bringIn(owner, one, id, "admin");
        await bringIn(owner, two, id, "admin");
        const [target, a, b] = strangers(3);
        await addMembers(owner, id, [target!], "writer");
        await untilOneRoster([owner, one, two], id, rosterHas(target!));
        await owner.server.stop();
        await owner[Symbol.asyncDispose]();

        const before = await rosterOf(one, id);
        await addMembers(one, id, [a!]);
        await addMembers(two, id, [b!]);
        await one.server.client.post(
          `/v1/spaces/${id}/acl/permissions`,
          { changes: [{ identity: target, permission: "reader" }] },
          204,
        );
        await removeMembers(two, id, [target!]);
        for (const admin of [one, two]) expect(await rosterOf(admin, id)).toBe(before);
        expect(await proposalsAt(one, id)).toBeGreaterThanOrEqual(2);

        owner = await startDevice({ lan: true, dataDir: dir.path });
        await untilOneRoster([owner, one, two], id, rosterHas(a!, b!, `["${target}","none","removed"]`));
        for (const device of [owner, one, two])
          await until(async () => (await proposalsAt(device, id)) === 0, "nothing to wait any more", WAIT_MS);
      } finally {
        await owner[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );

  rule("[ACL-4] a stream that cannot keep up is told how many frames it lost", async () => {
    await using owner = await startDevice({});
    const { id } = await createSpace(owner.server.client, "Crowd");
    await using stream = await owner.server.client.stream("GET", `/v1/spaces/${id}/members/subscribe`);
    await stream.expect("ready");
    await addMembers(owner, id, strangers(200));
    const frames: { event: string; data: unknown }[] = [];
    while (frames.at(-1)?.event !== "lagged") frames.push((await stream.next())!);
    const { total } = frames.at(-1)!.data as { total: number };
    expect(total).toBe(200 - (frames.length - 1));
    expect((await owner.server.client.get<{ members: unknown[] }>(`/v1/spaces/${id}/members`)).members).toHaveLength(
      201,
    );
  });
});
