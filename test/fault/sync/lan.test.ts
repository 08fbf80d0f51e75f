/** Two devices of one account on one LAN (loopback), found by multicast alone: real processes, no network. */
import { describe, expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pace } from "../../support/pace.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import {
  type Device,
  joinOpen,
  setName,
  spacesOf,
  startDevice,
  statusOf,
  untilSame,
} from "../../support/server/devices.ts";
import { createObject, createSpace, createType } from "../../support/server/fixtures.ts";

const LONG_MS = 90_000;

describe("two devices of an account on a LAN", () => {
  rule(
    "[SYNC-3] [SYNC-1] [SYNC-17] a second device brings everything back, edits pass both ways, and the states are true",
    async () => {
      await using first = await startDevice({ lan: true });
      const space = await createSpace(first.server.client);
      const type = await createType(first.server.client, space.id);
      for (let i = 0; i < 20; i++) await createObject(first.server.client, space.id, { types: [type.xKey] });

      await first.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
      const alone = await statusOf(first, space.id);
      expect(alone).toMatchObject({ state: "offline", localPeers: 0, networkPeers: 0, lastSyncedAt: null, synced: 0 });
      expect(alone.total).toBeGreaterThanOrEqual(20);

      await using second = await startDevice({ lan: true, mnemonic: first.mnemonic });
      await until(async () => (await spacesOf(second)).some(({ id }) => id === space.id), "the space's row", 20_000);
      await until(
        async () => (await second.server.client.request("GET", `/v1/spaces/${space.id}/sync-status`)).status === 200,
        "the space itself",
        20_000,
      );
      await untilSame([first, second], space.id, (rows) => rows.split('"_ver"').length > 20);
      await until(async () => (await statusOf(first, space.id)).state === "synced", "synced at the first", 20_000);
      await until(async () => (await statusOf(second, space.id)).state === "synced", "synced at the second", 20_000);
      const status = await statusOf(first, space.id);
      expect(status).toMatchObject({ localPeers: 1, p2p: "connected", synced: status.total });
      expect(status.lastSyncedAt).toBeString();
      expect((await spacesOf(second)).find(({ id }) => id === space.id)).toMatchObject({
        ownRole: "owner",
        status: "active",
        spaceIndexObjectId: (await spacesOf(first)).find(({ id }) => id === space.id)!.spaceIndexObjectId!,
      });

      const made = await createObject(second.server.client, space.id);
      await setName(second, space.id, made.id, "from the second");
      await createObject(first.server.client, space.id, { initialProperties: { svc: { name: "from the first" } } });
      await untilSame(
        [first, second],
        space.id,
        (rows) => rows.includes("from the second") && rows.includes("from the first"),
      );

      const p2p = await first.server.client.get<JsonObject>("/v1/debug/p2p");
      expect(p2p).toMatchObject({ enabled: true, listenerStarted: true, state: "connected" });
      const debug = await second.server.client.get<{ peers: JsonObject[] }>(`/v1/spaces/${space.id}/debug`);
      expect(debug.peers).toHaveLength(1);
      expect(debug.peers[0]).toMatchObject({ lastErr: "" });
      expect(Number(debug.peers[0]!["new"])).toBeGreaterThanOrEqual(20);

      await second.server.kill();
      await setName(first, space.id, made.id, "while nobody listens");
      await until(async () => (await statusOf(first, space.id)).state === "offline", "offline again", 60_000);
    },
    LONG_MS,
  );

  rule(
    "[SPACE-2] [SPACE-4] [SYNC-6] what is ended or answered on one device is so on the other; accounts that share nothing do not meet",
    async () => {
      await using first = await startDevice({ lan: true });
      await using stranger = await startDevice({ lan: true });
      await using second = await startDevice({ lan: true, mnemonic: first.mnemonic });
      const space = await createSpace(first.server.client);
      await until(async () => (await spacesOf(second)).some(({ id }) => id === space.id), "the space's row", 20_000);
      expect(await spacesOf(stranger)).toEqual([]);
      const seen = await stranger.server.client.get<{ peers: { spaceIds: string[] }[] }>("/v1/debug/p2p");
      expect(seen.peers.flatMap(({ spaceIds }) => spaceIds)).toEqual([]);

      // What somebody asked is on this device alone; the answer is on both.
      const pending = async ({ server }: Device) =>
        server.client.get<{ id: string }[]>("/v1/spaces?status=one_to_one_pending");
      await first.server.client.post(
        "/v1/spaces/one-to-one/register-incoming",
        { peerIdentity: stranger.accountId },
        204,
      );
      const [asked] = await pending(first);
      expect(await pending(second)).toEqual([]);
      await first.server.client.post(`/v1/spaces/${asked!.id}/one-to-one/decline`, {}, 204);
      const answerAtSecond = async () => (await second.server.client.request("GET", `/v1/spaces/${asked!.id}`)).json;
      await until(
        async () => ((await answerAtSecond()) as { status?: string }).status === "one_to_one_declined",
        "the answer at the other device",
        20_000,
      );

      await second.server.client.request("DELETE", `/v1/spaces/${space.id}`);
      await until(async () => (await spacesOf(first)).length === 0, "its end", 20_000);
      const reply = await first.server.client.request("GET", `/v1/spaces/${space.id}/sync-status`);
      expect(reply.status).toBe(409);
    },
    LONG_MS,
  );

  rule(
    "[SPACE-2] a space that is removed in the middle of a round leaves it quietly, and leaves nothing behind",
    async () => {
      await using first = await startDevice({ lan: true });
      await using second = await startDevice({ lan: true, mnemonic: first.mnemonic });
      const devices = [first, second];
      for (let i = 0; i < 12; i++) {
        const space = await createSpace(first.server.client);
        const remover = devices[i % 2]!;
        const writing = (async () => {
          for (let n = 0; ; n++) {
            const reply = await first.server.client.request("POST", `/v1/spaces/${space.id}/objects`, {
              body: { initialProperties: { svc: { name: `object ${n} ${"x".repeat(4_000)}` } } },
            });
            if (reply.status !== 201) return;
          }
        })();
        await until(async () => (await spacesOf(second)).some(({ id }) => id === space.id), "the row", 20_000);
        const forced = second.server.client.request("POST", `/v1/spaces/${space.id}/sync`);
        await pace(i * 10);
        await remover.server.client.del(`/v1/spaces/${space.id}`);
        expect([204, 409, 503]).toContain((await forced).status);
        await writing;
        await until(
          async () => (await spacesOf(first)).length + (await spacesOf(second)).length === 0,
          "its end",
          20_000,
        );
        for (const { server, accountId } of devices) {
          const path = join(server.dataDir, accountId, "sdk", `${space.id}.db`);
          await until(() => !existsSync(path), "its file to be gone", 20_000);
        }
      }
      for (const { server } of devices) {
        const noise = server
          .stderr()
          .split("\n")
          .filter((line) => /\b(WARN|ERROR)\b/i.test(line));
        expect(noise).toEqual([]);
      }
    },
    LONG_MS,
  );

  rule(
    "[SYNC-6] members of a space whose servers were killed find each other again, though all was open before the LAN was",
    async () => {
      using ownerRoot = scratchDir("svc-owner");
      using memberRoot = scratchDir("svc-member");
      let owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
      let member = await startDevice({ lan: true, dataDir: memberRoot.path });
      try {
        const space = await createSpace(owner.server.client);
        await joinOpen(owner, member, space.id);
        const object = await createObject(owner.server.client, space.id);
        await setName(owner, space.id, object.id, "before");
        await untilSame([owner, member], space.id, (rows) => rows.includes("before"), 30_000);
        await Promise.all([owner.server.kill(), member.server.kill()]);
        owner = await startDevice({ lan: true, dataDir: ownerRoot.path });
        member = await startDevice({ lan: true, dataDir: memberRoot.path });
        await setName(owner, space.id, object.id, "after");
        await untilSame([owner, member], space.id, (rows) => rows.includes("after"), 30_000);
      } finally {
        await owner.server[Symbol.asyncDispose]();
        await member.server[Symbol.asyncDispose]();
      }
    },
    LONG_MS,
  );
});
