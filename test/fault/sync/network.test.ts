/** Devices of one account that meet on a network alone: real processes, a real nats-server. */
import { expect } from "bun:test";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import {
  type Device,
  setName,
  spacesOf,
  startDevice,
  statusOf,
  untilSame,
  untilState,
} from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";

const LONG_MS = 120_000;

const untilHeld = (device: Device, spaceId: string): Promise<void> =>
  until(
    async () => (await device.server.client.request("GET", `/v1/spaces/${spaceId}/sync-status`)).status === 200,
    "the space",
    30_000,
  );

describeWithNats("devices of an account on a network", () => {
  rule(
    "[SYNC-3] [SYNC-16] what one device left there restores another that never meets it, and edits pass both ways",
    async () => {
      await using nats = await startNats();
      await using first = await startDevice({ network: nats.url });
      const space = await createSpace(first.server.client);
      for (let i = 0; i < 30; i++) await createObject(first.server.client, space.id);
      await first.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
      expect(await statusOf(first, space.id)).toMatchObject({ state: "synced", networkPeers: 1, localPeers: 0 });
      await first.server.stop();

      await using second = await startDevice({ network: nats.url, mnemonic: first.mnemonic });
      expect((await spacesOf(second)).map(({ id }) => id)).toEqual([space.id]);
      const status = await statusOf(second, space.id);
      expect(status).toMatchObject({ state: "synced", total: 30, synced: 30 });
      const made = await createObject(second.server.client, space.id);
      await setName(second, space.id, made.id, "from the second");

      await using third = await startDevice({ network: nats.url, mnemonic: first.mnemonic });
      await untilHeld(third, space.id);
      await setName(third, space.id, made.id, "from the third");
      await untilSame([second, third], space.id, (rows) => rows.includes("from the third"));
    },
    LONG_MS,
  );

  rule(
    "[SYNC-3] a new space is left there, and found by another device, without waiting for a regular round",
    async () => {
      await using nats = await startNats();
      const env = { SVC_SYNC_INTERVAL: "1h" };
      await using first = await startDevice({ network: nats.url, env });
      await using second = await startDevice({ network: nats.url, env, mnemonic: first.mnemonic });
      const space = await createSpace(first.server.client);
      const object = await createObject(first.server.client, space.id);
      await untilState(first, space.id, "synced");
      await untilHeld(second, space.id);
      await untilState(second, space.id, "synced");
      await setName(second, space.id, object.id, "from the second");
      await untilSame([first, second], space.id, (rows) => rows.includes("from the second"));
    },
    LONG_MS,
  );

  rule(
    "[SYNC-2] with the network stopped and changes unacknowledged nothing says synced; afterwards it does",
    async () => {
      await using nats = await startNats();
      await using device = await startDevice({ network: nats.url });
      const space = await createSpace(device.server.client);
      const object = await createObject(device.server.client, space.id);
      await untilState(device, space.id, "synced");
      await nats.kill();
      await untilState(device, space.id, "offline");
      await setName(device, space.id, object.id, "written alone");
      for (let i = 0; i < 20; i++) {
        expect((await statusOf(device, space.id)).state).toBe("offline");
        const one = await device.server.client.get<{ state: string }>(
          `/v1/spaces/${space.id}/sync-status/objects/${object.id}`,
        );
        expect(one.state).toBe("offline");
        await device.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
      }
      const debug = await device.server.client.get<JsonObject>(`/v1/spaces/${space.id}/debug`);
      expect(debug["unconfirmed"]).toBe(1);
      await nats.start();
      await untilState(device, space.id, "synced");
    },
    LONG_MS,
  );

  rule(
    "[SYNC-7] a wiped store is filled again, and a device that comes later gets everything",
    async () => {
      await using nats = await startNats();
      await using first = await startDevice({ network: nats.url });
      const space = await createSpace(first.server.client);
      for (let i = 0; i < 10; i++) await createObject(first.server.client, space.id);
      await untilState(first, space.id, "synced");
      await nats.stop();
      nats.wipeStore();
      await nats.start();
      await createObject(first.server.client, space.id);
      await until(
        async () => {
          await first.server.client.post(`/v1/spaces/${space.id}/sync`, {}, 204);
          return (await statusOf(first, space.id)).state === "synced";
        },
        "synced again",
        30_000,
      );
      await first.server.stop();
      await using second = await startDevice({ network: nats.url, mnemonic: first.mnemonic });
      await untilHeld(second, space.id);
      await untilState(second, space.id, "synced");
      expect((await statusOf(second, space.id)).total).toBe(11);
    },
    LONG_MS,
  );
});
