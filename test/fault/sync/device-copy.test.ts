/** A data root that was copied while it ran, beside the one that it is a copy of: real processes, a real nats-server. */
import { expect } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { until } from "../../support/server/client.ts";
import { type Device, setName, startDevice, untilSame, untilSynced } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { svc } from "../../support/server/svc.ts";

const LONG_MS = 120_000;
const WAIT_MS = 40_000;

interface Health {
  warnings?: { code: string; message: string }[];
}
const healthOf = (device: Device) => device.server.client.get<Health>("/v1/health");
const peerOf = async (device: Device) => (await device.server.client.get<{ peerId: string }>("/v1/debug/p2p")).peerId;

describeWithNats("a copied data root", () => {
  rule(
    "[SYNC-8] both that run with one device key say so, and how to mend it; a new device goes on with all and a writer of its own",
    async () => {
      await using nats = await startNats();
      using root = scratchDir("svc-root");
      using copyRoot = scratchDir("svc-copy");
      await using original = await startDevice({ network: nats.url, dataDir: root.path });
      const space = await createSpace(original.server.client, "Copied");
      const object = await createObject(original.server.client, space.id);
      await setName(original, space.id, object.id, "before");
      await untilSynced(original, space.id);
      expect(await healthOf(original)).not.toHaveProperty("warnings");
      cpSync(root.path, copyRoot.path, { recursive: true });
      // On the machine that it is copied to, the process that had the original open does not run.
      for (const name of ["server.lock", `${original.accountId}/server.pid`])
        rmSync(join(copyRoot.path, name), { force: true });
      const peerId = await peerOf(original);
      {
        await using copy = await startDevice({ network: nats.url, dataDir: copyRoot.path });
        for (const device of [original, copy]) {
          await until(async () => (await healthOf(device)).warnings !== undefined, "word of the copy", WAIT_MS);
          expect((await healthOf(device)).warnings).toEqual([
            { code: "device.copied", message: expect.stringContaining("svc init --new-device") },
          ]);
          expect(await device.server.client.get<object>("/v1/debug/p2p")).toHaveProperty("deviceCopied");
          expect(device.server.stderr()).toContain("ERROR another server runs with this device's own key");
        }
        const taken = await svc(["init", "--new-device", "--data-dir", copyRoot.path]);
        expect({ code: taken.code, stderr: taken.stderr }).toMatchObject({
          code: 1,
          stderr: expect.stringContaining("auth.account_in_use"),
        });
      }
      const renewed = await svc(["init", "--new-device", "--data-dir", copyRoot.path]);
      expect(renewed.json()).toMatchObject({ created: false, accountId: original.accountId });
      await using device = await startDevice({ network: nats.url, dataDir: copyRoot.path });
      expect(await peerOf(device)).not.toBe(peerId);
      await setName(device, space.id, object.id, "by the new device");
      const other = await createObject(original.server.client, space.id);
      await setName(original, space.id, other.id, "by the first");
      await untilSame(
        [original, device],
        space.id,
        (rows) => rows.includes("by the new device") && rows.includes("by the first"),
        WAIT_MS,
      );
      expect(await healthOf(device)).not.toHaveProperty("warnings");
      for (const one of [original, device])
        expect(await one.server.client.get<object>(`/v1/spaces/${space.id}/debug`)).toMatchObject({
          writersReplaced: 0,
        });
    },
    LONG_MS,
  );
});
