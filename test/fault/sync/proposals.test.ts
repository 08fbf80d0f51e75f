/** What an admin did to a space's members while it was alone takes effect when it comes back to the network. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { rule } from "../../support/rule.ts";
import { until } from "../../support/server/client.ts";
import { spacesOf, startDevice, statusOf } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

describeWithNats("an admin that was alone", () => {
  rule(
    "[ACL-15] a removal by an admin without a network reaches the owner over the network later; until then nothing is synced",
    async () => {
      await using nats = await startNats();
      await using line = await startTcpProxy(nats.port);
      await using owner = await startDevice({ network: nats.url });
      await using admin = await startDevice({ network: `nats://127.0.0.1:${line.port}` });
      await using third = await startDevice({ network: nats.url });
      const space = await createSpace(owner.server.client);
      await createObject(owner.server.client, space.id);
      const base = `/v1/spaces/${space.id}`;
      const accounts = [
        { identity: admin.accountId, permission: "admin" },
        { identity: third.accountId, permission: "reader" },
      ];
      await owner.server.client.post(`${base}/acl/add`, { accounts }, 204);
      for (const device of [admin, third]) {
        const { client } = device.server;
        await until(async () => (await client.request("GET", base)).status === 200, "the invitation", WAIT_MS);
        await client.request("POST", `${base}/invite/accept`);
        await until(
          async () => (await client.request("GET", `${base}/sync-status`)).status === 200,
          "the space",
          WAIT_MS,
        );
      }
      await until(async () => (await statusOf(admin, space.id)).state === "synced", "synced", WAIT_MS);

      line.block(true);
      await until(async () => (await statusOf(admin, space.id)).state === "offline", "offline", WAIT_MS);
      await admin.server.client.post(`${base}/acl/remove`, { identities: [third.accountId] }, 204);
      expect(await admin.server.client.get<unknown>(`${base}/debug`)).toMatchObject({
        proposals: 1,
        unconfirmedRights: 1,
      });
      expect((await statusOf(admin, space.id)).state).toBe("offline");

      line.block(false);
      await until(async () => (await spacesOf(third)).length === 0, "the removal at the third", WAIT_MS);
      const path = `${base}/members/${third.accountId}`;
      expect(await owner.server.client.get<unknown>(path)).toMatchObject({ status: "removed", permission: "none" });
      await until(async () => (await statusOf(admin, space.id)).state === "synced", "synced again", WAIT_MS);
      expect(await admin.server.client.get<unknown>(`${base}/debug`)).toMatchObject({
        proposals: 0,
        unconfirmedRights: 0,
      });
    },
    LONG_MS,
  );
});
