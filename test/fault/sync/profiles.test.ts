/** What one says of oneself reaches everybody who is told of it: over crashes, failing networks and joins under way. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type SpaceInfo, until } from "../../support/server/client.ts";
import {
  acceptRequest,
  type Device,
  infoOf,
  startDevice,
  statusOf,
  untilRequest,
  untilStatus,
} from "../../support/server/devices.ts";
import { createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 150_000;
const WAIT_MS = 45_000;

/** The name under which a device knows somebody. */
const nameOf = async ({ server }: Device, identity: string): Promise<string | undefined> => {
  const reply = await server.client.request("GET", `/v1/identities/${identity}`);
  return (reply.json as { name?: string }).name;
};

describeWithNats("profiles over a network", () => {
  rule(
    "[SYNC-14] a change that was answered reaches all members, though the server is killed at once and the network was away",
    async () => {
      await using nats = await startNats();
      using root = scratchDir("svc-data");
      await using owner = await startDevice({ network: nats.url });
      await using pal = await startDevice({ network: nats.url });
      const start = () => startDevice({ network: nats.url, dataDir: root.path });
      let member = await start();
      try {
        const { accountId } = member;
        const { id } = await createSpace(owner.server.client, "Shared");
        const open = { mode: "open", permission: "writer" };
        const invites = `/v1/spaces/${id}/invites`;
        const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(invites, open, 201);
        await member.server.client.post("/v1/spaces/join", { inviteToken }, 202);
        await untilStatus(member, id, "active");
        const to = { otherIdentity: accountId };
        const pair = await pal.server.client.post<SpaceInfo>("/v1/spaces/one-to-one", to, 201);
        await untilStatus(member, pair.id, "one_to_one_pending");
        await member.server.client.post(`/v1/spaces/${pair.id}/one-to-one/accept`, {}, 200);
        const restart = async (): Promise<void> => {
          await member.server.kill();
          await member[Symbol.asyncDispose]();
          member = await start();
        };
        const untilKnownAs = async (name: string): Promise<void> => {
          for (const device of [owner, pal])
            await until(async () => (await nameOf(device, accountId)) === name, `the name ${name}`, WAIT_MS);
        };

        await member.server.client.put("/v1/account/metadata", { name: "Ann" });
        await restart();
        await untilKnownAs("Ann");

        await nats.kill();
        const state = async () => (await statusOf(member, id)).state;
        await until(async () => (await state()) === "offline", "the member to be offline", WAIT_MS);
        await member.server.client.put("/v1/account/metadata", { name: "Ann B." });
        await restart();
        await nats.start();
        await untilKnownAs("Ann B.");
      } finally {
        await member[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );

  rule(
    "[SYNC-14] a change while a request to join waits is told once one is let in",
    async () => {
      await using nats = await startNats();
      await using owner = await startDevice({ network: nats.url });
      await using joiner = await startDevice({ network: nats.url });
      await joiner.server.client.put("/v1/account/metadata", { name: "Before" });
      const { id } = await createSpace(owner.server.client, "Asked for");
      const base = `/v1/spaces/${id}`;
      const { inviteToken } = await owner.server.client.post<{ inviteToken: string }>(`${base}/invites`, {}, 201);
      await joiner.server.client.post("/v1/spaces/join", { inviteToken }, 202);
      const request = await untilRequest(owner, id, WAIT_MS);
      expect(request.name).toBe("Before");
      await joiner.server.client.put("/v1/account/metadata", { name: "After" });
      await acceptRequest(owner, id, request, "reader");
      await until(async () => (await nameOf(owner, joiner.accountId)) === "After", "the new name", WAIT_MS);
      expect(await infoOf(joiner, id)).toMatchObject({ status: "active" });
    },
    LONG_MS,
  );
});
