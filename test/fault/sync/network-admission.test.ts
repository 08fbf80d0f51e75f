/** docs/network.md, followed to the letter: its configuration, an operator, and accounts that are let in one by one. */
import { expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { documentedConfig, OPERATOR_LOGIN } from "../../support/network/documented-nats.ts";
import { describeWithNats, startNats } from "../../support/network/nats.ts";
import { makeTestCa } from "../../support/network/test-ca.ts";
import { rule } from "../../support/rule.ts";
import { scratchDir } from "../../support/scratch.ts";
import { type JsonObject, until } from "../../support/server/client.ts";
import { type Device, startDevice, statusOf, untilSame } from "../../support/server/devices.ts";
import { createObject, createSpace } from "../../support/server/fixtures.ts";
import { startServer } from "../../support/server/server.ts";
import { svc } from "../../support/server/svc.ts";

const WAIT_MS = 45_000;
const NETWORK_KEY = /\bU[A-Z2-7]{55}\b/;

describeWithNats("the network as it is documented", () => {
  rule(
    "[SYNC-10] who is not admitted is told so with its key, in debug and at network init; once admitted it syncs",
    async () => {
      using tls = scratchDir("svc-tls");
      const authority = makeTestCa();
      writeFileSync(join(tls.path, "ca.pem"), authority.ca);
      writeFileSync(join(tls.path, "server.pem"), authority.certificate);
      writeFileSync(join(tls.path, "server.key"), authority.privateKey);
      // 1. It starts as it stands there, without any account.
      await using nats = await startNats({ wholeConfig: (place) => documentedConfig(place, tls.path, []) });
      const env = { SVC_NETWORK_TLS_CA: join(tls.path, "ca.pem") };
      const network = `tls://127.0.0.1:${nats.port}`;

      // 2. The operator makes the streams.
      const operatorUrl = network.replace("//", `//${OPERATOR_LOGIN}@`);
      await using operator = await startServer({ env: { ...env, SVC_NETWORK_URL: operatorUrl } });
      const made = await svc(["network", "init"], { addr: operator.address });
      expect([made.code, made.stderr]).toEqual([0, ""]);
      const { created, existing } = made.json() as { created: string[]; existing: string[] };
      expect([...created, ...existing]).toHaveLength(10);

      // 3. Accounts that are not admitted yet.
      await using one = await startDevice({ network, env });
      await using two = await startDevice({ network, env, mnemonic: one.mnemonic });
      await using other = await startDevice({ network, env });
      const { id } = await createSpace(one.server.client, "Admitted later");
      await createObject(one.server.client, id, { initialProperties: { svc: { name: "waits" } } });
      await until(async () => (await statusOf(one, id)).state === "error", "the status to say that it fails", WAIT_MS);
      const keyOf = async (device: Device, spaceId: string): Promise<string> => {
        const debug = await device.server.client.get<{ peers: JsonObject[] }>(`/v1/spaces/${spaceId}/debug`);
        const reason = String(debug.peers.find(({ peerId }) => peerId === "network")?.["lastErr"]);
        expect(reason).toContain("operator must admit");
        return NETWORK_KEY.exec(reason)![0];
      };
      const key = await keyOf(one, id);
      expect(one.server.stderr()).toContain(key);
      const refused = await svc(["network", "init"], { addr: one.server.address });
      expect([refused.code, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain("network.forbidden (403)");
      expect(refused.stderr).toContain(key);
      expect(NETWORK_KEY.exec(other.server.stderr())![0]).not.toBe(key);

      nats.edit((config) => config.replace("users: [", `users: [\n{ nkey: "${key}" }`));
      await until(async () => (await statusOf(one, id)).state === "synced", "synced once admitted", WAIT_MS);
      const reached = async () => (await two.server.client.request("GET", `/v1/spaces/${id}/sync-status`)).status;
      await until(async () => (await reached()) === 200, "the space at the account's other device", WAIT_MS);
      await untilSame([one, two], id, (rows) => rows.includes("waits"), WAIT_MS);
      const debug = await one.server.client.get<{ peers: JsonObject[] }>(`/v1/spaces/${id}/debug`);
      expect(debug.peers).toEqual([expect.objectContaining({ peerId: "network", lastErr: "" })]);
    },
    150_000,
  );
});
